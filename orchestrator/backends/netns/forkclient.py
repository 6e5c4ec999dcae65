"""The orchestrator's side of the fork server: starts it and programs on nodes, and learns how they end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.backends.netns import control_group, forkserver, names
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.marks import Mark
from orchestrator.services.program import Argv, Entry

_CLOSE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class User:
    uid: int
    gid: int


Stream = Path | int | None
"""A file to append to (or read from), an open descriptor, or /dev/null."""


@dataclass(frozen=True)
class Launch:
    """A program, its namespace, and what it is given. ``limit_files``: its log may not fill the disk."""

    program: Argv | Entry
    namespace: Path
    directory: Path = Path("/")
    stdin: Stream = None
    stdout: Stream = None
    stderr: Stream = None
    environment: Mapping[str, str] = field(default_factory=dict)
    user: User | None = None
    limit_files: bool = False


class Child:
    """A program on a node. It leads a process group of its own."""

    def __init__(self, server: "ForkServer", number: int, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._number = number
        self._status: int | None = None
        self._ended = asyncio.Event()

    async def wait(self) -> int:
        """Returns the exit status, or minus the signal that ended it, as in ``subprocess``."""
        await self._ended.wait()
        if self._status is None:
            raise ForkServerError(f"the fork server is gone, and process {self.pid} with it")
        return self._status

    async def signal(self, number: signal.Signals) -> None:
        """Signals the whole process group; does nothing if its leader has ended."""
        if not self._ended.is_set():
            await self._server.send({"id": self._number, "signal": number})

    def end(self, status: int | None) -> None:
        self._status = status
        self._ended.set()


class ForkServer:
    """Owns the server process. Leaving the context ends it and every program it started."""

    def __init__(self, mark: Mark, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._mark = mark
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._group = control_group.create_around(mark, process.pid)
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._starting: dict[int, asyncio.Future[Child]] = {}
        self._children: dict[int, Child] = {}
        self._sending = asyncio.Lock()
        self._next = 0
        self._lost = ""
        self._loop.add_reader(control, self._on_readable)

    @property
    def group(self) -> Path | None:
        """The control group of its programs, if there is one."""
        return self._group.path if self._group is not None else None

    @classmethod
    async def start(cls, mark: Mark, preload: Sequence[str] = (), timeout: float = 30.0) -> Self:
        """``preload``: modules to import before any fork, or
        ``module:function:argument`` for calls whose results every child shares."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = _start_process(mark, theirs.fileno(), preload)
        ours.setblocking(False)
        server = cls(mark, process, ours)
        try:
            async with asyncio.timeout(timeout):
                await server._ready
        except BaseException as error:
            await server.close()
            if isinstance(error, TimeoutError):
                raise ForkServerError(f"the fork server was not ready after {timeout} s") from error
            raise
        return server

    async def spawn(self, launch: Launch, timeout: float = 10.0) -> Child:
        """Returns when the program runs (in its namespace, or executed).
        Raises ForkServerError if it cannot."""
        number = self._next
        self._next += 1
        request = {
            "id": number,
            "environment": {**launch.environment, **self._mark.environment},
            "directory": str(launch.directory),
            "limit_files": launch.limit_files,
            "user": None if launch.user is None else {"uid": launch.user.uid, "gid": launch.user.gid},
            **_request(launch.program),
        }
        started: asyncio.Future[Child] = self._loop.create_future()
        self._starting[number] = started
        try:
            with ExitStack() as opened:
                async with asyncio.timeout(timeout):
                    await self.send(request, _open_all(launch, opened))
                    return await started
        except TimeoutError as error:
            raise ForkServerError(f"{launch.program} did not start within {timeout} s") from error
        finally:
            self._starting.pop(number, None)

    async def send(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        if self._lost:
            raise ForkServerError(self._lost)
        data = json.dumps(request).encode()
        if len(data) > forkserver.MESSAGE_SIZE:
            raise ForkServerError(f"a request of {len(data)} bytes is too large: pass a file instead")
        async with self._sending:
            while True:
                try:
                    socket.send_fds(self._control, [data], descriptors)
                    return
                except BlockingIOError:
                    await self._writable()
                except OSError as error:
                    raise ForkServerError(f"the fork server is gone: {error.strerror}") from error

    async def _writable(self) -> None:
        room: asyncio.Future[None] = self._loop.create_future()

        def has_room() -> None:
            if not room.done():
                room.set_result(None)

        self._loop.add_writer(self._control, has_room)
        try:
            await room
        finally:
            self._loop.remove_writer(self._control)

    def _on_readable(self) -> None:
        with suppress(BlockingIOError):
            while data := self._receive():
                self._take(json.loads(data))
            self._lose("the fork server is gone")

    def _receive(self) -> bytes:
        try:
            return self._control.recv(forkserver.MESSAGE_SIZE)
        except ConnectionResetError:
            return b""

    def _take(self, answer: dict[str, Any]) -> None:
        if "ready" in answer:
            self._ready.set_result(None)
        elif "failed" in answer:
            self._lose(answer["failed"])
        elif "status" in answer:
            if child := self._children.pop(answer["id"], None):
                child.end(answer["status"])
        elif "pid" in answer:
            child = Child(self, answer["id"], answer["pid"])
            self._children[answer["id"]] = child
            self._settle(answer["id"], child)
        else:
            self._settle(answer["id"], ForkServerError(answer["error"]))

    def _settle(self, number: int, outcome: "Child | ForkServerError") -> None:
        started = self._starting.get(number)
        if started is None or started.done():
            return  # nobody waits any more
        if isinstance(outcome, Child):
            started.set_result(outcome)
        else:
            started.set_exception(outcome)

    def _lose(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = reason
        self._loop.remove_reader(self._control)
        if not self._ready.done():
            self._ready.set_exception(ForkServerError(reason))
        for number in list(self._starting):
            self._settle(number, ForkServerError(reason))
        for child in self._children.values():
            child.end(None)

    async def close(self) -> None:
        """Ends the server and all it started, at once. May be repeated."""
        self._lose("the fork server was closed")
        self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, _CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if self._group is not None:
            self._group.kill()
            await asyncio.to_thread(self._group.remove, _CLOSE_TIMEOUT_S)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _request(program: Argv | Entry) -> dict[str, Any]:
    if isinstance(program, Argv):
        return {"argv": program.argv}
    return {"entry": program.entry, "arguments": dict(program.arguments)}


def _start_process(mark: Mark, control: int, preload: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", forkserver.__name__, str(control), str(os.getpid()), *preload],
        pass_fds=[control],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **mark.environment},
        start_new_session=True,
    )


def _open_all(launch: Launch, opened: ExitStack) -> list[int]:
    network = names.open_namespace(launch.namespace)
    if network is None:
        raise ForkServerError(f"{launch.namespace} is not a network namespace")
    opened.callback(os.close, network)
    streams = (
        _open_stream(launch.stdin, os.O_RDONLY, opened),
        _open_stream(launch.stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND, opened),
        _open_stream(launch.stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND, opened),
    )
    return [network, *streams]


def _open_stream(stream: Stream, flags: int, opened: ExitStack) -> int:
    if isinstance(stream, int):
        return stream
    try:
        descriptor = os.open(stream or os.devnull, flags | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ForkServerError(f"cannot open {stream}: {error.strerror}") from error
    opened.callback(os.close, descriptor)
    return descriptor
