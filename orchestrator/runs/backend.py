"""What every way of running nodes offers to the life cycle: same experiment, other infrastructure."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from node_agent.model.refusals import Refusal

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
