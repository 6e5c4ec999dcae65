"""Flows as they are watched: of each second, what was sent and received, what was lost, and delay.

Rates are of the last second that was over when the node wrote its record. A node that has nothing new to say
writes none: if none comes for ``QUIET_S``, nothing was sent or received since. Loss and delay are of packets
sent ``GRACE`` seconds before: later ones may still arrive. Delays are means, and corrected by the offsets of
the nodes' clocks. A flow that has sent all that it was to send ends.
"""

import math
from collections.abc import Iterator
from typing import Any

from node_agent.apps.flows.events import Amount, FlowReceived, FlowSent, Heard
from node_agent.apps.flows.model import Flow
from node_agent.telemetry.kinds import tag_of
from orchestrator.runs.timeline import Change, Seconds

GRACE = 2
"""Seconds, as in the report."""
QUIET_S = 3.0
_BEHIND_S = 1.5
"""What a node would have written so long ago is here by now."""
KEPT = 16
"""Seconds of a flow that are remembered."""
_SENT, _RECEIVED = tag_of(FlowSent), tag_of(FlowReceived)


class _Course:
    """The last seconds of one flow; each by its own count, from when its node began to send."""

    def __init__(self) -> None:
        self.boot = 0
        self.sent: dict[int, Amount] = {}
        self.heard: dict[int, Heard] = {}
        self.arrived: dict[int, Amount] = {}
        self.source_opened: float | None = None
        self.sink_opened: float | None = None
        self.source_now = self.sink_now = -math.inf
        """When each end wrote its last record."""
        self.packets = self.bytes = 0
        self.shift_s = 0.0
        self.last: dict[str, Any] | None = None


class FlowsView:
    def __init__(self, app: str, flows: tuple[Flow, ...], seconds: Seconds) -> None:
        self._app = app
        self._flows = flows
        self._by_name = {flow.name: flow for flow in flows}
        self._seconds = seconds
        self._courses = {flow.name: _Course() for flow in flows}

    def head(self) -> dict[str, Any]:
        return {
            "flows": [
                {"name": f.name, "from": f.source, "to": f.sink, "protocol": f.protocol} for f in self._flows
            ]
        }

    def take(self, node: str, t: float, record: Any) -> Iterator[Change]:
        if record.kind == _SENT:
            self._take_sent(node, record)
        elif record.kind == _RECEIVED:
            self._take_received(node, record)
        return iter(())

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        """Records of flows say themselves which start of an agent they are of."""

    def measure(self, t: float) -> None:
        """Nothing is summed up."""

    def measured(self, t: float) -> None:
        """Nothing is summed up."""

    def end(self, t: float) -> None:
        """Nothing is summed up."""

    def tick(self, t: float) -> Iterator[Change]:
        for name, course in self._courses.items():
            if course.source_opened is None:
                continue
            found = None if _has_ended(self._by_name[name], course, t) else _second(course, t)
            if found != course.last:
                course.last = found
                yield Change(t, self._app, "flow", name, found)

    def _take_sent(self, node: str, record: Any) -> None:
        course = self._courses.get(record.flow)
        if course is None:
            return
        if record.boot != course.boot:
            course.boot = record.boot
            course.sent.clear()
            course.heard.clear()
        course.source_opened = self._seconds(node, record.opened_ns)
        course.source_now = self._seconds(node, record.now_ns)
        course.packets, course.bytes = record.packets, record.bytes
        _remember(course.sent, map(Amount.of, record.seconds))

    def _take_received(self, node: str, record: Any) -> None:
        course = self._courses.get(record.flow)
        if course is None or record.source_boot < course.boot:
            return
        course.sink_opened = self._seconds(node, record.opened_ns)
        course.sink_now = self._seconds(node, record.now_ns)
        source = self._by_name[record.flow].source
        course.shift_s = self._seconds(node, record.now_ns) - self._seconds(source, record.now_ns)
        _remember(course.heard, map(Heard.of, record.heard))
        _remember(course.arrived, map(Amount.of, record.arrived))


def _remember(known: dict[int, Any], rows: Any) -> None:
    for row in rows:
        known[row.second] = row
    for second in sorted(known)[:-KEPT]:
        del known[second]


def _second(course: _Course, t: float) -> dict[str, Any]:
    """Returns the figures of the last second that is over and known at ``t``."""
    assert course.source_opened is not None
    source_now, sink_now = _known_until(course.source_now, t), _known_until(course.sink_now, t)
    sent = arrived = None
    if t - course.source_now < QUIET_S:
        sent = course.sent.get(_last_over(source_now, course.source_opened))
    if course.sink_opened is not None and t - course.sink_now < QUIET_S:
        arrived = course.arrived.get(_last_over(sink_now, course.sink_opened))
    old = _last_over(min(source_now, sink_now), course.source_opened) - GRACE
    due, heard = course.sent.get(old), course.heard.get(old)
    lost = None
    if due is not None and due.packets:
        lost = round(max(0.0, 1 - (heard.packets if heard is not None else 0) / due.packets), 4)
    delay = None if heard is None else (heard.base_ns + heard.sum_ns / heard.packets) / 1e9 + course.shift_s
    return {
        "sent": sent.bytes * 8 if sent is not None else 0,
        "received": arrived.bytes * 8 if arrived is not None else 0,
        "lost": lost,
        "delay": None if delay is None else round(delay, 6),
        "jitter": None if heard is None else round(heard.jitter_ns / 1e9, 6),
    }


def _known_until(now: float, t: float) -> float:
    """Returns until when it is known what a node sent or received, if it wrote its last record at ``now``."""
    return now if t - now < QUIET_S else max(now, t - _BEHIND_S)


def _last_over(now: float, opened: float) -> int:
    """Returns the number that a node gives to the last of its seconds that is over."""
    return math.floor(now - opened + 1e-6) - 1


def _has_ended(flow: Flow, course: _Course, t: float) -> bool:
    """Whether all was sent that was to be sent, and nothing has come since."""
    assert course.source_opened is not None
    is_over = (
        (flow.stop is not None and course.source_opened + flow.stop <= t)
        or (flow.packets is not None and course.packets >= flow.packets)
        or (flow.bytes is not None and course.bytes >= flow.bytes)
    )
    return is_over and max(course.source_now, course.sink_now) <= t - QUIET_S
