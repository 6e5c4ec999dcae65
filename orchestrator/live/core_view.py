"""The run itself as it is watched: phases, events, nodes, machines, clocks, records, and doubts so far.

Takes checked items and returns changes; pure. Applications have views of their own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from node_agent.model.host_load import LoadSample
from node_agent.model.telemetry import KILLED, AgentStart, AgentStop, Neighbours
from node_agent.telemetry.belief import OLD_APP
from node_agent.telemetry.kinds import tag_of
from orchestrator.foreign_text import one_line
from orchestrator.live.doubts import Doubts, offset_of
from orchestrator.live.facts import RunFacts, number
from orchestrator.live.network import NetworkView
from orchestrator.live.nodes import ENDED, OK, NodeStates
from orchestrator.live.run_clock import RunClock
from orchestrator.live.sources import EVENT, HOST, RECORD, REFUSED, Item
from orchestrator.runs.events import describe, fault_in
from orchestrator.runs.outages import CRASH
from orchestrator.runs.timeline import AppView, Change

LONGEST_TEXT = 400
MOST_REASONS = 50
_START, _STOP, _NEIGHBOURS = tag_of(AgentStart), tag_of(AgentStop), tag_of(Neighbours)
_QUIET = ("clock", "radio", "node")
"""Kinds of events that have channels of their own."""
_BAD = ("failed", "broke", "timed out", "invalid")


class RunView:
    """``views``: of the run's applications, by name. ``measure``: the measured time, once it has begun."""

    def __init__(self, facts: RunFacts, clock: RunClock, views: Mapping[str, AppView]) -> None:
        self.measure: list[float] | None = None
        self._facts = facts
        self._clock = clock
        self._views = views
        nodes = frozenset(facts.nodes)
        self._network = NetworkView(nodes, facts.has_signals)
        self._nodes = NodeStates(nodes)
        self._doubts = Doubts(facts)
        self._measuring = False
        self._counts: dict[str, _Counts] = {}
        self._counted: set[str] = set()
        self._boots: dict[str, int] = {}
        self._latest = 0.0
        """When the last record was written."""
        self._is_judged = False

    def take(self, t: float, item: Item) -> Iterable[Change]:
        if item.kind == RECORD:
            return self._record(t, item)
        if item.kind == EVENT:
            return self._event(t, item.record, item.t_ns)
        if item.kind == HOST:
            return self._host(t, item.node, item.record)
        if item.kind == REFUSED:
            return self._refused(item.node, item.record)
        return self._network.take(item.kind, t, item.record)

    def tick(self, t: float) -> Iterator[Change]:
        """Ends what was counted in the seconds before ``t``."""
        for view in self._views.values():
            yield from view.tick(t)
        for node in sorted(self._counted):
            yield Change(t, "", "record", node, self._counts[node].document())
        self._counted.clear()
        yield from self._network.tick(t)
        if not self._is_judged:
            yield from self._doubts.tick(t)

    def end(self) -> None:
        """Everything was taken: what is not known by now never will be."""
        for view in self._views.values():
            view.end(self._latest)

    def died(self, t: float) -> Iterator[Change]:
        """The run's process is gone: nobody will judge the run. One that was judged has its last word."""
        if not self._is_judged:
            self._is_judged = True
            yield Change(t, "", "verdict", "", {"so_far": self._doubts.so_far(), "died": True})

    def _record(self, t: float, item: Item) -> Iterable[Change]:
        record, node = item.record, item.node
        counts = self._counts.get(node)
        if counts is None:
            counts = self._counts[node] = _Counts()
        counts.take(record.boot, item.size)
        self._counted.add(node)
        if t > self._latest:
            self._latest = t
        if not record.app and record.kind in (_START, _STOP, _NEIGHBOURS):
            return self._agent(t, node, record)
        view = self._views.get(record.app or OLD_APP)
        return view.take(node, t, record) if view is not None else ()

    def _agent(self, t: float, node: str, record: Any) -> Iterator[Change]:
        if record.kind == _NEIGHBOURS:
            costs = getattr(record, "costs", None)
            if not self._facts.traits.knows_links and isinstance(costs, dict):
                yield from self._network.neighbours(t, node, costs)
        elif record.kind == _STOP:
            killed = record.reason == KILLED
            self._tell(node, t, record.boot, "killed" if killed else "stopped")
            if not killed:
                yield from self._nodes.seen(t, node, ENDED, record.reason)
        elif record.kind == _START:
            self._boots[node] = record.boot
            self._tell(node, t, record.boot, "started")
            yield from self._nodes.seen(t, node, OK, "")

    def _tell(self, node: str, t: float, boot: int, state: str) -> None:
        for view in self._views.values():
            view.agent(node, t, boot, state)

    def _event(self, t: float, event: dict[str, Any], t_ns: int) -> Iterator[Change]:
        kind = str(event.get("kind", ""))
        if kind not in _QUIET:
            text = {
                "kind": kind[:40],
                "text": one_line(_described(event), LONGEST_TEXT),
                "level": _level(event),
            }
            yield Change(t, "", "event", "", text)
        match event:
            case {"kind": "phase", "phase": str(phase), "state": str(state)}:
                yield from self._phase(t, phase, state, event)
            case {"kind": "nodes"}:
                yield from self._nodes.outcomes(t, event)
            case {"kind": "node", "node": str(node), "status": str(status)}:
                yield from self._nodes.seen(t, node, status, str(event.get("reason") or ""))
            case {"kind": "fault"} if (fault := fault_in(event)) is not None:
                action, node = fault
                if action == CRASH and node in self._boots:
                    self._tell(node, t, self._boots[node], "killed")
                yield from self._nodes.fault(t, action, node)
            case {"kind": "clock", "node": str(node)}:
                yield from self._clock_event(t, node, event, t_ns)
            case {"kind": "radio"}:
                late, p99 = (number(event.get(name), 0.0) for name in ("late_ratio", "p99_us"))
                self._doubts.radio(late)
                yield Change(t, "", "radio", "", {"late_ratio": late, "p99_us": p99})
            case {"kind": "verdict", "verdict": str(verdict)}:
                reasons = event.get("reasons")
                listed = reasons[:MOST_REASONS] if isinstance(reasons, list) else []
                said = [one_line(str(reason), LONGEST_TEXT) for reason in listed]
                yield from self._doubts.tick(t)  # what was found last comes before the last word
                self._is_judged = True
                yield Change(t, "", "verdict", "", {"verdict": verdict[:40], "reasons": said})

    def _phase(self, t: float, phase: str, state: str, event: dict[str, Any]) -> Iterator[Change]:
        value: dict[str, Any] = {"phase": phase[:40], "state": state[:40]}
        if state == "finished":
            value["outcome"] = str(event.get("outcome"))[:40]
            self._doubts.phase_ended(event)
        yield Change(t, "", "phase", "", value)
        if phase == "measure":
            self._measuring = state == "started"
            window = self._facts.measure  # of a run that is over; it may be known a little better
            if state == "started":
                self.measure = [t, t + self._facts.duration_s]
                for view in self._views.values():
                    view.measure(t if window is None else self._clock.since_zero(window[0]))
            else:
                for view in self._views.values():
                    view.measured(t if window is None else self._clock.since_zero(window[1]))

    def _clock_event(self, t: float, node: str, event: dict[str, Any], t_ns: int) -> Iterator[Change]:
        offset = offset_of(event, t_ns) if node in self._facts.nodes else None
        if offset is None:
            return
        self._clock.offset(node, offset.offset_ns)
        self._doubts.clock(node, offset)
        value = {
            "offset_ms": round(offset.offset_ns / 1e6, 3),
            "uncertainty_ms": round(offset.uncertainty_ns / 1e6, 3),
        }
        yield Change(t, "", "clock", node, value)

    def _host(self, t: float, machine: str, sample: LoadSample) -> Iterator[Change]:
        if self._measuring:
            self._doubts.load(machine, sample)
        value: dict[str, Any] = {"waited": sample.waited, "late_ms": sample.latest_ms}
        if sample.group_delay_ms is not None:  # what counts then
            value = {"delay_ms": sample.group_delay_ms, "late_ms": sample.latest_ms}
        elif sample.waited is None and sample.work_waited is not None:
            value |= {"waited": sample.work_waited, "probe": True}
        yield Change(t, "", "host", machine, value)

    def _refused(self, node: str, counts: Mapping[tuple[str, str], int]) -> Iterable[Change]:
        self._counts.setdefault(node, _Counts()).refuse(sum(counts.values()))
        self._counted.add(node)
        for (state, why), lines in counts.items():
            self._doubts.refuse(node, state, why, lines)
        return ()


class _Counts:
    """What one node has recorded. ``of_boot``: lines of its agent's newest start, refused ones included."""

    __slots__ = ("boot", "of_boot", "records", "refused", "size")

    def __init__(self) -> None:
        self.records = self.size = self.refused = self.boot = self.of_boot = 0

    def take(self, boot: int, size: int) -> None:
        if boot != self.boot:
            self.boot, self.of_boot = boot, 0
        self.of_boot += 1
        self.records += 1
        self.size += size

    def refuse(self, lines: int) -> None:
        self.of_boot += lines
        self.refused += lines

    def document(self) -> dict[str, int]:
        return {
            "records": self.records,
            "bytes": self.size,
            "refused": self.refused,
            "boot": self.boot,
            "of_boot": self.of_boot,
        }


def _described(event: dict[str, Any]) -> str:
    try:
        return describe(event)
    except (TypeError, ValueError, OverflowError):  # nothing that Rove has written
        return str(event.get("kind", "?"))


def _level(event: dict[str, Any]) -> str:
    if event.get("outcome") in _BAD or event.get("verdict") in _BAD or event.get("kind") == "error":
        return "error"
    if event.get("failed") or event.get("unreachable") or event.get("kind") == "fault":
        return "warn"
    return "warn" if event.get("outcome") in ("degraded", "interrupted") else "info"
