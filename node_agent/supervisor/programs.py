"""Starts and ends programs as the supervisor's children."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from node_agent.agent.control_lines import LONGEST_LINE
from node_agent.host.marked_processes import MARK, PLACE
from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.order import Program

_CARRIED = ("PYTHONPATH", "PYTHONSAFEPATH", MARK, PLACE)
"""Variables that sudo would drop."""
_LAST_WORDS = 4096
_LONGEST_LINE = 64 * 1024
"""Also asyncio's own limit."""
_KILL_S = 3.0


class CannotStart(Exception):
    """The message is one sentence for the user."""


class Readiness(Struct, frozen=True):
    """A program's first line: that it is ready, or why not."""

    ready: bool = False
    error: str = ""
    notes: tuple[str, ...] = ()


_READINESS: Checked[Readiness] = Checked(Readiness, _LONGEST_LINE)


def with_lifeline(argv: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "node_agent.supervisor.lifeline", "--", *argv]


def with_rights(
    argv: Sequence[str], privileged: bool, environment: Mapping[str, str], user: int
) -> list[str]:
    """Returns the command that gives the program the rights and the environment it needs."""
    if not privileged or user == 0:
        return list(argv)
    carried = [f"{name}={environment[name]}" for name in _CARRIED if name in environment]
    # Otherwise root's compiled files in the user's directories could only be removed by root.
    return ["sudo", "-n", "--", "env", "PYTHONDONTWRITEBYTECODE=1", *carried, *argv]


class Log:
    """A program's log file, and its last line."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin = file.stat().st_size if file.exists() else 0

    def open(self) -> int:
        return os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    def last_line(self) -> str:
        with suppress(OSError), self._file.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._begin, size - _LAST_WORDS))
            lines = file.read(_LAST_WORDS).decode(errors="replace").strip().splitlines()
            return lines[-1].strip() if lines else ""
        return ""


def explained(name: str, status: int, log: Log) -> str:
    if status < 0:
        return f"{name} was ended by {signal.Signals(-status).name}"
    last = log.last_line()
    return f"{name} ended with status {status}" + (f": {last}" if last else "")


async def _ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), seconds)
        return True
    return False


class HeldProgram:
    """A program that reports when it is ready, and ends when its standard input is closed."""

    def __init__(self, program: Program, process: asyncio.subprocess.Process, log: Log) -> None:
        self.name = program.name
        self._process = process
        self._log = log

    @classmethod
    async def start(
        cls, program: Program, argv: Sequence[str], record: Path, timeout: float, grace: float
    ) -> tuple[Self, tuple[str, ...]]:
        """Returns the program and its notes. Raises CannotStart after it has
        ended, or had ``grace`` seconds for that."""
        log = Log(record / program.log)
        command = with_rights(argv, program.privileged, os.environ, os.geteuid())
        output = log.open()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            needs = (
                "it needs root, and there is no sudo" if command[0] == "sudo" else f"there is no {command[0]}"
            )
            raise CannotStart(f"{program.name}: {needs}") from error
        except OSError as error:
            raise CannotStart(f"{program.name}: {command[0]}: {error.strerror}") from error
        finally:
            os.close(output)
        held = cls(program, process, log)
        try:
            said = await held._readiness(timeout)
            if not said.ready:
                raise CannotStart(f"{program.name}: {said.error or 'it is not ready and gives no reason'}")
        except BaseException:
            await held.end(grace)
            raise
        return held, said.notes

    async def ended(self) -> str:
        """Waits for its end, and returns how it ended."""
        return explained(self.name, await self._process.wait(), self._log)

    async def end(self, grace: float) -> str:
        """Ends the program. Returns what went wrong; empty if nothing did."""
        if self._process.returncode is not None:
            return ""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if await _ends_within(self._process, grace):
            status = self._process.returncode
            return "" if status in (0, 128 + signal.SIGTERM) else explained(self.name, status or 0, self._log)
        with suppress(ProcessLookupError, PermissionError):  # root's process is not ours to kill
            self._process.kill()
        if await _ends_within(self._process, _KILL_S):
            return f"{self.name} had to be killed"
        return f"{self.name} does not end, process {self._process.pid}"

    async def _readiness(self, timeout: float) -> Readiness:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout):
                line = await self._process.stdout.readline()
                if not line:
                    raise CannotStart(await self.ended())
        except TimeoutError:
            raise CannotStart(f"{self.name}: not ready within {timeout:g} s") from None
        except ValueError:
            raise CannotStart(f"{self.name}: its first line is longer than {_LONGEST_LINE} bytes") from None
        try:
            return _READINESS.decode(line)
        except Refused:
            said = line[:_LAST_WORDS].decode(errors="replace").strip()
            raise CannotStart(f"{self.name}: {said}") from None


class AgentChild:
    """An agent's process and its control stream. The agent also ends when the stream is closed."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        log: Log,
    ) -> None:
        self.reader, self.writer = streams
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, program: Program, record: Path) -> Self:
        """Starts the agent. Raises CannotStart."""
        log = Log(record / program.log)
        output = log.open()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *program.argv,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise CannotStart(f"{program.name}: {program.argv[0]}: {error.strerror}") from error
        finally:
            os.close(output)
        return cls(process, await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE), log)

    async def ended(self) -> tuple[int, str]:
        """Waits for its end, and returns its status, as a number and in words."""
        status = await self._process.wait()
        return status, explained("the agent", status, self._log)

    async def ends_within(self, seconds: float) -> bool:
        return await _ends_within(self._process, seconds)

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
