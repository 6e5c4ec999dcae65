"""What an agent gives an application, and what it expects of it.

A kind of application is a value of ``AppKind``, registered in ``node_agent.apps.registry``:

    class EchoConfig(msgspec.Struct, frozen=True):
        peers: tuple[str, ...]

    ECHO = AppKind(EchoConfig, Echo, nodes=lambda config: config.peers)

``Echo(config, surroundings)`` is an ``Application``. An agent runs one or more of them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from node_agent.extensions.failures import Failures
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import Event
from node_agent.ports import Address, Port
from node_agent.telemetry.kinds import NO_RECORDS, RecordKinds
from node_agent.telemetry.metrics import MetricKinds
from node_agent.transport.authentication import Credentials
from node_agent.transport.limits import ConnectionLimits

KEPT = "kept"
"""The folder, in a node's directory, of what must survive its agent but not the run: it is removed then."""


class AppConfig(Struct, frozen=True):
    """One application on a node. All nodes of a run have the same applications, in the same order.

    ``name``: its name in the run. ``kind``: its kind in ``APPLICATIONS``. ``config``: the kind's struct, as
    JSON.
    """

    name: str
    kind: str
    config: msgspec.Raw

    @classmethod
    def of(cls, name: str, kind: str, config: Struct) -> "AppConfig":
        return cls(name, kind, msgspec.Raw(msgspec.json.encode(config)))


class AppUnusable(Exception):
    """An application cannot run on this node. Raised while it is built, with the reason."""


@dataclass(frozen=True)
class Surroundings:
    """What an agent gives an application.

    ``record`` writes telemetry under the application's name; ``flush`` passes what was recorded to the
    operating system, so that it outlives the agent. ``link_state`` reports what links cost, with the
    costs of nodes added. ``addresses``: where this application listens on every node. ``credentials``: keys
    that are valid for this application only. ``directory``: the node's own, for files that are results of the
    run; ``scratch``: for temporary files. ``core`` is held while an application computes. ``fail`` stops the
    agent: it takes where an error happened, and the error. ``failures`` counts errors of extensions.
    """

    app: str
    run: str
    node: str
    boot: int
    port: Port
    record: Callable[[Event], None]
    link_state: LinkState
    addresses: Mapping[str, Address]
    credentials: Credentials
    links: ConnectionLimits
    refusals: Refusals
    directory: Path | None
    scratch: Path
    core: asyncio.Semaphore
    fail: Callable[[str, BaseException], None]
    failures: Failures = field(default_factory=Failures)
    flush: Callable[[], None] = lambda: None


class AppStatus(NamedTuple):
    """``ready``: it can begin. ``parts``: which parts of it run on this node. ``numbers``: for live views."""

    ready: bool
    parts: tuple[str, ...] = ()
    numbers: Mapping[str, float] = {}


class Application(Protocol):
    """One application on one node. The agent builds it, then calls ``start``, ``open`` and ``stop``."""

    async def start(self) -> None:
        """Listens and runs; sources stay closed. Raises PortError."""
        ...

    def open(self) -> None:
        """Lets sources send: the run begins. May be repeated."""
        ...

    async def stop(self) -> None:
        """Ends everything. May be called before ``start``, or after it failed."""
        ...

    def sample(self) -> None:
        """Records what is recorded every sample period. Called once more after ``stop``, for totals."""
        ...

    def status(self) -> AppStatus: ...

    def overheads(self) -> Sequence[OverheadSource]:
        """Returns counters of what it sends besides its data."""
        ...


class Watched(NamedTuple):
    """Nodes whose costs an application needs: those it sends to, and all on the way to the last ones."""

    direct: tuple[str, ...] = ()
    all: tuple[str, ...] = ()


def _no_nodes(config: Any) -> Sequence[str]:
    return ()


def _no_problems(config: Any, node: str) -> Sequence[str]:
    return ()


def _watches_nothing(config: Any, node: str) -> Watched:
    return Watched()


@dataclass(frozen=True)
class AppKind:
    """A kind of application: its configuration, how to build it, and what is known before it is built.

    ``build`` raises AppUnusable. ``records``: what it writes to the telemetry. ``nodes``: those that take
    part. ``problems``: why a node cannot run a configuration. ``watched``: the nodes whose costs matter to a
    node. ``metrics``: what it reports while it runs.
    """

    config: type[Struct]
    build: Callable[[Any, Surroundings], Application]
    records: RecordKinds = NO_RECORDS
    nodes: Callable[[Any], Sequence[str]] = _no_nodes
    problems: Callable[[Any, str], Sequence[str]] = _no_problems
    watched: Callable[[Any, str], Watched] = _watches_nothing
    metrics: MetricKinds | None = None
