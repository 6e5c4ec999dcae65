"""Files to and from real sshd: whole or not there, resumed after a cut, and what is said if it cannot be."""

import asyncio
import hashlib
import os
import random
from pathlib import Path

import pytest

from orchestrator.ssh import transfer
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import DiskFull, TransferBroken
from tests.ssh.conftest import Make
from tests.ssh.patience import until
from tests.ssh.relay import Relay, over_a_wire
from tests.ssh.sshd import FIRST_ID

MB = 1_000_000


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".part")]


def test_there_and_back(make: Make, tmp_path: Path) -> None:
    server = make()
    local, back = tmp_path / "local", tmp_path / "back"

    async def act(connection: Connection, relay: Relay) -> None:
        for size in (0, 1, 32 * 1024, 3 * MB):
            local.write_bytes(content(size))
            digest = await connection.upload(local, "a file", mode=0o640)
            there = server.home / "a file"
            assert there.read_bytes() == content(size)
            assert (there.stat().st_uid, there.stat().st_mode & 0o777) == (FIRST_ID, 0o640)
            await connection.download("a file", back, size, digest)
            assert back.read_bytes() == content(size)
        # What is there is neither sent nor fetched again.
        relay.forget()
        await connection.upload(local, "a file")
        await connection.download("a file", back, size, digest)
        assert relay.sent + relay.received < 100_000
        assert not parts(server.home) and not parts(tmp_path)

    over_a_wire(server, tmp_path, act)


def test_an_upload_cut_in_the_middle_goes_on_from_there(make: Make, tmp_path: Path) -> None:
    server = make()
    local = tmp_path / "local"
    local.write_bytes(content(6 * MB))
    (server.home / "file").write_bytes(b"the old one")
    os.chown(server.home / "file", FIRST_ID, FIRST_ID)

    async def act(connection: Connection, relay: Relay) -> None:
        relay.cut_after = 4 * MB
        with pytest.raises(TransferBroken, match="n01: file: the connection was lost"):
            await connection.upload(local, "file")
        assert (server.home / "file").read_bytes() == b"the old one"
        (part,) = parts(server.home)
        kept = part.stat().st_size
        assert kept > MB
        relay.forget()
        await connection.ensure(10)
        await connection.upload(local, "file")
        assert relay.sent < 6 * MB - kept + 200_000
        assert (server.home / "file").read_bytes() == local.read_bytes()
        assert not parts(server.home)

    over_a_wire(server, tmp_path, act)


def test_a_download_cut_in_the_middle_goes_on_from_there(make: Make, tmp_path: Path) -> None:
    server = make()
    (server.home / "file").write_bytes(content(6 * MB))
    here = tmp_path / "here"
    here.mkdir()

    async def act(connection: Connection, relay: Relay) -> None:
        relay.cut_after = 4 * MB
        with pytest.raises(TransferBroken, match="n01: file: the connection was lost"):
            await connection.download("file", here / "file", 6 * MB, digest_of(content(6 * MB)))
        (part,) = parts(here)
        kept = part.stat().st_size
        assert kept > MB and not (here / "file").exists()
        relay.forget()
        await connection.ensure(10)
        await connection.download("file", here / "file", 6 * MB, digest_of(content(6 * MB)))
        assert relay.received < 6 * MB - kept + 200_000
        assert (here / "file").read_bytes() == content(6 * MB)
        assert [path.name for path in here.iterdir()] == ["file"]

    over_a_wire(server, tmp_path, act)


def test_a_part_that_was_damaged_is_not_built_upon(make: Make, tmp_path: Path) -> None:
    server = make()
    local, back = tmp_path / "local", tmp_path / "back"
    local.write_bytes(content(MB))

    async def act(connection: Connection, relay: Relay) -> None:
        digest = await connection.upload(local, "file")
        await connection.output(["rm", "file"])
        torn = content(MB)[: MB // 2 - 4096] + bytes(4096)  # as after a power cut
        await connection.output(["tee", f"file.{digest[:16]}.part"], input=torn)
        await connection.upload(local, "file")
        (tmp_path / f".back.{digest[:16]}.part").write_bytes(torn)
        await connection.download("file", back, MB, digest)
        assert back.read_bytes() == (server.home / "file").read_bytes() == content(MB)

    over_a_wire(server, tmp_path, act)


def test_a_full_disk_is_named_and_left_as_it_was(make: Make, tmp_path: Path) -> None:
    server = make(disk=2 * MB)
    local = tmp_path / "local"
    local.write_bytes(content(3 * MB))

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(DiskFull, match=r"n01: no room for big: \d+ more bytes are needed, \d+ are free"):
            await connection.upload(local, "big")
        assert await connection.output(["ls", "-A"]) == ""
        local.write_bytes(content(MB))
        await connection.upload(local, "small")

    over_a_wire(server, tmp_path, act)


def test_what_cannot_be_transferred(make: Make, tmp_path: Path) -> None:
    server = make()
    local = tmp_path / "local"
    local.write_bytes(b"x")

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(TransferBroken, match="n01: no/such/file: no such file"):
            await connection.upload(local, "no/such/file")
        with pytest.raises(TransferBroken, match="n01: /etc/file: permission denied"):
            await connection.upload(local, "/etc/file")
        with pytest.raises(TransferBroken, match="n01: missing: no such file"):
            await connection.download("missing", tmp_path / "missing", 1, digest_of(b"x"))
        with pytest.raises(TransferBroken, match="n01: /etc/shadow: permission denied"):
            await connection.download("/etc/shadow", tmp_path / "shadow", 1, digest_of(b"x"))
        with pytest.raises(TransferBroken, match="n01: /dev/zero: not a file"):
            await connection.download("/dev/zero", tmp_path / "zero", 1, digest_of(b"x"))
        assert (await connection.run(["true"])).status == 0

    over_a_wire(server, tmp_path, act)


def test_a_transfer_without_progress_is_broken_off(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "STALL_S", 0.5)
    server = make()
    local = tmp_path / "local"
    local.write_bytes(content(20 * MB))

    async def act(connection: Connection, relay: Relay) -> None:
        sending = asyncio.create_task(connection.upload(local, "file"))
        await until(lambda: relay.sent > MB)
        relay.hold()
        with pytest.raises(TransferBroken, match=r"n01: file: no progress for 0.5 s"):
            await sending

    over_a_wire(server, tmp_path, act)


def test_a_transfer_has_an_end(make: Make, tmp_path: Path) -> None:
    server = make()
    local = tmp_path / "local"
    local.write_bytes(content(20 * MB))

    async def act(connection: Connection, relay: Relay) -> None:
        with pytest.raises(TransferBroken, match=r"n01: file: not done within 0.2 s"):
            await connection.upload(local, "file", timeout=0.2)
        assert (await connection.run(["true"])).status == 0

    over_a_wire(server, tmp_path, act)


def test_a_download_ends_at_the_announced_size_whatever_comes(make: Make, tmp_path: Path) -> None:
    """On this node the programs that a file is read with never end."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("tail", "head"):
        (programs / name).write_text("#!/bin/sh\nexec cat /dev/zero\n")
        (programs / name).chmod(0o755)
    server = make(mounts={programs: "/usr/local/bin"})
    (server.home / "file").write_bytes(content(1000))
    here = tmp_path / "here"
    here.mkdir()

    async def act(connection: Connection, relay: Relay) -> None:
        async with asyncio.timeout(10):
            with pytest.raises(TransferBroken, match="n01: file: arrived damaged"):
                await connection.download("file", here / "file", 1000, digest_of(content(1000)))
        assert relay.received < 8 * MB
        assert list(here.iterdir()) == []
        await connection.download("file", here / "false", 1000, digest_of(bytes(1000)))
        assert (here / "false").read_bytes() == bytes(1000)
        assert (here / "false").stat().st_mode & 0o777 == 0o600

    over_a_wire(server, tmp_path, act)
