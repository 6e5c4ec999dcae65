"""Places everything that a run recorded on one clock: seconds since its first record, as `rove explain` does.

Nodes' times are corrected as in the report once the manifest has their clocks; while the run goes on, by the
last offset that was measured. Events are placed by the run's own time (``t_ns``) where they have it, else by
their wall time. In virtual time wall times mean nothing: other events are placed after the one before them,
the verdict after everything, and phases of old runs where the manifest says.
"""

import time
from typing import Any

from orchestrator.clocks.correction import FIRST_NS, LAST_NS, Piece, Pieces, ahead_ns
from orchestrator.live.facts import LATEST_NS, RunFacts, moment_ns, time_ns
from orchestrator.runs.phases import Phase

S = 1_000_000_000
BEFORE_NS = -1
"""The time of what came before the first record: it is shown at 0."""
AT_END_NS = LAST_NS
"""The time of what comes after everything else: it is shown at the latest time that is known."""
_SLACK_NS = 60 * S
_LONGEST_NS = 30 * 24 * 3600 * S
_ENDING = (Phase.STOP, Phase.COLLECT, Phase.DOWN, Phase.VERDICT)


class RunClock:
    def __init__(self) -> None:
        self.zero_ns: int | None = None
        self.now_ns = 0
        """The latest time that was shown."""
        self.version = 0
        """Changes when nodes' times are corrected in another way."""
        self._facts: RunFacts | None = None
        self._clocks: dict[str, Pieces] = {}
        self._measured: dict[str, Pieces] = {}
        self._event_ns = 0

    def know(self, facts: RunFacts) -> None:
        self._facts = facts
        self._clocks = facts.clocks
        self.version += 1

    def offset(self, node: str, offset_ns: int) -> None:
        """Notes by how much the clock of ``node`` is ahead, as it was just measured."""
        if not self._clocks:
            self._measured[node] = (Piece(FIRST_NS, LAST_NS, 0, offset_ns, 0.0),)
            self.version += 1

    def corrected(self, node: str, t_ns: int) -> int:
        pieces = self._clocks.get(node) or self._measured.get(node)
        return t_ns - ahead_ns(pieces, t_ns) if pieces else t_ns

    def seconds(self, node: str, t_ns: int) -> float:
        """Returns the time of the run, in seconds, for a time that ``node`` wrote."""
        return (self.corrected(node, t_ns) - (self.zero_ns or 0)) / S

    def since_zero(self, t_ns: int) -> float:
        """Returns seconds for a time on the run's clock; what came before the first record is at 0."""
        if t_ns == AT_END_NS:
            t_ns = self.now_ns
        return max(0, t_ns - (self.zero_ns or 0)) // 1000 / 1e6

    def is_possible(self, t_ns: int) -> bool:
        """Can something have happened at that time? A node may write down any."""
        facts = self._facts
        if facts is None or t_ns == AT_END_NS:
            return True
        if not -LATEST_NS <= t_ns <= LATEST_NS:
            return False
        if facts.virtual:
            last = facts.measure[1] + 3600 * S if facts.measure is not None else _LONGEST_NS
            return 0 <= t_ns <= last
        if facts.span is not None:
            return facts.span[0] - _SLACK_NS <= t_ns <= facts.span[1] + _SLACK_NS
        if facts.started_ns is None:
            return True
        return facts.started_ns - _SLACK_NS <= t_ns <= time.time_ns() + _SLACK_NS

    def event_ns(self, event: dict[str, Any]) -> int:
        """Returns when an event happened, on the run's clock."""
        virtual = self._facts is not None and self._facts.virtual
        own = time_ns(event.get("t_ns"))
        if own is not None and self.is_possible(own):
            found = own
        elif virtual:
            found = self._virtual_ns(event)
        else:
            found = moment_ns(event.get("t")) or self._event_ns
        if found != AT_END_NS:
            self._event_ns = found
        return found

    def _virtual_ns(self, event: dict[str, Any]) -> int:
        """Returns when an event without a time of its own happened."""
        if event.get("kind") == "verdict" or event.get("phase") in _ENDING:
            return AT_END_NS
        if event.get("kind") not in ("phase", "nodes"):
            return self._event_ns
        assert self._facts is not None
        begins = event.get("state") == "started"
        phase = event.get("phase")
        if phase in (Phase.PLAN, Phase.UP) or (phase == Phase.CONVERGE and begins):
            return 0
        window = self._facts.measure
        if window is None:
            return max(self.now_ns, self._event_ns)
        warm_up = window[0] - round(self._facts.warmup_s * S)
        times = {Phase.CONVERGE: (0, warm_up), Phase.WARM_UP: (warm_up, window[0]), Phase.MEASURE: window}
        if not isinstance(phase, str) or phase not in times:
            return self._event_ns
        begin, end = times[Phase(phase)]
        return begin if begins else end
