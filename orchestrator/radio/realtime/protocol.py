"""What the owner and the radio process say to each other: one JSON object a line."""

from msgspec import Struct

from orchestrator.radio.realtime.lateness import LatenessReport

REPORT, STOP = "report", "stop"


class Command(Struct, frozen=True):
    """``report`` or ``stop``: each is answered by a Message of the same id."""

    id: int
    do: str


class Message(Struct, frozen=True, omit_defaults=True):
    """An answer (``id``), or news: that the air is up (``origin_ns``), or how the links are now."""

    id: int = 0
    now_ns: int = 0
    origin_ns: int | None = None
    links: dict[str, dict[str, float]] | None = None
    report: LatenessReport | None = None
    error: str = ""
