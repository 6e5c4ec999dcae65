"""Messages between the owner and the radio process: one JSON object a line."""

from msgspec import Struct

from orchestrator.backends.netns.radio.lateness import LatenessReport

REPORT, SILENCE, STOP = "report", "silence", "stop"


class Command(Struct, frozen=True):
    """``report``, ``silence`` or ``stop``; each is answered by a Message of the same id.

    ``silence``: the radios of exactly ``nodes`` are switched off; answered once it is done.
    """

    id: int
    do: str
    nodes: tuple[str, ...] = ()


class Message(Struct, frozen=True, omit_defaults=True):
    """An answer (``id``) or a report: that the radio is up (``origin_ns``), or the current links."""

    id: int = 0
    now_ns: int = 0
    origin_ns: int | None = None
    links: dict[str, dict[str, float]] | None = None
    report: LatenessReport | None = None
    error: str = ""
