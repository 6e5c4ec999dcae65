"""The kinds of operators and the ready-made queries that an experiment can name.

A kind is a name, a struct of parameters and a class:

    class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        factor: int = 2

    class Repeat:
        def __init__(self, params: Params, context: Context) -> None:
            self._factor = params.factor

        async def process(self, unit: Unit) -> Sequence[bytes]:
            return [payload * self._factor for payload in unit.payloads()]

    REPEAT = OperatorKind("repeat", "operator", Params, Repeat)

A package offers it with an entry point in the group ``rove.operators``: ``repeat = "my_package:REPEAT"``.
``OPERATORS.register`` adds it for one process and the processes that it starts.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.extensions import ExtensionError, Registry
from node_agent.model.telemetry import Event
from node_agent.ports import Port

Role = Literal["source", "operator", "sink"]
T = TypeVar("T")


class OperatorUnusable(Exception):
    """Raised by a factory: the operator needs something that this node does not have."""


class Outlet(Protocol):
    """Where a source's tuples go."""

    def has_room(self) -> bool: ...


def _ignore(event: Event) -> None:
    pass


class Context:
    """What an operator may use of the node it runs on."""

    def __init__(
        self,
        replica: str,
        port: Port,
        core: asyncio.Lock | asyncio.Semaphore,
        spec: OperatorSpec | None = None,
        record: Callable[[Event], None] = _ignore,
        directory: Path | None = None,
        app: str = "",
    ) -> None:
        """``spec``: the operator in its query, None outside a query. ``record`` takes what the operator
        reports. ``directory``: the node's own, for files that are part of the run's results. ``app``: the
        application's name in the run.
        """
        self.replica = replica
        self.spec = spec
        self.record = record
        self.directory = directory
        self.app = app
        self.outlet: Outlet | None = None
        """Set by the runtime of the replica; only a source uses it."""
        self._port = port
        self._core = core

    def now_ns(self) -> int:
        """Returns the time of the node's clock, to compare with other nodes. It may be set while the query
        runs.
        """
        return self._port.now_ns()

    def time(self) -> float:
        """Returns seconds on a clock that nobody sets, for durations."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await self._port.sleep(seconds)

    async def compute(self, seconds: float) -> None:
        """Occupies one of the node's cores for ``seconds``, in the order of calls."""
        async with self._core:
            await self._port.sleep(seconds)

    async def work(self, function: Callable[[], T], *, modelled: float) -> T:
        """Occupies one of the node's cores with ``function`` and returns its result.

        In real time it takes as long as the function runs; in virtual time, ``modelled`` seconds.
        """
        async with self._core:
            return await self._port.work(function, modelled)

    async def wait_for(self, function: Callable[[], T]) -> T:
        """Returns the result of a call that blocks but hardly computes, such as reading a device. Needs no
        core.
        """
        return await self._port.work(function, 0.0)


class Source(Protocol):
    async def next(self, tau: int) -> bytes | None:
        """Waits until tuple ``tau`` (1, 2, …) is due and returns its payload; None ends the stream."""
        ...


class Operator(Protocol):
    async def process(self, unit: Unit) -> Sequence[bytes]:
        """Returns the payloads that ``unit`` results in; none filters it out. A sink returns nothing.

        The same unit must give the same payloads on every replica. A unit has at least one payload.
        """
        ...


class OperatorKind(msgspec.Struct, frozen=True):
    """``inputs``: how many inputs it is made for; None: any number. ``where``: the place of a user's
    function. ``state``: reads the operator's immutable state where it was deployed; ``restore``: makes an
    operator of that state on a node that it moves to. Both raise OperatorUnusable. Without them it is made of
    its parameters there.
    """

    name: str
    role: Role
    params: type[msgspec.Struct]
    factory: Callable[[Any, Context], Source | Operator]
    inputs: int | None = None
    where: str = ""
    state: Callable[[Any, Context], bytes] | None = None
    restore: Callable[[Any, Context, bytes], Operator] | None = None


def checked_kind(name: str, value: object) -> OperatorKind:
    """Takes an OperatorKind, or a function decorated with ``@operator``, ``@source`` or ``@sink``."""
    if isinstance(value, OperatorKind):
        return msgspec.structs.replace(value, name=name)
    known = FUNCTIONS.get(str(getattr(value, "kind", "")))
    if known is None:
        raise ExtensionError(
            f"the operator {name} is {type(value).__name__}, neither an OperatorKind nor a decorated function"
        )
    return msgspec.structs.replace(known, name=name)


FUNCTIONS: dict[str, OperatorKind] = {}
"""Users' functions by module and name, such as ``my_query.halve``, of all files and packages imported so
far.
"""


class OperatorRegistry(Registry[OperatorKind]):
    """Lists the kinds that experiments can name. Also finds users' functions, which only their own queries
    name.
    """

    def __getitem__(self, name: str) -> OperatorKind:
        return FUNCTIONS[name] if name in FUNCTIONS else super().__getitem__(name)

    def get(self, name: str) -> OperatorKind | None:
        return self[name] if name in FUNCTIONS or name in self else None


_SYNTHETIC = "node_agent.apps.dataflow.operators.synthetic"
_COMBINING = "node_agent.apps.dataflow.windows.combining"
_FACES = "node_agent.apps.dataflow.faces"
OPERATORS = OperatorRegistry(
    "kind of operator",
    "rove.operators",
    checked_kind,
    {
        "union": f"{_COMBINING}:UNION",
        "match": f"{_COMBINING}:MATCH",
        "synthetic_source": f"{_SYNTHETIC}:SOURCE",
        "work": f"{_SYNTHETIC}:WORK",
        "sink": f"{_SYNTHETIC}:SINK",
        "camera": f"{_FACES}.operators:CAMERA",
        "video_file": f"{_FACES}.operators:VIDEO_FILE",
        "pictures": f"{_FACES}.operators:PICTURES",
        "synthetic_scene": f"{_FACES}.operators:SYNTHETIC_SCENE",
        "detect_faces": f"{_FACES}.operators:DETECT_FACES",
        "recognise_faces": f"{_FACES}.operators:RECOGNISE_FACES",
        "correlate_frames": f"{_FACES}.operators:CORRELATE_FRAMES",
        "heat_map": f"{_FACES}.operators:HEAT_MAP",
        "show_faces": f"{_FACES}.operators:SHOW_FACES",
        "show_heat_map": f"{_FACES}.operators:SHOW_HEAT_MAP",
    },
)

Build = Callable[..., Query]
"""Raises ValueError for arguments that make no query."""


def checked_query(name: str, value: object) -> Build:
    if not callable(value):
        raise ExtensionError(f"the query {name} is {type(value).__name__}, not a function that makes one")
    return value


QUERIES: Registry[Build] = Registry(
    "query",
    "rove.queries",
    checked_query,
    {
        "synthetic_chain": f"{_SYNTHETIC}:synthetic_chain",
        "face_recognition": f"{_FACES}.queries:face_recognition",
        "video_correlation": f"{_FACES}.queries:video_correlation",
        "heat_map": f"{_FACES}.queries:heat_map",
    },
)


def register_function(kind: OperatorKind) -> None:
    """Registers a user's function; again if its file is read again."""
    FUNCTIONS[kind.name] = kind
