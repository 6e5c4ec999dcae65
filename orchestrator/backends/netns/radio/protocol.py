"""What the owner and the radio process say to each other: one JSON object a line."""

from msgspec import Struct

from orchestrator.backends.netns.radio.lateness import LatenessReport

REPORT, SILENCE, STOP = "report", "silence", "stop"


class Command(Struct, frozen=True):
    """``report``, ``silence`` or ``stop``: each is answered by a Message of the same id.

    ``silence``: the radios of ``nodes``, and of no others, are off; answered once it is so.
    """

    id: int
    do: str
    nodes: tuple[str, ...] = ()


class Message(Struct, frozen=True, omit_defaults=True):
    """An answer (``id``), or news: that the air is up (``origin_ns``), or how the links are now."""

    id: int = 0
    now_ns: int = 0
    origin_ns: int | None = None
    links: dict[str, dict[str, float]] | None = None
    report: LatenessReport | None = None
    error: str = ""
