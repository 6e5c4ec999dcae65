"""Makes a set-up, reports when it is ready, holds it, and undoes it at the end."""

import argparse
import contextlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from node_agent.host.setup import journal, programs
from node_agent.host.setup.ending import Ending
from node_agent.host.setup.forwarding import forwarding_steps
from node_agent.host.setup.journal import Journal, UndoRecord
from node_agent.host.setup.managers import refuse_held, release_steps
from node_agent.host.setup.observe import is_wireless, observe, observe_managers, programs_for, supplicants
from node_agent.host.setup.observed import Observed, differences
from node_agent.host.setup.order import SetupOrder, from_json
from node_agent.host.setup.radio import radio_steps
from node_agent.host.setup.shaping import shaping_steps
from node_agent.host.setup.steps import Command, SetupError, Step

EXIT_FAILED = 1
EXIT_BAD_ORDER = 2
_QUIET_S, _SETTLED_WITHIN_S = 0.5, 10.0


class _AskedToEnd(Exception):
    """The end was requested before the set-up was complete."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m node_agent.host.setup", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--order", type=Path, metavar="FILE", help="set up, hold until stdin closes, undo")
    action.add_argument("--undo", type=Path, metavar="FILE", help="undo what a killed process left of FILE")
    arguments = parser.parse_args()
    try:
        if os.geteuid() != 0:
            raise SetupError("setting up a node needs root")
        return _set_up(arguments.order) if arguments.order else _undo_left(arguments.undo)
    except SetupError as error:
        _say({"error": str(error)})
        return EXIT_FAILED


def _set_up(file: Path) -> int:
    try:
        order = from_json(file.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        _say({"error": f"{file}: {error}"})
        return EXIT_BAD_ORDER
    with _lock_interface(order.interface):
        return _hold(order, file)


def plan(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    """Returns all changes, each with its undo commands."""
    return (*radio_steps(order, seen), *forwarding_steps(order, seen), *shaping_steps(order, seen))


def _hold(order: SetupOrder, file: Path) -> int:
    ending = Ending()
    path = journal.path_for(file)
    notes = []
    if (record := journal.left_behind(path)) is not None:
        notes.append("undid what a killed process had left")
        notes += _undo(record, path)
    kept = Journal(path, order)
    try:
        notes += _apply(order, kept, ending)
        _say({"ready": True, "notes": notes})
        ending.wait()
    except _AskedToEnd:
        pass
    except SetupError as error:
        left = _undo(kept.record, path)
        raise SetupError("; not as before: ".join([str(error), *left])) from None
    except BaseException:
        _undo(kept.record, path)
        raise
    return _report_undone(_undo(kept.record, path))


def _apply(order: SetupOrder, kept: Journal, ending: Ending) -> list[str]:
    """Makes the changes, and returns notes for the user."""
    programs.refuse_missing(programs_for(order))
    notes = []
    if order.radio is not None:
        works = bool(observe(order).link.addresses)
        steps = release_steps(order.interface, observe_managers(order.interface), is_wireless(order), works)
        for step in steps:
            kept.managed(step.undo)
            notes += _carry_out(step, ending)
        if steps:
            _settle(order)
        if is_wireless(order):
            refuse_held(order.interface, supplicants(order.interface))
    seen = observe(order)
    steps = plan(order, seen)
    kept.starts_from(seen)
    for step in steps:
        kept.intends(step.undo)
        notes += _carry_out(step, ending)
    return notes


def _carry_out(step: Step, ending: Ending) -> list[str]:
    if ending.is_asked():
        raise _AskedToEnd
    done = programs.run(step.do)
    if done.returncode == 0:
        return []
    complaint = programs.complaint(step, done.stderr)
    if not step.optional:
        raise SetupError(complaint)
    return [complaint]


def _settle(order: SetupOrder) -> None:
    """Waits until the interface is stable: a manager that releases it
    removes its addresses a little later."""
    deadline = time.monotonic() + _SETTLED_WITHIN_S
    before = observe(order)
    while time.monotonic() < deadline:
        time.sleep(_QUIET_S)
        now = observe(order)
        if now == before:
            return
        before = now


def _undo_left(file: Path) -> int:
    path = journal.path_for(file)
    record = journal.left_behind(path)
    if record is None:
        path.unlink(missing_ok=True)  # left from before a restart
        return _report_undone(())
    with _lock_interface(record.order.interface):
        return _report_undone(_undo(record, path))


def _undo(record: UndoRecord, path: Path) -> Sequence[str]:
    """Undoes the changes, and returns what is not as it was. Commands may fail, because the last change may
    not have been made; so the result is observed."""
    for command in record.undo:
        _try(command)
    left: list[str] = []
    if record.before is not None:
        try:
            left += differences(record.before, observe(record.order))
        except SetupError as error:
            left.append(str(error))
    for command in record.give_back:
        left += _try(command)
    with contextlib.suppress(OSError):
        path.unlink()
    return left


def _try(command: Command) -> list[str]:
    try:
        done = programs.run(command)
    except SetupError as error:
        return [str(error)]
    return [programs.complaint(Step(command), done.stderr)] if done.returncode else []


def _report_undone(left: Sequence[str]) -> int:
    _say({"undone": True, "left": list(left)})
    if left:
        with contextlib.suppress(OSError):
            print(f"not as before: {'; '.join(left)}", file=sys.stderr, flush=True)
    return EXIT_FAILED if left else 0


def _lock_interface(interface: str) -> socket.socket:
    """Binds a socket name that only one process of a network namespace can
    have; the kernel frees it with the process."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(f"\0rove/setup/{interface}")
    except OSError:
        held.close()
        raise SetupError(f"{interface} is set up for another run: end that run first (rove down)") from None
    return held


def _say(message: dict[str, object]) -> None:
    # Nobody may be reading any more; that must not prevent the undo.
    with contextlib.suppress(OSError):
        sys.stdout.write(msgspec.json.encode(message).decode() + "\n")
        sys.stdout.flush()
