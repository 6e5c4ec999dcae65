"""One long-lived connection to a node: commands, programs and files, awaited and with time limits."""

import asyncio
import random
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import paramiko

from orchestrator.spec.inventory import Host
from orchestrator.ssh.command import Command, Completed, Session
from orchestrator.ssh.errors import CommandFailed, CommandTimeout, SudoRefused, TransferBroken, Unreachable
from orchestrator.ssh.host_keys import KnownHosts
from orchestrator.ssh.host_transport import HostTransport
from orchestrator.ssh.process import RemoteProcess
from orchestrator.ssh.threads import bounded, in_thread
from orchestrator.ssh.transfer import Transfer

CONNECT_S = 15.0
COMMAND_S = 30.0
TRANSFER_S = 600.0
_GRACE_S = 3.0
_KILL_AFTER_S = 1
_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 10.0
_AT_ONCE = 4
"""Limit of commands and transfers at once:
sshd allows ten channels a connection, and programs hold theirs.
"""
_TIMED_OUT = (124, 137)
"""Exit statuses of ``timeout`` when it had to end the command, or to kill it."""
_NOT_FOUND = 127

T = TypeVar("T")


class Connection:
    """Paths on the node are relative to the user's home; argv lists are quoted here and nowhere else."""

    def __init__(self, host: Host, known: KnownHosts) -> None:
        self.host = host
        self._known = known
        self._transport = HostTransport(host, known)
        self._opening = asyncio.Lock()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @classmethod
    async def open(cls, host: Host, known: KnownHosts, timeout: float = CONNECT_S) -> "Connection":
        """Makes one attempt. Raises Unreachable, HostKeyUnknown, HostKeyChanged or LoginRefused."""
        connection = cls(host, known)
        try:
            await connection._connect(timeout)
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def alive(self) -> bool:
        """Says whether the connection is alive, as far as is known here."""
        return self._transport.alive

    async def ensure(self, timeout: float) -> None:
        """Connects again if the connection is lost, and keeps trying for
        ``timeout`` seconds if nobody answers."""
        deadline = time.monotonic() + timeout
        delay = _FIRST_DELAY_S
        async with self._opening:
            while not self.alive:
                try:
                    await self._connect(max(min(CONNECT_S, deadline - time.monotonic()), 1.0))
                except Unreachable:
                    pause = delay * random.uniform(0.5, 1.5)  # many nodes come back at the same moment
                    if time.monotonic() + pause >= deadline:
                        raise
                    await asyncio.sleep(pause)
                    delay = min(2 * delay, _LONGEST_DELAY_S)

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = COMMAND_S,
        input: bytes = b"",
        sudo: bool = False,
    ) -> Completed:
        """Runs a command until it ends, or ends it after ``timeout``, on the node as well.

        Raises Unreachable, CommandTimeout or SudoRefused; a status other than 0 is not an error here.
        """
        ended = ["timeout", "-k", str(_KILL_AFTER_S), f"{timeout:g}", *argv]
        line = shlex.join(self._privileged(ended) if sudo else ended)
        async with self._turns:
            command = Command(self._session(line), input)
            begun = time.monotonic()
            try:
                done = await bounded(command.execute, command.abort, timeout + _GRACE_S)
            except TimeoutError:
                raise self._silent(argv) from None
        if done.status in _TIMED_OUT and time.monotonic() - begun >= timeout:
            raise CommandTimeout(self.host.name, f"{_short(argv)}: not done within {timeout:g} s")
        if sudo:
            self._check_sudo(done)
        return done

    async def output(
        self,
        argv: Sequence[str],
        *,
        timeout: float = COMMAND_S,
        input: bytes = b"",
        sudo: bool = False,
    ) -> str:
        """Returns the output of a command that must succeed. Raises
        CommandFailed besides what ``run`` raises."""
        done = await self.run(argv, timeout=timeout, input=input, sudo=sudo)
        if done.status != 0:
            message = _last_line(done.stderr) or _last_line(done.stdout) or f"status {done.status}"
            raise CommandFailed(self.host.name, f"{_short(argv)}: {message}")
        return done.stdout.decode(errors="replace")

    async def start(
        self, argv: Sequence[str], *, stderr: Path, sudo: bool = False, timeout: float = COMMAND_S
    ) -> RemoteProcess:
        """Starts a program that runs until it is told to end, over its streams. ``timeout`` is for its start.

        Its stderr is appended to the file; a refusal of sudo is found there, too.
        """
        session = self._session(shlex.join(self._privileged(argv) if sudo else argv))

        def begin() -> tuple[paramiko.Channel, BinaryIO]:
            log = stderr.open("ab", buffering=0)
            try:
                return session.begin(), log
            except BaseException:
                log.close()
                raise

        try:
            return await RemoteProcess.over(*await bounded(begin, session.abort, timeout))
        except TimeoutError:
            raise self._silent(argv) from None

    async def upload(
        self, local: Path, remote: str, *, mode: int = 0o600, timeout: float = TRANSFER_S
    ) -> str:
        """Uploads a file, completely or not at all; returns its SHA-256.
        Raises TransferBroken, DiskFull or Unreachable.

        Does not send again what is there already, in whole or in part. The directory must exist.
        """
        return await self._transferred(lambda file: file.upload(local, remote, mode), remote, timeout)

    async def download(
        self, remote: str, local: Path, size: int, digest: str, *, timeout: float = TRANSFER_S
    ) -> None:
        """Downloads exactly ``size`` bytes with that SHA-256, whatever the file is now."""
        await self._transferred(lambda file: file.download(remote, local, size, digest), remote, timeout)

    async def close(self) -> None:
        """Closes the connection. May be repeated. Current calls end with Unreachable or TransferBroken."""
        await asyncio.wrap_future(in_thread(self._transport.close))

    async def _connect(self, timeout: float) -> None:
        transport = HostTransport(self.host, self._known)
        try:
            await bounded(lambda: transport.open(timeout), transport.close, timeout + _GRACE_S)
        except TimeoutError:
            raise Unreachable(self.host.name, f"no connection within {timeout:g} s") from None
        self._transport, lost = transport, self._transport
        in_thread(lost.close)

    async def _transferred(self, act: Callable[[Transfer], T], remote: str, timeout: float) -> T:
        async with self._turns:
            transfer = Transfer(self.host.name, self._transport.transport)
            try:
                return await bounded(lambda: act(transfer), transfer.abort, timeout)
            except TimeoutError:
                raise TransferBroken(self.host.name, f"{remote}: not done within {timeout:g} s") from None

    def _privileged(self, argv: Sequence[str]) -> list[str]:
        if self.host.user == "root":
            return list(argv)
        if not self.host.profile.has_root:
            raise SudoRefused(self.host.name, f"this step needs root, and {self.host.profile} has none")
        # sudo's own messages are read below.
        return ["env", "LC_ALL=C", "sudo", "-n", "--", *argv]

    def _check_sudo(self, done: Completed) -> None:
        message = done.stderr.decode(errors="replace").lstrip()
        missing = done.status == _NOT_FOUND and "sudo" in message
        if done.status == 0 or not (missing or message.startswith(("sudo: ", "Sorry, user "))):
            return
        rule = f"{self.host.user} ALL=(ALL) NOPASSWD: ALL"
        hint = f"put the line '{rule}' into /etc/sudoers.d/rove there"
        raise SudoRefused(
            self.host.name, f"this step needs sudo without a password ({_last_line(done.stderr)}): {hint}"
        )

    def _session(self, line: str) -> Session:
        return Session(self.host.name, self._transport.transport, line)

    def _silent(self, argv: Sequence[str]) -> Unreachable:
        """Returns the error: the node should have ended the command itself by now, and reported it."""
        return Unreachable(self.host.name, f"does not answer any more ({_short(argv)})")


def _short(argv: Sequence[str]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= 80 else text[:79] + "…"


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
