"""Decodes, within bounds, what the supervisor's commands print on a node; refuses anything else."""

from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from node_agent.supervisor.place import Ended
from node_agent.supervisor.status import PlaceStatus

_MOST_STATUS_BYTES = 1024 * 1024
_MOST_SAID = 64 * 1024


class Places(Struct, frozen=True):
    """The output of ``status``."""

    places: tuple[PlaceStatus, ...]


class Ending(Struct, frozen=True):
    """The output of ``end`` when it failed."""

    left: tuple[int, ...] = ()
    trouble: str = ""
    error: str = ""


class _Launched(Struct, frozen=True):
    """The output of ``start``."""

    error: str = ""


PLACES: Checked[Places] = Checked(Places, _MOST_STATUS_BYTES)
ENDINGS: Checked[Ending] = Checked(Ending, _MOST_SAID)
ENDED: Checked[Ended] = Checked(Ended, _MOST_SAID)
_LAUNCHED: Checked[_Launched] = Checked(_Launched, _MOST_SAID)


def launch_error(output: bytes) -> str:
    """Returns why the supervisor did not start; empty if the first line of its output does not say so."""
    lines = output.lstrip().splitlines()
    try:
        return _LAUNCHED.decode(lines[0] if lines else b"").error
    except Refused:
        return ""
