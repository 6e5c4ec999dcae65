"""Logs what the orchestrator did and saw, one JSON object a line, readable during the run."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.runs.files import append_line, open_to_append

Event = dict[str, Any]
_LONGEST_NAME = 100


class EventLog:
    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, kind: str, **facts: Any) -> None:
        """Writes a whole line at once, so that a reader never sees two events mixed."""
        event = {"t": datetime.now(UTC).isoformat(timespec="milliseconds"), "kind": kind, **facts}
        with open_to_append(self._path) as file:
            append_line(file, event)


def fault_in(event: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns what a fault did and to which node (``("crash", "n3")``); None if the event is no fault.

    Older runs call the action ``deed``.
    """
    match event:
        case {"kind": "fault", "action": str(action), "node": str(node)}:
            return action, node
        case {"kind": "fault", "deed": str(action), "node": str(node)}:
            return action, node
    return None


def by_hand(event: Mapping[str, Any]) -> str:
    """Returns who did this with `rove set`; empty if the experiment file asked for it."""
    who = event.get("by")
    return who[:_LONGEST_NAME] if isinstance(who, str) else ""


def fault_note(event: Mapping[str, Any]) -> str:
    """Returns why this one was hit, and who did it; empty if the experiment file says both."""
    part = event.get("in_use")
    notes = [f"{part[:_LONGEST_NAME]} was in use"] if isinstance(part, str) else []
    return ", ".join([*notes, *([f"by hand: {who}"] if (who := by_hand(event)) else [])])


def describe(event: Event) -> str:
    """Describes one event in a few words for people."""
    if (fault := fault_in(event)) is not None:
        note = fault_note(event)
        return f"fault: {fault[0]} {fault[1]}{f' ({note})' if note else ''}"
    match event:
        case {"kind": "fault_missed", "action": action, "reason": reason}:
            return f"no {action}: {reason}"
        case {"kind": "phase", "phase": phase, "state": "started"}:
            return f"{phase} …"
        case {"phase": phase, "outcome": outcome, "seconds": int() | float() as seconds, "reason": reason}:
            return f"{phase}: {outcome} after {seconds:.2f} s{f': {reason}' if reason else ''}"
        case {"phase": phase, "ok": list(ok), "failed": dict(failed), "unreachable": dict(unreachable)}:
            troubles = [f"{node} failed: {why}" for node, why in failed.items()]
            troubles += [f"{node} unreachable: {why}" for node, why in unreachable.items()]
            return "; ".join([f"{phase}: {len(ok)} nodes ok", *troubles])
        case {"kind": "node", "node": node, "status": "ok"}:
            return f"{node} is back"
        case {"kind": "node", "node": node, "status": status, "reason": reason}:
            return f"{node} {status}: {reason}"
        case {"kind": "clock", "node": node, "offset_ms": float() | int() as ahead, "uncertainty_ms": within}:
            return f"clock of {node}: {ahead:+g} ms, to within {within} ms"
        case {"kind": "radio", "late_ratio": float() | int() as late, "p99_us": float() | int() as p99}:
            return f"radio: {late:.2%} of deliveries late, 99 % within {p99:.0f} µs"
        case {"kind": "verdict", "verdict": verdict, "reasons": list(reasons)}:
            return f"verdict: {verdict}{': ' if reasons else ''}{'; '.join(map(str, reasons))}"
    facts = {key: value for key, value in event.items() if key not in ("t", "kind")}
    return " ".join([str(event.get("kind", "?")), *(f"{key}={value}" for key, value in facts.items())])
