"""Deployment to real sshd: what is sent and what is not, two at once, a cut, a full disk, a wrong Python."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.deployment.bundle import Bundle, bundle_for
from orchestrator.deployment.deploy import Deployed, deploy
from orchestrator.deployment.errors import CannotDeploy, WrongPython
from orchestrator.deployment.facts import NodeFacts, probe
from orchestrator.deployment.needs import AGENT, PYROUTE2, Needs
from orchestrator.deployment.place import SMALL, put
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import DiskFull, TransferBroken
from orchestrator.ssh.fleet import on_all
from tests.ssh.conftest import Make
from tests.ssh.relay import Relay, over_a_wire
from tests.ssh.sshd import HOME, SshServer, known_hosts
from tests.ssh.test_enroll import enroll, topology

NEEDS = Needs((*AGENT, PYROUTE2))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_directories(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def bundled(connection: Connection) -> tuple[NodeFacts, Bundle]:
    facts = await probe(connection)
    return facts, await asyncio.to_thread(bundle_for, facts, NEEDS)


def test_six_nodes_run_what_was_deployed(six: list[SshServer], tmp_path: Path) -> None:
    known = known_hosts(tmp_path / "known", *six)

    async def reach(server: SshServer) -> str:
        connection = await Connection.open(server.host, known)
        try:
            deployed = await deploy(connection, *await bundled(connection))
            (server.home / "msgspec.py").write_text("raise SystemExit('the wrong one')")
            return await connection.output(deployed.command("node_agent.agent", "--help"))
        finally:
            await connection.close()

    outcomes = asyncio.run(on_all({server.name: server for server in six}, reach))
    assert all("Run one node's agent" in str(text) for text in outcomes.values()), outcomes
    for server in six:
        (server.home / "msgspec.py").unlink()
        assert [path.name for path in server.home.iterdir()] == [".rove"]
        assert not list((server.home / ".rove" / "store" / "incoming").iterdir())


def test_what_is_there_is_neither_sent_nor_tried_again(make: Make, tmp_path: Path) -> None:
    server = make(sudo=True)

    async def act(connection: Connection, relay: Relay) -> None:
        facts, bundle = await bundled(connection)
        assert facts.home == HOME
        first = await deploy(connection, facts, bundle)
        relay.forget()
        assert await deploy(connection, facts, bundle) == first
        assert relay.sent < 50_000
        # Root can run it, and leaves nothing behind that the user could not remove.
        await connection.output(first.command("node_agent.olsr", "--help"), sudo=True)
        strangers = await connection.output(["find", ".rove", "-not", "-user", "pi"])
        assert strangers == ""
        # Another bundle of mostly the same layers: only what is new goes over the wire.
        relay.forget()
        await deploy(connection, facts, replace(bundle, modules=(*bundle.modules, "node_agent.olsr.process")))
        assert relay.sent < 100_000

    over_a_wire(server, tmp_path, act)


def test_a_cut_in_the_middle_is_resumed(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection, relay: Relay) -> None:
        facts, bundle = await bundled(connection)
        size = sum(layer.size for layer in bundle.layers)
        relay.forget()
        relay.cut_after = size * 3 // 4
        with pytest.raises(TransferBroken):
            await deploy(connection, facts, bundle)
        store = server.home / ".rove" / "store"
        arrived = sum(path.stat().st_size for path in (store / "incoming").iterdir())
        assert 0 < arrived < size
        relay.forget()
        await connection.ensure(10)
        deployed = await deploy(connection, facts, bundle)
        assert relay.sent < size - arrived + 200_000
        assert "usage" in await connection.output(deployed.command("node_agent.agent", "--help"))
        assert not list((store / "incoming").iterdir())

    over_a_wire(server, tmp_path, act)


def test_a_cache_that_is_emptied_meanwhile_is_filled_again(make: Make, tmp_path: Path) -> None:
    """By the user, or for another node where what arrived was damaged: to try again is enough."""
    server = make()

    async def act(connection: Connection, relay: Relay) -> None:
        facts, bundle = await bundled(connection)
        bundle.layers[-1].archive.unlink()
        with pytest.raises(TransferBroken, match="gone since it was packed"):
            await deploy(connection, facts, bundle)
        deployed = await deploy(connection, *await bundled(connection))
        await connection.output(deployed.command("node_agent.agent", "--help"))

    over_a_wire(server, tmp_path, act)


def test_what_a_node_says_that_is_no_answer_is_said(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make()
    monkeypatch.setattr("orchestrator.deployment.facts._SCRIPT", "print('last words')")

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(CannotDeploy, match="cannot tell what the node is: it says 'last words'"):
            await probe(connection)

    over_a_wire(server, tmp_path, act)


def test_a_shell_that_talks_is_told_of(make: Make, tmp_path: Path) -> None:
    server = make()
    (server.home / ".ssh").mkdir(exist_ok=True)
    (server.home / ".ssh" / "rc").write_text("echo Welcome to my Pi\n")

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(CannotDeploy, match="its shell says 'Welcome to my Pi' before each command"):
            await probe(connection)

    over_a_wire(server, tmp_path, act)


def test_two_runs_at_once(make: Make, tmp_path: Path) -> None:
    server = make()
    known = known_hosts(tmp_path / "known", server)

    async def reach(name: str) -> Deployed:
        connection = await Connection.open(server.host, known)
        try:
            facts, bundle = await bundled(connection)
            return (await asyncio.gather(*(deploy(connection, facts, bundle) for _ in range(2))))[0]
        finally:
            await connection.close()

    one, other = asyncio.run(on_all({"one": "one", "other": "other"}, reach)).values()
    assert isinstance(one, Deployed) and one == other
    store = server.home / ".rove" / "store"
    assert not list((store / "incoming").iterdir())
    assert sorted(path.name for path in store.glob(".*")) == [".lock"]


def test_a_disk_that_is_too_small_is_said_before_anything_is_sent(make: Make, tmp_path: Path) -> None:
    server = make(disk=4_000_000)

    async def act(connection: Connection, relay: Relay) -> None:
        facts, bundle = await bundled(connection)
        relay.forget()
        with pytest.raises(DiskFull, match="bytes are needed"):
            await deploy(connection, facts, bundle)
        assert relay.sent < 50_000
        await put(connection, Deployed(HOME, facts.rove, facts.python, ()), f"{facts.rove}/runs/r/n", {})
        with pytest.raises(DiskFull):
            await put(
                connection,
                Deployed(HOME, facts.rove, facts.python, ()),
                f"{facts.rove}/runs/r/n",
                {f"{i}": bytes(SMALL) for i in range(8)},
            )

    over_a_wire(server, tmp_path, act)


def test_what_does_not_run_there_is_said(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection, relay: Relay) -> None:
        facts, bundle = await bundled(connection)
        with pytest.raises(CannotDeploy, match=r"does not run there: .*No module named 'no_such_module'"):
            await deploy(connection, facts, replace(bundle, modules=("no_such_module",)))

    over_a_wire(server, tmp_path, act)


@pytest.mark.parametrize("version", ["3.9", None])
def test_a_node_without_a_usable_python_says_what_it_has(
    make: Make, tmp_path: Path, version: str | None
) -> None:
    server = make(settings=(f"SetEnv PATH={HOME}/bin",))
    programs = server.home / "bin"
    programs.mkdir()
    for name in ("sh", "timeout"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    if version is not None:
        (programs / "python3").write_text(f"#!/usr/bin/sh\necho 309 {version}\n")
        (programs / "python3").chmod(0o755)
    have = "python3 is 3.9" if version else "none that could be found"

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(WrongPython, match=have):
            await probe(connection)

    over_a_wire(server, tmp_path, act)


def test_files_of_a_run_are_put_into_its_place(make: Make, tmp_path: Path) -> None:
    server = make()
    film, note = tmp_path / "film.mp4", tmp_path / "note"
    film.write_bytes(bytes(SMALL + 1))
    note.write_bytes(b"note")

    async def act(connection: Connection, relay: Relay) -> None:
        facts = await probe(connection)
        place = f"{facts.rove}/runs/r/n01"
        there = server.home / ".rove" / "runs" / "r" / "n01"
        node = Deployed(facts.home, facts.rove, facts.python, ())
        files: dict[str, bytes | Path] = {"agent.json": b"{}", "files/0/film.mp4": film, "files/1/n": note}
        await put(connection, node, place, files)
        await put(connection, node, place, {"agent.json": b'{"new": 1}'})
        assert json.loads((there / "agent.json").read_text()) == {"new": 1}
        assert (there / "files/0/film.mp4").stat().st_size == SMALL + 1
        assert (there / "files/1/n").read_bytes() == b"note"
        modes = {path.stat().st_mode & 0o777 for path in there.rglob("*") if path.is_file()}
        assert modes == {0o600} and there.stat().st_mode & 0o777 == 0o700

    over_a_wire(server, tmp_path, act)


def test_enrolment_says_whether_nodes_can_be_deployed_to(make: Make, tmp_path: Path) -> None:
    """These are like this machine, so nothing has to be downloaded."""
    file = topology(tmp_path, make())
    told = enroll(file, "--yes", "--wheels", "--json")
    (entry,) = json.loads(told.output)["wheels"]
    assert told.exit_code == 0 and (entry["host"], entry["deployable"]) == ("n01", True)
    assert entry["downloaded"] == [] and entry["failed"] == {} and "linux" in entry["platform"]
    shown = enroll(file, "--wheels")
    assert shown.exit_code == 0 and "can be deployed to" in shown.output
