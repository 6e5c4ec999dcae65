"""``status``: shows all runs on this node, without disturbing them."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from node_agent.agent.control import Request
from node_agent.supervisor.bridge import connect
from node_agent.supervisor.commands import AskLease, LeaseReport
from node_agent.supervisor.ending import run_of, state_of
from node_agent.supervisor.leftovers import belonging
from node_agent.supervisor.order import ORDER
from node_agent.supervisor.place import RECORD, Ended, read_ended

_ANSWER_S = 5.0


class PlaceStatus(Struct, frozen=True):
    """``state``: running, ended, or dead (its supervisor was killed, or never started).

    ``lease`` is None if there is no supervisor, or it does not answer.
    """

    run: str
    node: str
    place: str
    state: str
    lease: LeaseReport | None
    pids: tuple[int, ...]
    record_bytes: int
    ended: Ended | None


def places_in(rove: Path) -> list[Path]:
    return sorted(order.parent for order in (rove / "runs").glob(f"*/*/{ORDER}"))


def status_of(place: Path) -> PlaceStatus:
    state = state_of(place)
    return PlaceStatus(
        run=place.parent.name,
        node=place.name,
        place=str(place),
        state=state,
        lease=_lease(place) if state == "running" else None,
        pids=tuple(process.pid for process in belonging(run_of(place), place)),
        record_bytes=_bytes_in(place / RECORD),
        ended=read_ended(place) if state == "ended" else None,
    )


def _lease(place: Path) -> LeaseReport | None:
    try:
        with connect(str(place)) as connection:
            connection.settimeout(_ANSWER_S)
            connection.sendall(msgspec.json.encode(Request(AskLease())) + b"\n")
            with connection.makefile("rb") as lines:
                return msgspec.json.decode(lines.readline(), type=LeaseReport)
    except (OSError, msgspec.DecodeError):
        return None


def _bytes_in(directory: Path) -> int:
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue  # files come and go while the run writes
    return total
