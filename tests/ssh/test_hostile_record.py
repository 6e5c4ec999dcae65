"""Nodes whose records are traps: nothing is written elsewhere, and neither files nor nodes block others."""

import asyncio
import hashlib
import os
import shlex
from pathlib import Path

import pytest

from node_agent.model.refusals import Refusal
from orchestrator.backends.remote.collection import Collected, collect
from orchestrator.errors import RoveError
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import TransferBroken
from orchestrator.ssh.fleet import on_all
from tests.ssh.conftest import Make
from tests.ssh.drill import contents
from tests.ssh.patience import until
from tests.ssh.sshd import FIRST_ID, HOME, SshServer, known_hosts

PLACE = f"{HOME}/.rove/runs/r1/n"
HONEST = {
    "record/agent.log": b"fine\n",
    "record/segments/b0001-s000001.jsonl": b'{"a": 1}\n' * 100_000,
    "record/frames/show-0/00000001.jpg": b"\xff\xd8" * 100,
    "ended.json": b'{"reason": "end of run", "t_ns": 1, "in_order": true}',
}


def put(server: SshServer, files: dict[str, bytes]) -> Path:
    place = server.home / ".rove" / "runs" / "r1" / "n"
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    own(server)
    return place


def own(server: SshServer) -> None:
    for path in server.home.rglob("*"):
        os.chown(path, FIRST_ID, FIRST_ID, follow_symlinks=False)


def fetched_from(*servers: SshServer, into: Path) -> dict[str, Collected | RoveError]:
    """From all of them, as at the end of a run."""

    async def use() -> dict[str, Collected | RoveError]:
        known = known_hosts(into.with_suffix(".known"), *servers)

        async def one(server: SshServer) -> Collected:
            connection = await Connection.open(server.host, known)
            try:
                return await collect(connection, PLACE, into / server.name)
            finally:
                await connection.close()

        return await on_all({server.name: server for server in servers}, one)

    return asyncio.run(use())


def wanted(files: dict[str, bytes] = HONEST) -> dict[str, str]:
    return {
        name.removeprefix("record/"): hashlib.sha256(content).hexdigest() for name, content in files.items()
    }


def test_no_listed_name_writes_outside_the_nodes_directory(make: Make, tmp_path: Path) -> None:
    """The node's ``find`` lists, among others, a file of its own under an absolute path of this machine."""
    outside = tmp_path / "outside" / "authorized_keys"
    outside.parent.mkdir()
    name = f"record/{outside}"
    digest = hashlib.sha256(b"evil").hexdigest()
    programs = tmp_path / "programs"
    programs.mkdir()
    printed = f"printf '%b' {shlex.quote(f'f 4 {name}')}'\\0'"
    script = f"""#!/bin/sh
        case "$*" in
        *-printf*) {printed};;
        *sha256sum\\ -z*) printf '%s  %s\\0' {digest} {shlex.quote(name)};;
        *stat*) echo 4 {shlex.quote(name)};;
        *) echo {digest}"  "{shlex.quote(name)};;
        esac
        exec /usr/bin/find "$@"
    """
    (programs / "find").write_text(script.replace("\n        ", "\n"))
    (programs / "find").chmod(0o755)
    server = make(mounts={programs: "/usr/local/bin"})
    put(server, {**HONEST, name.replace("//", "/"): b"evil"})
    found = fetched_from(server, into=tmp_path / "here")["n01"]
    assert not outside.exists()
    assert isinstance(found, Collected), found
    assert Refusal("file", "n01", "name", 1) in found.refused
    assert contents(tmp_path / "here" / "n01").items() >= wanted().items()


def test_odd_names_block_neither_other_files_nor_other_nodes(make: Make, tmp_path: Path) -> None:
    honest, hostile = make("n01"), make("n02")
    put(honest, HONEST)
    place = put(hostile, HONEST)
    for odd in (b"new\nline.log", b"\x1b]0;title\x07", b"\xff\xfe", b".hidden", b"segments/odd.jsonl"):
        Path(os.fsdecode(os.fsencode(place / "record") + b"/" + odd)).write_bytes(b"x")
    (place / "record" / "link").symlink_to("/etc/passwd")
    (place / "record" / "folder").symlink_to("/etc")
    os.mkfifo(place / "record" / "pipe")
    own(hostile)
    found = fetched_from(honest, hostile, into=tmp_path / "here")
    for server in (honest, hostile):
        assert contents(tmp_path / "here" / server.name) == wanted(), found[server.name]
    refused = found["n02"]
    assert isinstance(refused, Collected), refused
    assert {each.reason: each.count for each in refused.refused} == {"name": 5, "not a file": 3}


@pytest.mark.timeout(120)
def test_a_file_that_grows_without_end_is_that_nodes_failure_and_bounded(make: Make, tmp_path: Path) -> None:
    honest, hostile = make("n01"), make("n02")
    put(honest, HONEST)
    growing = "record/segments/b0001-s000002.jsonl"
    place = put(hostile, {**HONEST, growing: b"x" * 300_000})

    async def grow() -> None:
        connection = await Connection.open(hostile.host, known_hosts(tmp_path / "known", hostile))
        script = f"while echo 0123456789 >> {PLACE}/{growing}; do sleep 0.001; done"
        await connection.output(["sh", "-c", f"nohup sh -c {shlex.quote(script)} >/dev/null 2>&1 &"])
        await until(lambda: (place / growing).stat().st_size > 300_100)
        await connection.close()

    asyncio.run(grow())
    found = fetched_from(honest, hostile, into=tmp_path / "here")
    assert isinstance(found["n01"], Collected)
    assert isinstance(found["n02"], TransferBroken) and "written to meanwhile" in str(found["n02"])
    assert contents(tmp_path / "here" / "n02") == wanted(), "the others have arrived"
