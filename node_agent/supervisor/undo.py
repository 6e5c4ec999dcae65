"""Undoes what killed programs could not undo themselves: a set-up's changes, a daemon's routes."""

import os
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from node_agent.supervisor.order import Program, SupervisorOrder
from node_agent.supervisor.place import RECORD
from node_agent.supervisor.programs import Log, with_rights

UNDO_S = 20.0


class _Undone(Struct, frozen=True):
    error: str = ""
    left: tuple[str, ...] = ()


def undo_set_up(order: SupervisorOrder, place: Path) -> str:
    """Returns what is not as it was before the run; empty if nothing is. May be repeated."""
    if order.setup is None or order.undo is None or not (place / order.undo.file).exists():
        return ""
    name, log = order.setup.name, Log(place / RECORD / order.setup.log)
    try:
        done = _executed(order.undo.argv, order.setup.privileged, log)
        said = msgspec.json.decode(done.stdout, type=_Undone)
    except subprocess.TimeoutExpired:
        return f"{name} is not undone within {UNDO_S:g} s"
    except (OSError, msgspec.DecodeError) as error:
        return f"{name} cannot be undone: {log.last_line() or error}"
    problems = said.error or "; ".join(said.left)
    return f"{name} is not undone: {problems}" if problems else ""


def undo_services(order: SupervisorOrder, place: Path) -> str:
    """Returns what daemons left that could not be removed; empty if nothing. May be repeated."""
    troubles = [_undo_service(service, place) for service in order.services if service.undo]
    return "; ".join(trouble for trouble in troubles if trouble)


def _undo_service(service: Program, place: Path) -> str:
    log = Log(place / RECORD / service.log)
    try:
        status = _executed(service.undo, service.privileged, log).returncode
    except subprocess.TimeoutExpired:
        return f"what {service.name} left is not removed within {UNDO_S:g} s"
    except OSError as error:
        return f"what {service.name} left cannot be removed: {error}"
    return "" if status == 0 else f"what {service.name} left is not removed: {log.last_line() or status}"


def _executed(argv: tuple[str, ...], privileged: bool, log: Log) -> "subprocess.CompletedProcess[bytes]":
    """Runs the command and captures its standard output; the rest goes to the log."""
    try:
        output = log.open()
    except OSError:  # no room: the node must be restored all the same
        output = os.open(os.devnull, os.O_WRONLY)
    try:
        command = with_rights(argv, privileged, os.environ, os.geteuid())
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output, timeout=UNDO_S
        )
    finally:
        os.close(output)
