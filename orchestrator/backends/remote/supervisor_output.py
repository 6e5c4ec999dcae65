"""What the supervisor's commands print on a node, decoded within bounds; anything else is refused."""

from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.place import Ended
from node_agent.supervisor.status import PlaceStatus

_MOST_STATUS_BYTES = 1024 * 1024
_MOST_SAID = 64 * 1024


class Places(Struct, frozen=True):
    """By ``status``."""

    places: tuple[PlaceStatus, ...]


class Ending(Struct, frozen=True):
    """By ``end``, where that could not be done."""

    left: tuple[int, ...] = ()
    trouble: str = ""
    error: str = ""


class _Launched(Struct, frozen=True):
    """By ``start``."""

    error: str = ""


PLACES: Checked[Places] = Checked(Places, _MOST_STATUS_BYTES)
ENDINGS: Checked[Ending] = Checked(Ending, _MOST_SAID)
ENDED: Checked[Ended] = Checked(Ended, _MOST_SAID)
_LAUNCHED: Checked[_Launched] = Checked(_Launched, _MOST_SAID)


def launch_error(output: bytes) -> str:
    """Why the supervisor did not start; empty where its first line does not say that."""
    lines = output.lstrip().splitlines()
    try:
        return _LAUNCHED.decode(lines[0] if lines else b"").error
    except Refused:
        return ""
