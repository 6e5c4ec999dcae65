"""Messages between the owner and the radio process: one JSON object a line."""

from msgspec import Struct

from orchestrator.backends.netns.radio.lateness import LatenessReport
from orchestrator.radio.changes import UNCHANGED, AirChanges

REPORT, LATENESS, CHANGE, MOVE, STOP = "report", "lateness", "change", "move", "stop"


class Command(Struct, frozen=True):
    """``report``, ``lateness``, ``change``, ``move`` or ``stop``; a Message of the same id answers it.

    ``lateness``: a report without the queues of the nodes, which take time to read.
    ``change``: exactly these ``changes`` hold from now on; answered once it is done.
    ``move``: nodes that wait for it begin to move; answered once they have, with the moment of that.
    """

    id: int
    do: str
    changes: AirChanges = UNCHANGED


class Message(Struct, frozen=True, omit_defaults=True):
    """An answer (``id``) or a report: that the radio is up (``origin_ns``), or the current links."""

    id: int = 0
    now_ns: int = 0
    origin_ns: int | None = None
    links: dict[str, dict[str, float]] | None = None
    report: LatenessReport | None = None
    error: str = ""
