"""The door of a run that goes on: a socket in its directory, through which others on this machine watch it,
and change its network by hand.

The process of the run opens it (``open_door``); whoever comes uses ``node_metrics``, ``Watching`` and
``set_by_hand``:

    samples = await node_metrics(directory, "n03", timeout=3.0)

    async with Watching(directory):  # records of remote nodes come to tmp/live/<node> meanwhile
        ...

One request is one line of JSON, and so is its answer. The socket is the user's own, and goes with the run.
"""

import asyncio
import errno
import os
import pwd
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any, Literal

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.bridge import is_own
from node_agent.telemetry.metrics import Sample
from orchestrator.errors import BadInput, RoveError
from orchestrator.foreign_text import one_line
from orchestrator.live.desk import MetricsDesk
from orchestrator.live.mirror import Mirror
from orchestrator.runs import journal as journals
from orchestrator.runs.backend import Backend, Changeable, Interventions, NodeNotSeen
from orchestrator.runs.run_directory import RunDirectory

SOCKET = "live.sock"
MOST_REQUEST_BYTES = 16 * 1024
MOST_ANSWER_BYTES = 8 * 1024 * 1024
MOST_CLIENTS = 64
IDLE_S = 60.0
"""A client that says nothing for so long, and does not watch, is disconnected."""
RECONNECT_S = 1.0
_PRIVATE = 0o600
_LONGEST_ERROR = 4000
SET_S = 30.0
"""How long a change may take until it holds on all nodes."""
_CREDENTIALS = 12


class NotLive(RoveError):
    """The run does not go on, or what was asked for cannot be had from it now."""


class Request(Struct, frozen=True, forbid_unknown_fields=True):
    """``metrics`` of ``node``; ``watch``: until the connection is closed, the records of remote nodes are
    brought here; ``set``: changes the network as ``wanted`` says (``runs.backend.Interventions``).
    """

    do: Literal["metrics", "watch", "set"]
    node: str = ""
    wanted: dict[str, Any] = {}


class Answer(Struct, frozen=True, omit_defaults=True):
    """``error``: empty if the request was answered. ``done``: what was set, in words."""

    error: str = ""
    samples: tuple[Sample, ...] = ()
    done: str = ""


_REQUESTS: Checked[Request] = Checked(Request, MOST_REQUEST_BYTES)
_ANSWERS: Checked[Answer] = Checked(Answer, MOST_ANSWER_BYTES)


# The run's side


@asynccontextmanager
async def open_door(backend: Backend, directory: RunDirectory) -> AsyncIterator[None]:
    """Answers others while the run goes on. Raises OSError if there can be no socket."""
    changeable = backend.interventions if isinstance(backend, Changeable) else None
    async with _opened_door(_Door(MetricsDesk(backend), Mirror(backend, directory), changeable), directory):
        yield


@asynccontextmanager
async def open_network_door(interventions: Interventions, directory: RunDirectory) -> AsyncIterator[None]:
    """Lets others change a network without a run. Raises OSError if there can be no socket."""
    async with _opened_door(_Door(None, None, lambda: interventions), directory):
        yield


@asynccontextmanager
async def _opened_door(door: "_Door", directory: RunDirectory) -> AsyncIterator[None]:
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
    """``desk`` and ``mirror``: None where no agents run. ``changeable``: None if nothing can be changed."""

    def __init__(
        self,
        desk: MetricsDesk | None,
        mirror: Mirror | None,
        changeable: Callable[[], Interventions] | None,
    ) -> None:
        self._desk = desk
        self._mirror = mirror
        self._changeable = changeable
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
            for part in (self._mirror, self._desk):
                if part is not None:
                    ends.push_async_callback(part.close)
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
                if request.do == "set":
                    _say(writer, await self._set(request.wanted, _user(writer.get_extra_info("socket"))))
                else:
                    _say(writer, await self._metrics(request.node))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):  # ValueError: the line is too long
            pass
        finally:
            writer.close()

    async def _watched(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keeps the mirror going until the client is gone; whatever it says meanwhile is ignored."""
        with self._mirror.wanted() if self._mirror is not None else nullcontext():
            _say(writer, Answer())
            await writer.drain()
            while await reader.read(MOST_REQUEST_BYTES):
                pass

    async def _set(self, wanted: dict[str, Any], by: str) -> Answer:
        if self._changeable is None:
            text = "in virtual time nobody can come in between"
            return Answer(f"{text}: write it under faults, in the experiment file")
        try:
            return Answer(done=await self._changeable().set(wanted, by))
        except RoveError as error:
            return Answer(str(error)[:_LONGEST_ERROR])

    async def _metrics(self, node: str) -> Answer:
        if self._desk is None:
            return Answer("no agents run on a network without a run")
        try:
            return Answer(samples=await self._desk.ask(node))
        except NodeNotSeen as error:
            return Answer(one_line(str(error)))


def _user(connection: socket.socket) -> str:
    """Returns the name of the user at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS)
    number = int.from_bytes(credentials[4:8], sys.byteorder)
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


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
    answer = await _asked(directory, Request("metrics", node), timeout)
    if answer.error:
        raise NotLive(answer.error)
    return answer.samples


async def set_by_hand(directory: RunDirectory, wanted: dict[str, Any], timeout: float = SET_S) -> str:
    """Changes the network of a run that goes on; returns what was done, in words. Raises NotLive, and
    BadInput with what is wrong with ``wanted``.
    """
    answer = await _asked(directory, Request("set", wanted=wanted), timeout)
    if answer.error:
        raise BadInput(answer.error)
    return answer.done


async def _asked(directory: RunDirectory, request: Request, timeout: float) -> Answer:
    try:
        async with asyncio.timeout(timeout), _connected(directory) as (reader, writer):
            writer.write(msgspec.json.encode(request) + b"\n")
            if not (line := await reader.readline()):
                raise ConnectionResetError(errno.ECONNRESET, "it is about to end")
            return _ANSWERS.decode(line)
    except TimeoutError:
        raise NotLive(f"run {directory.id} did not answer within {timeout:g} s") from None
    except (OSError, ValueError) as error:  # ValueError: no answer
        raise NotLive(one_line(f"run {directory.id} cannot be asked: {_reason(error)}")) from None


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
