"""The orchestrator's side of the driver on CORE's host: uploads it, starts it, sends requests, ends it."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from orchestrator.backends.core.marks import FOLDER, Mark
from orchestrator.backends.core.preflight import Observed, Preflight
from orchestrator.backends.core.session import PixelPath, Session
from orchestrator.errors import RoveError
from orchestrator.spec.core import Core
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.process import RemoteProcess, how_it_ended

PROTOCOL = 2
DRIVER = Path(__file__).with_name("driver.py")
"""Never imported here: its imports exist on CORE's host only."""
LEFTOVERS = Path(__file__).with_name("leftovers.py")
UPLOADED = (LEFTOVERS, Path(__file__).with_name("motion.py"), DRIVER)
_ANSWER_S = 20.0
_START_S = 30.0
_START_A_NODE_S = 2.0
"""Time for starting a session; 25 nodes of EMANE took 9 s on a busy machine."""
_PREFLIGHT_S = 90.0
_DELETE_S = 30.0
_LAST_WORDS = 2000
MOST_ANSWER = 64 * 1024 * 1024
"""Bytes."""

T = TypeVar("T")


class CoreError(RoveError):
    """CORE, or its host, does not do what a run needs; the run cannot go on."""


class Welcome(Struct, frozen=True):
    version: str
    emane: list[str]
    sessions: int


class Created(Struct, frozen=True):
    """``enter``: each node's command prefix, with the user's rights."""

    session: int
    directory: str
    enter: dict[str, list[str]]


class Moving(Struct, frozen=True):
    begun_ns: int


class SessionStatus(Struct, frozen=True):
    """``rounds``: how often all nodes were moved; ``late_rounds`` of them began more than a period late."""

    state: str
    failure: str
    rounds: int
    late_rounds: int
    late_s: float


class Done(Struct, frozen=True):
    status: int
    stdout: str
    stderr: str


class _Found(Struct, frozen=True):
    sessions: list[int] = []
    error: str = ""


class _Left(Struct, frozen=True):
    left: list[str] = []
    error: str = ""


class _Tried(Struct, frozen=True):
    observed: list[Observed]


class _Nothing(Struct, frozen=True):
    pass


class _Head(Struct, frozen=True):
    id: int
    error: str = ""


_heads: Checked[_Head] = Checked(_Head, MOST_ANSWER)


class CoreDriver:
    """Its session is deleted when it is closed."""

    def __init__(self, process: RemoteProcess, python: str, log: Path) -> None:
        self._process = process
        self._python = python
        self._log = log
        self._turn = asyncio.Lock()
        self._last_id = 0
        self._broken = ""

    @classmethod
    async def start(cls, connection: Connection, core: Core, log: Path) -> "CoreDriver":
        """``log``: the file for its standard error."""
        program = await put(connection)
        argv = [core.python, "-u", program.driver, "--daemon", core.daemon]
        return cls(await connection.start(argv, stderr=log), core.python, log)

    async def hello(self) -> Welcome:
        return await self._ask("hello", Welcome, _ANSWER_S, protocol=PROTOCOL)

    async def create(self, session: Session, ledger: str) -> Created:
        """``ledger``: the file on the host that records the session before anything of it is started."""
        patience = _START_S + _START_A_NODE_S * len(session.nodes)
        return await self._ask("create", Created, patience, session=session, ledger=ledger)

    async def try_out(self, preflight: Preflight) -> list[Observed]:
        return (await self._ask("preflight", _Tried, _PREFLIGHT_S, preflight=preflight)).observed

    async def move(self, paths: dict[str, PixelPath], period: float) -> Moving:
        return await self._ask("move", Moving, _ANSWER_S, paths=paths, period=period)

    async def status(self) -> SessionStatus:
        return await self._ask("status", SessionStatus, _ANSWER_S)

    async def run(self, node: str, argv: Sequence[str], timeout: float) -> Done:
        """Runs a command in the node, as root. A status other than 0 is not an error here."""
        return await self._ask("run", Done, timeout + _ANSWER_S, node=node, argv=argv, timeout=timeout)

    async def delete(self) -> None:
        """Deletes the session, and whatever runs in it."""
        await self._ask("delete", _Nothing, _DELETE_S)

    async def close(self) -> None:
        """Ends the driver. May be repeated."""
        await self._process.close()

    async def _ask(self, do: str, answer: type[T], patience: float, **arguments: Any) -> T:
        async with self._turn:
            if self._broken:
                raise CoreError(self._broken)
            self._last_id += 1
            request = {"id": self._last_id, "do": do, **arguments}
            try:
                async with asyncio.timeout(patience):
                    self._process.writer.write(msgspec.json.encode(request) + b"\n")
                    await self._process.writer.drain()
                    line = await self._answer_to(self._last_id)
            except TimeoutError:
                self._broken = f"CORE's host did not answer within {patience:g} s ({do})"
                raise CoreError(self._broken) from None
            except ConnectionError:
                line = b""
            if not line:
                self._broken = await self._exit_report()
                raise CoreError(self._broken)
        try:
            head = _heads.decode(line)
            if head.error:
                raise CoreError(head.error)
            return Checked[T](answer, MOST_ANSWER).decode(line)
        except Refused as error:
            raise CoreError(f"CORE's driver sent an answer that cannot be decoded: {error}") from None

    async def _answer_to(self, number: int) -> bytes:
        """Skips answers to earlier requests of an interrupted run."""
        while line := await self._process.reader.readline():
            with suppress(Refused):
                if _heads.decode(line).id < number:
                    continue
            break
        return line

    async def _exit_report(self) -> str:
        status = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                status = await self._process.wait()
        if status is None:
            return "CORE's host is lost: the connection to it broke"
        await self._process.close()  # then all its output is in the log
        words = await asyncio.to_thread(_last_words, self._log)
        if "ModuleNotFoundError" in words or "No such file" in words or "not found" in words:
            return (
                f"{self._python} on CORE's host does not know CORE ({words}): "
                "write where its Python is, python: in the topology's section core"
            )
        return f"CORE's driver {how_it_ended(status)}" + (f": {words}" if words else "")


class Programs(NamedTuple):
    """Where the programs are on the host."""

    driver: str
    leftovers: str


async def put(connection: Connection) -> Programs:
    """Uploads our programs into a folder named by their contents: another version gets another folder."""
    contents = [await asyncio.to_thread(local.read_bytes) for local in UPLOADED]
    digest = hashlib.sha256(b"".join(contents)).hexdigest()
    folder = f"{FOLDER}/{digest[:12]}"
    await connection.output(["sh", "-c", f"umask 077 && mkdir -p {folder}"])
    for local in UPLOADED:
        await connection.upload(local, f"{folder}/{local.name}")
    return Programs(f"{folder}/{DRIVER.name}", f"{folder}/{LEFTOVERS.name}")


async def left_of(connection: Connection, core: Core, mark: Mark) -> list[str]:
    """Returns what is left of the run on the host: sessions that the
    daemon knows, and what it has forgotten."""
    return await _look(connection, core, mark, "find")


async def remove(connection: Connection, core: Core, mark: Mark) -> list[str]:
    """The daemon deletes what it knows; the rest is removed by the record. Returns what is still there."""
    return await _look(connection, core, mark, "remove")


async def _look(connection: Connection, core: Core, mark: Mark, verb: str) -> list[str]:
    programs = await put(connection)
    try:
        sessions = await _sessions(connection, core, programs.driver, mark, verb)
    except CoreError:
        if not mark.token:
            raise
        sessions = []  # the daemon does not answer: the record says what there is
    found = [f"CORE session {session}" for session in sessions] if verb == "find" else []
    return [
        *found,
        *(await _forgotten(connection, core, programs.leftovers, mark, verb) if mark.token else []),
    ]


async def _sessions(connection: Connection, core: Core, program: str, mark: Mark, verb: str) -> list[int]:
    argv = [core.python, "-u", program, "--daemon", core.daemon, f"--{verb}", mark.text]
    answer = await _answer_of(connection, argv, _Found)
    if answer.error:
        raise CoreError(answer.error)
    return answer.sessions


async def _forgotten(connection: Connection, core: Core, program: str, mark: Mark, verb: str) -> list[str]:
    answer = await _answer_of(connection, [core.python, program, verb, mark.ledger], _Left)
    if answer.error:
        raise CoreError(f"cannot find out what is left on CORE's host: {answer.error}")
    return answer.left


async def _answer_of(connection: Connection, argv: Sequence[str], kind: type[T]) -> T:
    done = await connection.run(argv, timeout=_DELETE_S)
    try:
        return Checked[T](kind, MOST_ANSWER).decode(done.stdout)
    except Refused:
        words = _last_line(done.stderr)
        raise CoreError(f"CORE's driver ended with status {done.status}: {words}") from None


def _last_words(log: Path) -> str:
    return _last_line(log.read_bytes()[-_LAST_WORDS:]) if log.exists() else ""


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
