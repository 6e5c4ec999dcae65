"""What every way of running nodes offers to the life cycle: same experiment, other infrastructure."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from node_agent.model.refusals import Refusal
from node_agent.telemetry.metrics import Sample
from orchestrator.errors import RoveError

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""


class Status(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


class NodeOutcome(Struct, frozen=True):
    """Partial failure is a value: how one node came out of one phase, and why."""

    node: str
    status: Status
    reason: str = ""


Outcomes = Sequence[NodeOutcome]


def with_failures(outcomes: Outcomes, reasons: Mapping[str, str]) -> list[NodeOutcome]:
    """The same, but nodes that would be ok failed where there is a reason for it."""
    return [
        NodeOutcome(outcome.node, Status.FAILED, reasons[outcome.node])
        if outcome.status is Status.OK and outcome.node in reasons
        else outcome
        for outcome in outcomes
    ]


class NodeNotSeen(RoveError):
    """What was asked of a node while the run goes on cannot be had now; the message is one line."""


class ClockSeen(NamedTuple):
    """The last measurement of a node's clock: at ``at_ns`` of ours it was ahead by ``offset_ns``."""

    at_ns: int
    offset_ns: int
    uncertainty_ns: int


class RadioSeen(NamedTuple):
    """How late the emulated radio has been since its start."""

    late_ratio: float
    p99_us: float


class Seen(NamedTuple):
    """What is known of a run's nodes at this moment. ``clocks``: by node, where they have been measured.
    ``radio``: None if the radio is not emulated in real time, or has not been asked yet.
    """

    nodes: Outcomes
    clocks: Mapping[str, ClockSeen] = {}
    radio: RadioSeen | None = None


class Cursor(NamedTuple):
    """A place in a node's telemetry: the byte at ``offset`` of the segment with this number in its boot. The
    default is before all.
    """

    boot: int = 0
    segment: int = 0
    offset: int = 0


class RemoteRecords(Protocol):
    """Reads records of nodes on other machines while they are written. Methods raise NodeNotSeen."""

    def nodes(self) -> Sequence[str]: ...

    async def tail(self, node: str, cursor: Cursor) -> tuple[Cursor, bytes]:
        """Returns bytes of telemetry, a bounded number, and where they begin: at ``cursor``, or at the
        beginning of a later segment if there is nothing more in this one.
        """
        ...

    def picture_folders(self, node: str) -> Sequence[str]:
        """Returns the folders of pictures that the plan has on the node; some may stay empty."""
        ...

    async def picture(self, node: str, folder: str, stamp: int) -> tuple[int, bytes]:
        """Returns the latest picture and its stamp; no bytes if there is none newer than ``stamp``."""
        ...


class Interventions(Protocol):
    """Changes a network that is up by hand, in the words of the experiment file's ``faults``."""

    async def set(self, wanted: Mapping[str, Any], by: str) -> str:
        """Carries it out and returns what was done, in words. ``wanted``: one fault without ``at``, or
        ``{"restore": [nodes]}``; ``by``: who wants it, for the run's events. Raises BadInput.
        """
        ...


@runtime_checkable
class Changeable(Protocol):
    """A backend whose network can be changed by hand."""

    def interventions(self) -> Interventions: ...


@runtime_checkable
class Patient(Protocol):
    """A backend whose own time does not pass while its processes wait for a processor."""

    def waited_s(self) -> float:
        """Returns how long its processes have waited for a processor so far. Phases last longer by that."""
        ...


class Backend(Protocol):
    """One run's nodes. Methods are called in this order, each bounded by its phase's timeout."""

    def now_ns(self) -> int:
        """The run's own time, as in its telemetry: the latest that is known here."""
        ...

    async def up(self, progress: Progress) -> Outcomes:
        """Create the nodes and start an agent on each; the query does not flow yet."""
        ...

    async def converge(self) -> Outcomes:
        """Wait until routing gives every node its costs."""
        ...

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        """Let ``seconds`` of the run's own time pass with the query flowing."""
        ...

    def seen(self) -> Seen:
        """Returns at once what is known of the nodes now; asked for every second while the run goes on."""
        ...

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        """Asks the node's agent for its metrics, within a few seconds. Raises NodeNotSeen."""
        ...

    def remote_records(self) -> RemoteRecords | None:
        """Returns what reads the nodes' records while the run goes on; None if they are written here."""
        ...

    async def stop(self) -> Outcomes:
        """Stop the agents in order: telemetry is flushed and closed."""
        ...

    async def collect(self, into: Path) -> Outcomes:
        """Bring telemetry to ``into/nodes`` and ground truth to ``into/radio``."""
        ...

    def doubts(self) -> Sequence[str]:
        """Why the numbers must not be used, however well all nodes did; asked for after ``down``."""
        ...

    def refusals(self) -> Sequence[Refusal]:
        """What ``collect`` did not take from nodes: empty where nodes are part of this machine."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What else belongs in the manifest, such as the nodes' ``clocks``; asked for after ``down``."""
        ...

    async def down(self) -> None:
        """Remove everything that ``up`` made. May be called at any point, and repeated."""
        ...
