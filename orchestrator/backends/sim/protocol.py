"""The messages between the orchestrator and its simulator process: one JSON object per line."""

from msgspec import Struct

from orchestrator.runs.backend import NodeOutcome


class Command(Struct, frozen=True):
    """A command.

    ``interrupt`` ends a running ``advance`` early; each other gets one final Reply of its id.
    """

    id: int
    do: str
    seconds: float = 0.0


class Reply(Struct, frozen=True, omit_defaults=True):
    """The progress of an ``advance`` (``progress``), or a final answer (``done``)."""

    id: int
    now_ns: int
    progress: float = 0.0
    done: bool = False
    outcomes: tuple[NodeOutcome, ...] = ()
    settled_s: float | None = None
    """Of ``converge``: how long costs took to settle."""
    error: str = ""
