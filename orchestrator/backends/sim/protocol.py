"""What the orchestrator and its simulator process say to each other: one JSON object a line."""

from msgspec import Struct

from orchestrator.runs.backend import NodeOutcome


class Command(Struct, frozen=True):
    """``interrupt`` cuts a running ``advance`` short; the others are answered by one Reply of the same id."""

    id: int
    do: str
    seconds: float = 0.0


class Reply(Struct, frozen=True, omit_defaults=True):
    """Either how far an ``advance`` has come (``progress``), or the final answer (``done``)."""

    id: int
    now_ns: int
    progress: float = 0.0
    done: bool = False
    outcomes: tuple[NodeOutcome, ...] = ()
    error: str = ""
