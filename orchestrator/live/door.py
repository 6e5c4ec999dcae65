"""The door of a run that goes on: a socket in its directory, through which others on this machine watch it.

The process of the run opens it (``open_door``); whoever watches uses ``node_metrics`` and ``Watching``:

    samples = await node_metrics(directory, "n03", timeout=3.0)

    async with Watching(directory):  # records of remote nodes come to tmp/live/<node> meanwhile
        ...

One request is one line of JSON, and so is its answer. The socket is the user's own, and goes with the run.
"""

import asyncio
import errno
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Literal

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.bridge import is_own
from node_agent.telemetry.metrics import Sample
from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line
from orchestrator.live.desk import MetricsDesk
from orchestrator.live.mirror import Mirror
from orchestrator.runs import journal as journals
from orchestrator.runs.backend import Backend, NodeNotSeen
from orchestrator.runs.run_directory import RunDirectory

SOCKET = "live.sock"
MOST_REQUEST_BYTES = 4096
MOST_ANSWER_BYTES = 8 * 1024 * 1024
MOST_CLIENTS = 64
IDLE_S = 60.0
"""A client that says nothing for so long, and does not watch, is disconnected."""
RECONNECT_S = 1.0
_PRIVATE = 0o600


class NotLive(RoveError):
    """The run does not go on, or what was asked for cannot be had from it now."""


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """``metrics`` of ``node``, or ``watch``: until the connection is closed, the records of remote nodes are
    brought here.
    """

    do: Literal["metrics", "watch"]
    node: str = ""


class Answer(Struct, frozen=True, omit_defaults=True):
    """``error``: one line; empty if the request was answered."""

    error: str = ""
    samples: tuple[Sample, ...] = ()


_REQUESTS: Checked[Request] = Checked(Request, MOST_REQUEST_BYTES)
_ANSWERS: Checked[Answer] = Checked(Answer, MOST_ANSWER_BYTES)


# The run's side


@asynccontextmanager
async def open_door(backend: Backend, directory: RunDirectory) -> AsyncIterator[None]:
    """Answers others while the run goes on. Raises OSError if there can be no socket."""
    door = _Door(backend, directory)
    listener = _listening(directory)
    try:
        server = await asyncio.start_unix_server(door.accept, sock=listener, limit=MOST_REQUEST_BYTES)
    except BaseException:
        listener.close()
        raise
    try:
        yield
    finally:
        server.close()
        (directory.temporary / SOCKET).unlink(missing_ok=True)
        await door.close()


class _Door:
    def __init__(self, backend: Backend, directory: RunDirectory) -> None:
        self._desk = MetricsDesk(backend)
        self._mirror = Mirror(backend, directory)
        self._clients: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MOST_CLIENTS or not is_own(writer.get_extra_info("socket")):
            writer.close()
            return
        client = asyncio.create_task(self._serve(reader, writer))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def close(self) -> None:
        async with AsyncExitStack() as ends:
            ends.push_async_callback(self._mirror.close)
            ends.push_async_callback(self._desk.close)
            for client in self._clients:
                client.cancel()
            if self._clients:
                await asyncio.wait(self._clients)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await _line(reader):
                try:
                    request = _REQUESTS.decode(line)
                except Refused as error:
                    _say(writer, Answer(one_line(f"not a request: {error}")))
                    return
                if request.do == "watch":
                    await self._watched(reader, writer)
                    return
                _say(writer, await self._metrics(request.node))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):  # ValueError: the line is too long
            pass
        finally:
            writer.close()

    async def _watched(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keeps the mirror going until the client is gone; whatever it says meanwhile is ignored."""
        with self._mirror.wanted():
            _say(writer, Answer())
            await writer.drain()
            while await reader.read(MOST_REQUEST_BYTES):
                pass

    async def _metrics(self, node: str) -> Answer:
        try:
            return Answer(samples=await self._desk.ask(node))
        except NodeNotSeen as error:
            return Answer(one_line(str(error)))


async def _line(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(IDLE_S):
        return await reader.readline()


def _say(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(msgspec.json.encode(answer) + b"\n")


def _listening(directory: RunDirectory) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The file gets the mode of the socket. The umask would do as well, but it is that of all threads.
        os.fchmod(listener.fileno(), _PRIVATE)
        with _opened(directory) as place:
            listener.bind(f"{_short(place)}/{SOCKET}")
        listener.listen(MOST_CLIENTS)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


@contextmanager
def _opened(directory: RunDirectory) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(directory.temporary, flags)
    try:
        yield place
    finally:
        os.close(place)


def _short(descriptor: int) -> str:
    """Returns a path to what is open that is short: one of a socket has at most 107 bytes, and the path of a
    run may be longer.
    """
    return f"/proc/self/fd/{descriptor}"


# The side of those who watch


async def node_metrics(directory: RunDirectory, node: str, timeout: float) -> tuple[Sample, ...]:
    """Returns the metrics of a node of a run that goes on. Raises NotLive."""
    try:
        async with asyncio.timeout(timeout), _connected(directory) as (reader, writer):
            writer.write(msgspec.json.encode(Request("metrics", node)) + b"\n")
            if not (line := await reader.readline()):
                raise ConnectionResetError(errno.ECONNRESET, "it is about to end")
            answer = _ANSWERS.decode(line)
    except TimeoutError:
        raise NotLive(f"run {directory.id} did not answer within {timeout:g} s") from None
    except (OSError, ValueError) as error:  # ValueError: no answer
        raise NotLive(one_line(f"run {directory.id} cannot be asked: {_reason(error)}")) from None
    if answer.error:
        raise NotLive(answer.error)
    return answer.samples


class Watching:
    """Lets the run's process bring the records of remote nodes here, as long as it is entered. It connects
    again when it has to; a run that has ended, or not begun, is no error, and nothing is connected to then.
    ``connected``: the run answers.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self.connected = False
        self._directory = directory
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Watching":
        self._task = asyncio.create_task(self._keep_watching(), name=f"watching {self._directory.id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _keep_watching(self) -> None:
        while True:
            with suppress(OSError, ValueError):
                async with _connected(self._directory) as (reader, writer):
                    writer.write(msgspec.json.encode(Request("watch")) + b"\n")
                    while await reader.readline():
                        self.connected = True
            self.connected = False
            await asyncio.sleep(RECONNECT_S)


@asynccontextmanager
async def _connected(
    directory: RunDirectory,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connects to a run's door. Raises OSError, also if another user opened it, and if the run has ended: a
    socket that is still there is no door then.
    """
    if not journals.is_locked(directory.journal):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "it has ended")
    with _opened(directory) as place, _own_socket(place) as found:
        reader, writer = await asyncio.open_unix_connection(_short(found), limit=MOST_ANSWER_BYTES)
    try:
        if not is_own(writer.get_extra_info("socket")):
            raise PermissionError(errno.EPERM, "another user opened it")
        yield reader, writer
    finally:
        writer.close()


@contextmanager
def _own_socket(place: int) -> Iterator[int]:
    """Opens the socket in the directory ``place`` without connecting. A run's directory may be somebody
    else's: no link leads to another socket.
    """
    found = os.open(SOCKET, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        facts = os.fstat(found)
        if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, "its socket is not one that this user's run opened")
        yield found
    finally:
        os.close(found)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return "it does not go on"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
