"""The state of each node: from outcomes of phases, what the run's monitor sees, faults, its own records."""

from collections.abc import Iterator
from typing import Any

from orchestrator.foreign_text import one_line
from orchestrator.runs.outages import CRASH, SILENCE
from orchestrator.runs.timeline import Change

OK, FAILED, UNREACHABLE, CRASHED, SILENT, ENDED = "ok", "failed", "unreachable", "crashed", "silent", "ended"
LONGEST_WHY = 300
_FAULTS = {
    CRASH: (CRASHED, "its agent was killed by a fault"),
    SILENCE: (SILENT, "its radio is off by a fault"),
}
_UNDONE = {"restart": CRASH, "unsilence": SILENCE}


class NodeStates:
    """A fault hides what else is wrong: a node that was crashed on purpose is also unreachable."""

    def __init__(self, nodes: frozenset[str]) -> None:
        self._nodes = nodes
        self._faults: dict[str, dict[str, None]] = {}
        self._seen: dict[str, tuple[str, str]] = {}
        self._shown: dict[str, tuple[str, str]] = {}

    def fault(self, t: float, action: str, node: str) -> Iterator[Change]:
        """A step of a fault: crash, restart, silence or unsilence."""
        faults = self._faults.setdefault(node, {}) if node in self._nodes else {}
        if action in _FAULTS:
            faults[action] = None
        else:
            faults.pop(_UNDONE.get(action, ""), None)
            if action == "restart":
                self._seen.pop(node, None)
        yield from self._show(t, node)

    def seen(self, t: float, node: str, status: str, why: str) -> Iterator[Change]:
        """``status`` as the orchestrator sees it: ok, failed or unreachable; or the node's own: ended."""
        if status in (OK, FAILED, UNREACHABLE, ENDED) and node in self._nodes:
            self._seen[node] = (status, one_line(why, LONGEST_WHY))
            yield from self._show(t, node)

    def outcomes(self, t: float, event: dict[str, Any]) -> Iterator[Change]:
        """How the nodes came through a phase."""
        fine = event.get("ok")
        for node in filter(self._is_known, fine if isinstance(fine, list) else ()):
            if self._seen.get(node, (OK, ""))[0] in (FAILED, UNREACHABLE):
                yield from self.seen(t, node, OK, "")
            else:
                yield from self._show(t, node)
        for status in (FAILED, UNREACHABLE):
            found = event.get(status)
            for node, why in found.items() if isinstance(found, dict) else ():
                yield from self.seen(t, node, status, str(why))

    def troubled(self) -> dict[str, tuple[str, str]]:
        return {node: shown for node, shown in self._shown.items() if shown[0] not in (OK, ENDED)}

    def _is_known(self, node: Any) -> bool:
        return isinstance(node, str) and node in self._nodes

    def _show(self, t: float, node: str) -> Iterator[Change]:
        if node not in self._nodes:
            return
        faults = self._faults.get(node) or {}
        fault = next((each for each in (CRASH, SILENCE) if each in faults), None)
        state = _FAULTS[fault] if fault is not None else self._seen.get(node, (OK, ""))
        if self._shown.get(node) != state:
            self._shown[node] = state
            yield Change(t, "", "node", node, {"state": state[0], "why": state[1]})
