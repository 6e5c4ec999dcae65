"""Finds processes of a run on a node by their mark, and ends them."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from node_agent.host.marked_processes import PLACE, Identity, identify, marked, send

_TERM_S = 3.0
_KILL_S = 3.0
_PROC = Path("/proc")


def belonging(run: str, place: Path) -> list[Identity]:
    """Returns the run's processes. Root's are included if sudo started
    them; they can be seen but not ended."""
    try:
        own = marked(run, place)
        if os.geteuid() == 0:
            return own
        return own + [seen for seen in _called_by_sudo(place) if seen not in own]
    except OSError:  # no /proc to look at
        return []


def end_leftovers(run: str, place: Path, grace: float) -> tuple[list[int], list[int]]:
    """Waits ``grace`` seconds for processes to end by themselves, then ends the
    rest. Returns the ended and the remaining ones."""
    ended: list[int] = []
    for number, seconds in ((None, grace), (signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        left = belonging(run, place)
        if not left:
            return ended, []
        if number is not None:
            sent = [process.pid for process in left if send(process, number)]
            ended = list(dict.fromkeys([*ended, *sent]))
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left = [process for process in left if process.is_alive()]
    alive = [process.pid for process in belonging(run, place)]
    return [pid for pid in ended if pid not in alive], alive


def _called_by_sudo(place: Path) -> list[Identity]:
    """Finds processes by their command line: root's environment cannot be read."""
    words = f"{PLACE}={place.resolve()}".encode()
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if words in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(identify(int(entry.name)))
    return [process for process in found if process is not None]
