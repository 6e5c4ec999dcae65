"""The process that holds a set-up: makes it, says so, and takes it back when it ends or was killed."""

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
from node_agent.host.setup.journal import Journal, Way
from node_agent.host.setup.managers import hands_off, refuse_held
from node_agent.host.setup.observe import is_wireless, observe, observe_managers, programs_for, supplicants
from node_agent.host.setup.observed import Observed, differences
from node_agent.host.setup.order import SetupOrder, from_json
from node_agent.host.setup.radio import radio_steps
from node_agent.host.setup.shaping import shaping_steps
from node_agent.host.setup.steps import Command, SetupError, Step

EXIT_FAILED = 1
EXIT_BAD_ORDER = 2
_QUIET_S, _SETTLED_WITHIN_S = 0.5, 10.0


class _Asked(Exception):
    """To end, before the set-up was complete."""


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
    with _alone_with(order.interface):
        return _hold(order, file)


def plan(order: SetupOrder, seen: Observed) -> tuple[Step, ...]:
    """Everything that is to be changed, each with its way back."""
    return (*radio_steps(order, seen), *forwarding_steps(order, seen), *shaping_steps(order, seen))


def _hold(order: SetupOrder, file: Path) -> int:
    ending = Ending()
    path = journal.path_for(file)
    notes = []
    if (way := journal.left_behind(path)) is not None:
        notes.append("undid what a killed process had left")
        notes += _undo(way, path)
    kept = Journal(path, order)
    try:
        notes += _apply(order, kept, ending)
        _say({"ready": True, "notes": notes})
        ending.wait()
    except _Asked:
        pass
    except SetupError as error:
        left = _undo(kept.way, path)
        raise SetupError("; not as before: ".join([str(error), *left])) from None
    except BaseException:
        _undo(kept.way, path)
        raise
    return _report_undone(_undo(kept.way, path))


def _apply(order: SetupOrder, kept: Journal, ending: Ending) -> list[str]:
    """What is worth knowing about it."""
    programs.refuse_missing(programs_for(order))
    notes = []
    if order.radio is not None:
        works = bool(observe(order).link.addresses)
        steps = hands_off(order.interface, observe_managers(order.interface), is_wireless(order), works)
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
        raise _Asked
    done = programs.run(step.do)
    if done.returncode == 0:
        return []
    complaint = programs.complaint(step, done.stderr)
    if not step.optional:
        raise SetupError(complaint)
    return [complaint]


def _settle(order: SetupOrder) -> None:
    """Who lets go of an interface takes its addresses along, a little later."""
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
    way = journal.left_behind(path)
    if way is None:
        path.unlink(missing_ok=True)  # of before a restart
        return _report_undone(())
    with _alone_with(way.order.interface):
        return _report_undone(_undo(way, path))


def _undo(way: Way, path: Path) -> Sequence[str]:
    """What is not as it was. A command may fail: the last deed may not have been done; looking tells."""
    for command in way.undo:
        _try(command)
    left: list[str] = []
    if way.before is not None:
        try:
            left += differences(way.before, observe(way.order))
        except SetupError as error:
            left.append(str(error))
    for command in way.give_back:
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


def _alone_with(interface: str) -> socket.socket:
    """A name that the kernel gives to one process of a network namespace, and takes back when it ends."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(f"\0rove/setup/{interface}")
    except OSError:
        held.close()
        raise SetupError(f"{interface} is set up for another run: end that run first (rove down)") from None
    return held


def _say(message: dict[str, object]) -> None:
    # Nobody may be listening any more, which is no reason to leave things undone.
    with contextlib.suppress(OSError):
        sys.stdout.write(msgspec.json.encode(message).decode() + "\n")
        sys.stdout.flush()
