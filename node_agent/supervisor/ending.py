"""``end``: ends a run on a node whatever state it is in; afterwards no process of it is left."""

import signal
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from node_agent.agent.control import Command, Report, Request
from node_agent.host.marked_processes import identify, send
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.bridge import connect
from node_agent.supervisor.commands import End, Hello
from node_agent.supervisor.leftovers import end_leftovers
from node_agent.supervisor.order import ORDER, BadOrder, read_order
from node_agent.supervisor.place import (
    Ended,
    is_occupied,
    occupant,
    read_ended,
    remove_socket,
    wait_until_free,
    write_ended,
)
from node_agent.supervisor.undo import undo_services, undo_set_up

LONGEST_END_S = 90.0
"""More than the time limits of all the supervisor's steps together."""
_EXIT_S = 5.0
_BY_THEMSELVES_S = 15.0
"""Programs of a killed supervisor notice that it is gone, and end in order within this time."""


class EndResult(Struct, frozen=True):
    """``was``: running, ended, dead, or absent (no place of a run).
    ``killed``: processes found by their mark.

    ``left``: processes that cannot be ended. ``trouble``: changes of killed programs that cannot be undone.
    """

    was: str
    ended: Ended | None
    killed: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    trouble: str = ""


def end_place(place: Path, reason: str) -> EndResult:
    """Ends the run. May be repeated. Raises OSError if the place is not ours."""
    place = place.resolve()
    was = state_of(place) if is_occupied(place) or (place / ORDER).exists() else "absent"
    if was == "running":
        _end_supervisor(place, reason)
    grace = 0.0 if was == "ended" else _BY_THEMSELVES_S
    killed, left = end_leftovers(run_of(place), place, grace)
    remove_socket(place)
    ended = read_ended(place)
    trouble = _undo(place, of_services=ended is None)
    if ended is None and was != "absent":
        problems = ("its supervisor was gone, or did not react", *([trouble] if trouble else []))
        ended = Ended(reason, time.time_ns(), False, problems)
        with suppress(OSError):  # the disk may be full; what matters is done
            write_ended(place, ended)
    return EndResult(was, ended, tuple(killed), tuple(left), trouble)


def state_of(place: Path) -> str:
    if is_occupied(place):
        return "running"
    return "ended" if read_ended(place) is not None else "dead"


def _end_supervisor(place: Path, reason: str) -> None:
    """Ends the supervisor by its socket; by a signal if that fails; by force if it does not react."""
    if _asked(place, reason) and wait_until_free(place, _EXIT_S):
        return
    for number, seconds in ((signal.SIGTERM, LONGEST_END_S), (signal.SIGKILL, _EXIT_S)):
        # Check the holder again once its identity is known: process numbers are reused.
        supervisor = identify(occupant(place) or 0)
        if supervisor is not None and occupant(place) == supervisor.pid:
            send(supervisor, number)
        if wait_until_free(place, seconds):
            return


def _asked(place: Path, reason: str) -> bool:
    try:
        with connect(str(place)) as connection:
            connection.settimeout(LONGEST_END_S)
            connection.sendall(_line(Hello(PROTOCOL), 1) + _line(End(reason), 2))
            with connection.makefile("rb") as lines:
                for line in lines:
                    report = msgspec.json.decode(line, type=Report)
                    if report.id and report.error:
                        return False
                    if report.id == 2:
                        return True
    except (OSError, msgspec.DecodeError):
        return False
    return False


def _undo(place: Path, of_services: bool) -> str:
    """Undoes changes. ``of_services``: also those of services, because nobody saw them end in order."""
    try:
        order = read_order(place)
    except BadOrder:
        return ""  # nothing was ever started here
    troubles = [undo_services(order, place) if of_services else "", undo_set_up(order, place)]
    return "; ".join(trouble for trouble in troubles if trouble)


def _line(command: Command, number: int) -> bytes:
    return msgspec.json.encode(Request(command, number)) + b"\n"


def run_of(place: Path) -> str:
    """Returns the run's name. If the order cannot be read: a place's directory is named after its run."""
    try:
        return read_order(place).run
    except BadOrder:
        return place.parent.name
