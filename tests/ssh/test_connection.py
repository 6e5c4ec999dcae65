"""Connections to real sshd: logging in, commands, privilege, and when the other side is gone or hangs."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import RoveError
from orchestrator.spec.inventory import Host, Profile
from orchestrator.ssh import command
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import (
    CommandFailed,
    CommandTimeout,
    HostKeyChanged,
    HostKeyUnknown,
    LoginRefused,
    SshError,
    SudoRefused,
    Unreachable,
)
from orchestrator.ssh.fleet import on_all
from orchestrator.ssh.host_keys import KnownHosts
from tests.ssh.conftest import Make
from tests.ssh.patience import until
from tests.ssh.relay import relay_to
from tests.ssh.sshd import HOME, SshServer, known_hosts, new_key

NO_SUDO = pytest.mark.skipif(shutil.which("sudo") is None, reason="needs sudo")


@asynccontextmanager
async def connected(host: Host, known: KnownHosts) -> AsyncIterator[Connection]:
    connection = await Connection.open(host, known)
    try:
        yield connection
    finally:
        await connection.close()


def on(server: SshServer, folder: Path, act: Callable[[Connection], Awaitable[None]]) -> None:
    async def use() -> None:
        async with connected(server.host, known_hosts(folder / "known", server)) as connection:
            await act(connection)

    asyncio.run(use())


def failure(host: Host, known: KnownHosts, timeout: float = 10.0) -> SshError:
    """How opening a connection fails."""
    with pytest.raises(SshError) as raised:
        asyncio.run(Connection.open(host, known, timeout))
    return raised.value


async def lost(connection: Connection) -> None:
    await until(lambda: not connection.alive)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=10)


def commands(server: SshServer) -> list[str]:
    """Of all processes that run on the node."""
    return [line.replace(b"\0", b" ").decode() for line in server.command_lines().values()]


def test_a_command_gets_its_arguments_and_input_whole_and_runs_as_the_user(
    six: list[SshServer], tmp_path: Path
) -> None:
    odd = ["a b", "it's", '"', "$HOME", "*", "new\nline", "", "ü", "; touch x", "-n"]

    async def act(connection: Connection) -> None:
        done = await connection.run(["printf", "%s\\0", *odd])
        assert done.stdout.decode().split("\0")[:-1] == odd
        assert await connection.output(["id", "-un"]) == "pi\n"
        assert await connection.output(["pwd"]) == f"{HOME}\n"
        data = bytes(range(256)) * 4096
        assert (await connection.run(["cat"], input=data)).stdout == data
        done = await connection.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
        assert done == command.Completed(3, b"out\n", b"err\n")
        with pytest.raises(CommandFailed, match=r"n01: sh -c .*: no room here"):
            await connection.output(["sh", "-c", "echo no room here >&2; exit 1"])

    on(six[0], tmp_path, act)


def test_output_is_bounded(six: list[SshServer], tmp_path: Path) -> None:
    async def act(connection: Connection) -> None:
        done = await connection.run(["head", "-c", str(command.MOST_OUTPUT + 100_000), "/dev/zero"])
        assert (done.status, len(done.stdout), done.truncated) == (0, command.MOST_OUTPUT, True)

    on(six[0], tmp_path, act)


def test_a_command_that_says_more_and_more_is_broken_off(
    six: list[SshServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST_READ", 6_000_000)

    async def act(connection: Connection) -> None:
        for target in ("", " >&2"):
            with pytest.raises(CommandFailed, match="a command wrote more than 6000000 bytes"):
                await connection.run(["sh", "-c", f"exec cat /dev/zero{target}"], timeout=25)
        assert (await connection.run(["true"])).status == 0

    on(six[0], tmp_path, act)


def test_a_command_that_takes_too_long_is_ended_on_the_node_too(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection) -> None:
        with pytest.raises(CommandTimeout, match=r"n01: sh -c .* not done within 0.3 s"):
            await connection.run(["sh", "-c", "sleep 321 & sleep 321"], timeout=0.3)
        assert not [line for line in commands(server) if "sleep" in line]
        assert await connection.output(["echo", "goes on"]) == "goes on\n"

    on(server, tmp_path, act)


def test_many_nodes_at_once_each_with_its_own_outcome(
    six: list[SshServer], make: Make, tmp_path: Path
) -> None:
    off = make("off")
    off.stop()
    changed = make("changed")
    known = known_hosts(tmp_path / "known", *six, off, changed)
    changed.renew_host_key()
    changed.restart()
    hosts = {server.name: server.host for server in (*six, off, changed)}

    async def name_of(host: Host) -> str:
        async with connected(host, known) as connection:
            return await connection.output(["sh", "-c", 'echo "$SSH_CONNECTION"'])

    outcomes = asyncio.run(on_all(hosts, name_of, at_once=4))
    assert list(outcomes) == list(hosts)
    assert isinstance(outcomes["off"], Unreachable) and "connection refused" in outcomes["off"].reason
    assert isinstance(outcomes["changed"], HostKeyChanged)
    for server in six:
        answer = outcomes[server.name]
        assert not isinstance(answer, RoveError) and answer.split()[2] == server.address


def test_an_unknown_and_a_changed_host_key(make: Make, tmp_path: Path) -> None:
    server = make()
    unknown = failure(server.host, KnownHosts(tmp_path / "empty"))
    assert isinstance(unknown, HostKeyUnknown) and "rove enroll" in str(unknown)
    known = known_hosts(tmp_path / "known", server)
    before = server.host_key.fingerprint
    for kind, now in (("ed25519", "SHA256:"), ("ecdsa", "one of another type")):
        server.renew_host_key(kind)
        server.restart()
        changed = failure(server.host, known)
        assert isinstance(changed, HostKeyChanged)
        assert before in str(changed) and f"now {now}" in str(changed)
    # It was not told who would have logged in.
    assert "pi" not in (server.folder / "sshd.log").read_text().split()


def test_a_host_may_have_a_key_of_any_kind(make: Make, tmp_path: Path) -> None:
    for kind in ("rsa", "ecdsa"):
        server = make(kind)
        server.renew_host_key(kind)
        server.restart()

        async def act(connection: Connection) -> None:
            assert (await connection.run(["true"])).status == 0

        on(server, tmp_path / kind, act)


def test_who_may_not_log_in(six: list[SshServer], tmp_path: Path) -> None:
    server = six[0]
    known = known_hosts(tmp_path / "known", server)
    stranger = new_key(tmp_path / "stranger")
    locked = new_key(tmp_path / "locked", passphrase="secret")
    public = new_key(tmp_path / "public")
    public.chmod(0o644)
    (tmp_path / "noise").write_text("noise")
    (tmp_path / "noise").chmod(0o600)
    cases = [
        (
            replace(server.host, user="nobody-here"),
            f"does not accept this key: ssh-copy-id -i {server.client_key}",
        ),
        (replace(server.host, key=str(stranger)), f"does not accept this key: ssh-copy-id -i {stranger}"),
        (
            replace(server.host, key=str(locked)),
            f"has a passphrase; the SSH agent can hold it: ssh-add {locked}",
        ),
        (replace(server.host, key=str(public)), f"others can read the key {public}: chmod 600"),
        (replace(server.host, key="/nowhere/id"), "the key /nowhere/id cannot be read: No such file"),
        (replace(server.host, key=str(tmp_path / "noise")), "is not a private key that can be used"),
    ]
    for host, reason in cases:
        refused = failure(host, known)
        assert isinstance(refused, LoginRefused)
        assert reason in str(refused)


def test_keys_of_the_agent_and_of_the_home_directory(
    six: list[SshServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = six[0]
    known = known_hosts(tmp_path / "known", server)
    host = replace(server.host, key=None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert "there is no key to log in with" in str(failure(host, known))

    async def works() -> bool:
        async with connected(host, known) as connection:
            return (await connection.run(["true"])).status == 0

    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        for _ in range(200):
            if socket.exists():
                break
            time.sleep(0.01)
        assert "there is no key to log in with" in str(failure(host, known))
        subprocess.run(["ssh-add", "-q", str(server.client_key)], check=True, timeout=10)
        assert asyncio.run(works())
    finally:
        agent.terminate()
        agent.wait(10)
    monkeypatch.delenv("SSH_AUTH_SOCK")
    (tmp_path / ".ssh").mkdir()
    shutil.copy(server.client_key, tmp_path / ".ssh" / "id_ed25519")
    assert asyncio.run(works())


@NO_SUDO
def test_privilege_by_sudo_or_a_clear_word(make: Make, tmp_path: Path) -> None:
    async def refused(connection: Connection) -> None:
        with pytest.raises(SudoRefused, match=r"n01: .*\(sudo: a password is required\): .*NOPASSWD: ALL"):
            await connection.run(["id", "-u"], sudo=True)

    async def given(connection: Connection) -> None:
        assert await connection.output(["id", "-u"], sudo=True) == "0\n"
        done = await connection.run(["ls", "/nowhere"], sudo=True)
        assert done.status == 2  # the command's own failure is no refusal
        with pytest.raises(CommandTimeout):
            await connection.run(["sleep", "321"], sudo=True, timeout=0.3)
        assert not [line for line in commands(trusting) if "sleep" in line]

    on(make(), tmp_path, refused)
    trusting = make("trusting", sudo=True)
    on(trusting, tmp_path, given)


def test_there_is_no_root_on_a_phone(six: list[SshServer], tmp_path: Path) -> None:
    async def use() -> None:
        phone = replace(six[0].host, profile=Profile.TERMUX)
        async with connected(phone, known_hosts(tmp_path / "known", six[0])) as connection:
            with pytest.raises(SudoRefused, match="this step needs root, and termux has none"):
                await connection.run(["id"], sudo=True)

    asyncio.run(use())


def test_a_server_that_hangs_is_unreachable_before_and_after_connecting(make: Make, tmp_path: Path) -> None:
    server = make()
    known = known_hosts(tmp_path / "known", server)

    async def act() -> None:
        async with connected(server.host, known) as connection:
            server.suspend()
            with pytest.raises(Unreachable, match="does not answer any more"):
                await connection.run(["true"], timeout=0.2)
            with pytest.raises(Unreachable, match="accepts the connection, but does not answer"):
                await Connection.open(server.host, known, 0.5)
            server.resume()
            assert (await connection.run(["true"])).status == 0

    asyncio.run(act())


def test_a_lost_connection_is_told_and_made_again(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection) -> None:
        running = asyncio.create_task(connection.run(["sleep", "20"]))
        await asyncio.sleep(0.2)
        server.cut()
        with pytest.raises(Unreachable, match="lost"):
            await running
        with pytest.raises(Unreachable, match="the connection is lost"):
            await connection.run(["true"])
        await connection.ensure(10)
        assert (await connection.run(["true"])).status == 0
        server.stop()
        await lost(connection)
        again = asyncio.create_task(connection.ensure(20))
        await asyncio.sleep(0.5)
        server.start()
        await again
        assert (await connection.run(["true"])).status == 0
        server.stop()
        await lost(connection)
        with pytest.raises(Unreachable, match="connection refused"):
            await connection.ensure(0.5)

    on(server, tmp_path, act)


def test_what_is_not_an_ssh_server(tmp_path: Path, make: Make) -> None:
    server = make()
    known = known_hosts(tmp_path / "known", server)

    async def act() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 200)
            writer.close()

        web = await asyncio.start_server(greet, "127.0.0.1", 0)
        host = replace(server.host, address="127.0.0.1", port=web.sockets[0].getsockname()[1])
        with pytest.raises(Unreachable, match="does not speak SSH with us"):
            await Connection.open(host, known, 5)
        web.close()

    asyncio.run(act())
    assert "name or service not known" in str(
        failure(replace(server.host, address="no.such.host.invalid"), known)
    )


def test_a_cancelled_command_lets_go_at_once(six: list[SshServer], tmp_path: Path) -> None:
    async def act(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await connection.run(["sleep", "2"])
        assert await connection.output(["echo", "goes on"]) == "goes on\n"

    on(six[0], tmp_path, act)


def test_more_commands_at_once_than_sshd_has_channels_for(six: list[SshServer], tmp_path: Path) -> None:
    async def act(connection: Connection) -> None:
        answers = await asyncio.gather(*(connection.output(["echo", str(i)]) for i in range(25)))
        assert answers == [f"{i}\n" for i in range(25)]

    on(six[1], tmp_path, act)


def test_commands_that_end_at_once_leave_the_connection_as_it_was(
    six: list[SshServer], tmp_path: Path
) -> None:
    """Their channels are closed from both sides while there still is an end of input to be told."""

    async def act(connection: Connection) -> None:
        for _ in range(60):
            await asyncio.gather(*(connection.run(["true"]) for _ in range(4)))

    on(six[1], tmp_path, act)


def test_a_node_behind_a_jump_host(make: Make, tmp_path: Path) -> None:
    gateway, inner = make("gateway"), make("inner")
    host = replace(inner.host, jump=gateway.host)

    async def client_port() -> str:
        async with connected(host, known_hosts(tmp_path / "known", gateway, inner)) as connection:
            assert len(gateway.processes()) > 1
            return await connection.output(["id", "-un"])

    assert asyncio.run(client_port()) == "pi\n"
    only_inner = failure(host, known_hosts(tmp_path / "inner-only", inner))
    assert isinstance(only_inner, HostKeyUnknown) and only_inner.host == "gateway"
    inner.stop()
    known = known_hosts(tmp_path / "known", gateway, inner)
    gone = failure(host, known)
    assert isinstance(gone, Unreachable) and "cannot be reached through" in str(gone) and gone.host == "inner"
    gateway.stop()
    assert failure(host, known).host == "gateway"


def test_a_wire_that_goes_dead_does_not_hold_up_a_close(six: list[SshServer], tmp_path: Path) -> None:
    async def act() -> None:
        async with relay_to(six[2].host) as relay:
            connection = await Connection.open(relay.host, known_hosts(tmp_path / "known", six[2]))
            relay.hold()
            with pytest.raises(Unreachable):
                await connection.run(["true"], timeout=0.1)
            async with asyncio.timeout(5):
                await connection.close()

    asyncio.run(act())


def test_a_server_in_a_network_namespace_and_a_wire_that_is_pulled(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nodes on an emulated radio have one: SSH over the control network."""
    monkeypatch.setattr("orchestrator.ssh.host_transport.KEEP_ALIVE_S", 1)
    monkeypatch.setattr("orchestrator.ssh.host_transport.GONE_S", 1)
    number = os.getpid()
    name, link = f"testssh-{number}", f"tssh{number}"
    network = f"198.18.{number % 256}"
    try:
        ip("netns", "add", name)
        ip("link", "add", link, "type", "veth", "peer", "name", "control", "netns", name)
        ip("address", "add", f"{network}.1/30", "dev", link)
        ip("link", "set", link, "up")
        ip("-n", name, "address", "add", f"{network}.2/30", "dev", "control")
        ip("-n", name, "link", "set", "control", "up")
        server = make(address=f"{network}.2", port=22, network=Path("/run/netns", name))

        async def act(connection: Connection) -> None:
            assert "control" in await connection.output(["cat", "/proc/net/dev"])
            silent = await connection.start(["cat"], stderr=tmp_path / "stderr")
            await asyncio.to_thread(ip, "link", "set", link, "down")
            assert await silent.wait() is None  # nobody says so: silence does
            assert not connection.alive
            await silent.close()

        on(server, tmp_path, act)
        ip("link", "delete", link)  # words that nobody will hear may keep the namespace for a while
    finally:
        ip("netns", "delete", name)


def test_stopping_a_node_ends_all_that_runs_there(make: Make, tmp_path: Path) -> None:
    """The nodes' own promise, which the tests of faults rest on."""
    server = make()

    async def act(connection: Connection) -> None:
        await connection.run(["sh", "-c", "setsid sleep 321 >/dev/null 2>&1 &"])
        assert any("sleep" in line for line in commands(server))
        ran = server.processes()
        server.stop()
        await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ran))

    on(server, tmp_path, act)
