"""``end``: whatever state a run is in on a node, afterwards nothing of it runs there any more."""

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
"""More than all that a supervisor may take for the parts of it."""
_EXIT_S = 5.0
_BY_THEMSELVES_S = 15.0
"""What a killed supervisor leaves notices that, and ends in order."""


class EndResult(Struct, frozen=True):
    """``was``: running, ended, dead, or absent: this is no place of a run. ``killed``: by their mark.

    ``left``: what cannot be ended. ``trouble``: what killed programs changed and cannot be undone.
    """

    was: str
    ended: Ended | None
    killed: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    trouble: str = ""


def end_place(place: Path, reason: str) -> EndResult:
    """May be repeated. Raises OSError if the place is not ours."""
    place = place.resolve()
    was = state_of(place) if is_occupied(place) or (place / ORDER).exists() else "absent"
    if was == "running":
        _end_supervisor(place, reason)
    patience = 0.0 if was == "ended" else _BY_THEMSELVES_S
    killed, left = end_leftovers(run_of(place), place, patience)
    remove_socket(place)
    ended = read_ended(place)
    trouble = _undo(place, of_services=ended is None)
    if ended is None and was != "absent":
        told = ("its supervisor was gone, or did not hear", *([trouble] if trouble else []))
        ended = Ended(reason, time.time_ns(), False, told)
        with suppress(OSError):  # the disk may be full; what matters has been done
            write_ended(place, ended)
    return EndResult(was, ended, tuple(killed), tuple(left), trouble)


def state_of(place: Path) -> str:
    if is_occupied(place):
        return "running"
    return "ended" if read_ended(place) is not None else "dead"


def _end_supervisor(place: Path, reason: str) -> None:
    """By its socket; by a signal if it does not understand that; by force if it does not hear."""
    if _asked(place, reason) and wait_until_free(place, _EXIT_S):
        return
    for number, seconds in ((signal.SIGTERM, LONGEST_END_S), (signal.SIGKILL, _EXIT_S)):
        # Who holds the place is asked once more when its identity is known: numbers are used again.
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
    """``of_services``: nobody saw them end in order."""
    try:
        order = read_order(place)
    except BadOrder:
        return ""  # then nothing was ever started here
    troubles = [undo_services(order, place) if of_services else "", undo_set_up(order, place)]
    return "; ".join(trouble for trouble in troubles if trouble)


def _line(command: Command, number: int) -> bytes:
    return msgspec.json.encode(Request(command, number)) + b"\n"


def run_of(place: Path) -> str:
    """An order that cannot be read is no reason to leave things running: a place is named after its run."""
    try:
        return read_order(place).run
    except BadOrder:
        return place.parent.name
