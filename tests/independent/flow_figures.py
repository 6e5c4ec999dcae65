"""Recomputes the tables and metrics of flows: docs/flows.md says what is measured."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from node_agent.apps.flows.delays import middle_ns
from tests.independent.believing import Record
from tests.independent.plan import FlowEnds
from tests.independent.reading import Run

S = 1_000_000_000


@dataclass
class Second:
    """A second of a flow, counted from when its source began."""

    t_ns: int
    sent: int | None = None
    sent_bytes: int = 0
    source_ahead_ns: int = 0
    """How far the source's clock was ahead when it told of the second for the last time."""
    heard: dict[int, "Heard"] = field(default_factory=dict)
    """By boot of the sink: what it says of the second at last."""
    arrived_bytes: int = 0
    delivered: int = 0
    best: "Heard | None" = None


class Heard(NamedTuple):
    """A row of ``heard``, with when it was told and how far the sink's clock was ahead then."""

    packets: int
    now_ns: int
    row: list[int]
    ahead_ns: int


class Flow:
    """One flow of a run. Where clocks differ, delays are corrected by how far each was ahead."""

    def __init__(self, run: Run, app: str, name: str, ends: FlowEnds) -> None:
        self.run, self.ends = run, ends
        self._sent = [each for each in run.records("flow_sent", app=app) if each["flow"] == name]
        self._received = [each for each in run.records("flow_received", app=app) if each["flow"] == name]
        self.seconds: dict[int, Second] = {}
        self._read_sent()
        self._read_heard()
        self._read_arrived()
        for each in self.seconds.values():
            told = [each.heard[boot] for boot in sorted(each.heard)]
            total = sum(heard.packets for heard in told)
            each.delivered = total if each.sent is None else min(total, each.sent)
            each.best = max(told, key=lambda heard: heard.packets, default=None)

    def _own_ahead(self, record: Record) -> int:
        ahead_ns: int = record["now_ns"] - record["t_ns"]
        return ahead_ns if self.run.clocks else 0

    def _opened(self, record: Record) -> int:
        opened_ns: int = record["opened_ns"] - self._own_ahead(record)
        return opened_ns

    def _at(self, second: int, t_ns: int) -> Second:
        return self.seconds.setdefault(second, Second(t_ns))

    def _read_sent(self) -> None:
        for record in sorted(self._sent, key=lambda each: each["now_ns"]):
            for second, packets, size in record["seconds"]:
                found = self._at(second, self._opened(record) + second * S)
                found.t_ns, found.source_ahead_ns = self._opened(record) + second * S, self._own_ahead(record)
                found.sent, found.sent_bytes = max(found.sent or 0, packets), max(found.sent_bytes, size)

    def _read_heard(self) -> None:
        for record in self._received:
            for row in record["heard"]:
                found = self._at(row[0], 0)
                told = Heard(row[1], record["now_ns"], row, self._own_ahead(record))
                known = found.heard.get(record["boot"], told)
                found.heard[record["boot"]] = max(known, told)

    def _read_arrived(self) -> None:
        """Adds what arrived to the source's second that is nearest to the sink's."""
        last: dict[tuple[int, int], tuple[int, int]] = {}
        for record in self._received:
            for second, _, size in record["arrived"]:
                key = (record["boot"], second)
                known = last.get(key, (0, 0))
                last[key] = max(known, (size, self._opened(record) + second * S))
        zero_ns = min((self._opened(record) for record in self._sent), default=None)
        for (_, second), (size, at_ns) in last.items():
            begin = zero_ns if zero_ns is not None else at_ns - second * S
            place = max((at_ns - begin + S // 2) // S, 0)
            found = self._at(place, begin + place * S)
            found.t_ns = max(found.t_ns, begin + place * S)
            found.arrived_bytes += size

    def totals(self, name: str) -> int:
        """Returns a counter of the sink at last, added over its boots."""
        last: dict[int, int] = {}
        for record in self._received:
            last[record["boot"]] = max(last.get(record["boot"], 0), record[name])
        return sum(last.values())


@dataclass
class Part:
    """What is summed up over the window, of one flow or of several."""

    sent: int = 0
    delivered: int = 0
    offered_bytes: int = 0
    arrived_bytes: int = 0
    delay_ns: float = 0.0
    jitter_ns: int = 0
    delayed: int = 0
    heard: int = 0
    delays: Counter[int] = field(default_factory=Counter)
    longest_ns: list[int] = field(default_factory=list)
    duplicates: int = 0
    reordered: int = 0

    def add(self, flow: Flow) -> "Part":
        run = flow.run
        grace = min(2 * S, (run.until_ns - run.from_ns) // 4)
        self.duplicates += flow.totals("duplicates")
        self.reordered += flow.totals("reordered")
        for each in flow.seconds.values():
            total = sum(heard.packets for heard in each.heard.values())
            if each.sent is not None and total > each.sent:
                self.duplicates += total - each.sent  # what a sink that was started anew counted again
            if not each.t_ns or not run.inside(each.t_ns + S // 2):
                continue
            self.offered_bytes += each.sent_bytes
            self.arrived_bytes += each.arrived_bytes
            if each.t_ns + S // 2 >= run.until_ns - grace:
                continue  # what was sent then may still be on its way
            self.sent += each.sent or 0
            self.delivered += min(each.delivered, each.sent or 0)
            self._add_delays(each)
        return self

    def _add_delays(self, second: Second) -> None:
        if second.best is None:
            return
        _, packets, _, jitter, base, total, _, most, *pairs = second.best.row
        self.jitter_ns += jitter * second.delivered
        self.heard += second.delivered
        if second.sent is None:
            return
        off = second.best.ahead_ns - second.source_ahead_ns
        self.delayed += second.delivered
        self.delay_ns += (base - off + total / packets) * second.delivered
        self.longest_ns.append(base - off + most)
        for bucket, count in zip(pairs[::2], pairs[1::2], strict=True):
            self.delays[base - off + middle_ns(bucket)] += count

    def figures(self, run: Run) -> dict[str, Any]:
        values = sorted(self.delays.elements())
        return {
            "sent_packets": self.sent,
            "delivery_ratio": self.delivered / self.sent if self.sent else None,
            "offered_bps": 8 * self.offered_bytes / round(run.window_s),
            "throughput_bps": 8 * self.arrived_bytes / round(run.window_s),
            "delay_mean_s": self.delay_ns / self.delayed / 1e9 if self.delayed else None,
            "delay_p50_s": _percentile(values, 0.5),
            "delay_p95_s": _percentile(values, 0.95),
            "delay_max_s": max(self.longest_ns) / 1e9 if self.longest_ns else None,
            "jitter_s": self.jitter_ns / self.heard / 1e9 if self.heard else None,
            "duplicates": self.duplicates,
            "reordered": self.reordered,
        }


def _percentile(values: list[int], share: float) -> float | None:
    if not values:
        return None
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return (values[below] + (values[above] - values[below]) * (place - below)) / 1e9


def metrics_of(run: Run, flows: dict[str, Flow]) -> dict[str, Any]:
    by_flow = {name: Part().add(flow).figures(run) for name, flow in flows.items()}
    whole = Part()
    for flow in flows.values():
        whole.add(flow)
    figures = whole.figures(run)
    jitters = [each["jitter_s"] for each in by_flow.values() if each["jitter_s"] is not None]
    ratios = [each["delivery_ratio"] for each in by_flow.values() if each["delivery_ratio"] is not None]
    figures["jitter_s"] = sum(jitters) / len(jitters) if jitters else None
    figures["delivery_ratio_min"] = min(ratios, default=None)
    del figures["sent_packets"]
    return {**{f"flow_{name}": value for name, value in figures.items()}, "flows": by_flow}
