"""A dataflow as it is watched: where streams go and why, rates, queues, latency, what was lost so far.

Rates of a replica are of one second: ``in`` counts tuples received (of a source: emitted), ``out`` those sent
(of a sink: delivered), ``done`` those processed, ``bytes`` are those sent or delivered.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from node_agent.apps.dataflow.events import (
    QueueSample,
    RouteDecision,
    RouteSwitch,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.faces.events import FacesSeen
from node_agent.apps.dataflow.model.decision import MOST_CANDIDATES
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import Query
from node_agent.apps.dataflow.model.units import CountWindow, TimeWindow
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.dataflow.decisions.reasons import reason
from orchestrator.apps.dataflow.live_fates import Holder
from orchestrator.apps.dataflow.live_switches import Switches, is_switch
from orchestrator.apps.dataflow.live_totals import Totals
from orchestrator.foreign_text import one_line
from orchestrator.runs import latency_buckets
from orchestrator.runs.timeline import Change, Seconds

MOST_LATENCIES = 20_000
"""Of one second and sink; the percentiles are of the first ones."""
PICTURE_PERIOD_S = 0.2
LONGEST_WHY = 1000
LONGEST_NAME = 100
MOST_QUEUES = 64
"""Of one replica."""
COUNTED_S = 300.0
"""How long a window of a number of tuples is taken to be: nobody knows how fast they come."""
_PICTURES = ("show_faces", "show_heat_map")
"""The kinds of sinks that write pictures."""
_DECISION = tuple(RouteDecision.__struct_fields__)
_NOTHING = {"in": 0, "out": 0, "done": 0, "dropped": 0, "bytes": 0}


class DataflowView:
    def __init__(self, app: str, plan: DeploymentPlan, seconds: Seconds) -> None:
        self._app = app
        self._plan = plan
        self._seconds = seconds
        query = plan.query
        self._sources = {replica.id for name in query.sources() for replica in plan.of(name)}
        self._sinks = {replica.id for name in query.sinks() for replica in plan.of(name)}
        self._shows = {
            r.id for name in query.sinks() if query.operator(name).kind in _PICTURES for r in plan.of(name)
        }
        self._born_on = _birth_nodes(plan)
        self._totals = Totals(plan)
        self._switches = Switches()
        self._rates: dict[int, dict[str, dict[str, int]]] = {}
        """By second and replica."""
        self._open = 0
        """The first second that is not over."""
        self._busy: set[str] = set()
        self._latencies: dict[int, dict[str, list[float]]] = {}
        self._queues: dict[str, dict[str, int]] = {}
        self._lengths: dict[str, dict[str, int]] = {}
        self._routes: dict[str, tuple[int, Any]] = {}
        self._pictures: dict[str, float] = {}
        self._takes: dict[str, Callable[[str, float, Any], Iterable[Change]]] = {
            tag_of(TupleEmitted): self._emitted,
            tag_of(TupleSent): self._sent,
            tag_of(TupleReceived): self._received,
            tag_of(TupleProcessed): self._processed,
            tag_of(TupleDelivered): self._delivered,
            tag_of(TupleDropped): self._dropped,
            tag_of(QueueSample): self._queue,
            tag_of(RouteDecision): self._decided,
            tag_of(RouteSwitch): self._switched,
            tag_of(FacesSeen): self._seen,
        }

    def head(self) -> dict[str, Any]:
        query = self._plan.query
        sources, sinks = query.sources(), query.sinks()
        roles = {
            name: "source" if name in sources else "sink" if name in sinks else "operator"
            for name in query.names()
        }
        return {
            "operators": [{"name": name, "role": roles[name]} for name in query.topological()],
            "edges": [[before, o.name] for o in query.operators for before in o.after],
            "replicas": [{"id": r.id, "operator": r.operator, "node": r.node} for r in self._plan.replicas],
            "pictures": bool(self._shows),
            "policy": None,
            "window_s": _windows_s(query),
        }

    def take(self, node: str, t: float, record: Any) -> Iterable[Change]:
        take = self._takes.get(record.kind)
        return take(node, t, record) if take is not None else ()

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        self._totals.agent(node, t, boot, state)

    def measure(self, t: float) -> None:
        self._totals.begin(t)
        self._switches.begin(t)

    def measured(self, t: float) -> None:
        self._totals.finish(t)
        self._switches.finish(t)

    def end(self, t: float) -> None:
        self._totals.end(t)

    def tick(self, t: float) -> Iterator[Change]:
        self._open = int(t)
        for second in sorted({self._open - 1, *(each for each in self._rates if each < self._open)}):
            rates = self._rates.pop(second, {})
            # A replica that stopped is shown as idle, once.
            for replica in sorted({*rates, *self._busy}):
                yield Change(t, self._app, "rate", replica, rates.get(replica) or dict(_NOTHING))
            self._busy = set(rates)
        for second in sorted(each for each in self._latencies if each < self._open):
            of_sinks = self._latencies.pop(second)
            for replica, found in sorted(of_sinks.items()):
                yield Change(t, self._app, "latency", replica, _percentiles(found))
            if len(self._sinks) > 1:
                together = [each for found in of_sinks.values() for each in found]
                yield Change(t, self._app, "latency", "", _percentiles(together))
        if (total := self._totals.changed(t, self._switches.count())) is not None:
            yield Change(t, self._app, "total", "", total)

    def _rate(self, t: float, replica: str) -> dict[str, int]:
        """Returns what is counted for the second of ``t``; what comes late counts in one that is open."""
        rates = self._rates.setdefault(max(int(t), self._open), {})
        rate = rates.get(replica)
        if rate is None:
            rate = rates[replica] = dict(_NOTHING)
        return rate

    def _emitted(self, node: str, t: float, record: Any) -> Iterable[Change]:
        many = record.tuples or 1
        if record.replica in self._sources:
            self._rate(t, record.replica)["in"] += many
        self._switches.carried(t, record.replica)
        by = Holder(t, node, record.boot)
        self._totals.emitted(by, record.replica, record.origin, record.tau, many)
        return ()

    def _sent(self, node: str, t: float, record: Any) -> Iterable[Change]:
        rate = self._rate(t, record.replica)
        many = record.tuples or 1
        rate["out"] += many
        rate["bytes"] += record.size
        by = Holder(t, node, record.boot)
        self._totals.sent(by, record.replica, record.to, record.origin, record.tau, many)
        return ()

    def _received(self, node: str, t: float, record: Any) -> Iterable[Change]:
        many = record.tuples or 1
        self._rate(t, record.replica)["in"] += many
        self._switches.carried(t, record.replica)
        by = Holder(t, node, record.boot)
        self._totals.received(by, record.replica, record.sender, record.origin, record.tau, many)
        return ()

    def _processed(self, node: str, t: float, record: Any) -> Iterable[Change]:
        self._rate(t, record.replica)["done"] += record.tuples or 1
        return ()

    def _dropped(self, node: str, t: float, record: Any) -> Iterable[Change]:
        self._rate(t, record.replica)["dropped"] += 1
        self._totals.dropped(record.replica, record.origin, record.tau, record.reason, record.downstream)
        return ()

    def _delivered(self, node: str, t: float, record: Any) -> Iterable[Change]:
        many = record.tuples or 1
        rate = self._rate(t, record.replica)
        rate["out"] += many
        rate["bytes"] += record.size
        born = self._seconds(self._born_on.get(record.origin, node), record.born_ns)
        births = [born + after / 1e9 for after in record.births or (0,) * many]
        self._totals.delivered(record.replica, record.origin, record.tau, births)
        found = self._latencies.setdefault(max(int(t), self._open), {}).setdefault(record.replica, [])
        if len(found) < MOST_LATENCIES:
            found += [t - each for each in births]
        if record.replica in self._shows and record.replica not in self._pictures:
            return self._picture(t, record.replica, record.tau)
        return ()

    def _seen(self, node: str, t: float, record: Any) -> Iterable[Change]:
        return self._picture(t, record.replica, record.frame)

    def _picture(self, t: float, replica: str, frame: int) -> Iterator[Change]:
        if t - self._pictures.get(replica, -1.0) >= PICTURE_PERIOD_S:
            self._pictures[replica] = t
            yield Change(t, self._app, "picture", replica, {"file": "latest.jpg", "frame": frame})

    def _queue(self, node: str, t: float, record: Any) -> Iterator[Change]:
        lengths = self._lengths.setdefault(record.replica, {})
        name = record.queue[:LONGEST_NAME]
        if name not in lengths and len(lengths) >= MOST_QUEUES:
            return
        lengths[name] = record.length
        shown = {"in": 0, "out": 0}
        for queue, length in lengths.items():
            shown["out" if queue.startswith("output") else "in"] += length
        if shown != self._queues.get(record.replica):
            self._queues[record.replica] = shown
            yield Change(t, self._app, "queue", record.replica, shown)

    def _decided(self, node: str, t: float, record: Any) -> Iterator[Change]:
        decision = RouteDecision(*(getattr(record, name) for name in _DECISION))
        key = f"{decision.replica}>{decision.downstream}"
        shares = {
            to[:LONGEST_NAME]: round(share, 3)
            for to, share in islice(decision.shares.items(), MOST_CANDIDATES)
        }
        costs = [
            {"to": c.to[:LONGEST_NAME], "link": _cost(c.link), "path": _cost(c.path)}
            for c in decision.candidates[:MOST_CANDIDATES]
        ]
        boot, before = self._routes.get(key, (0, None))
        is_first = boot != record.boot or before is None
        now = (decision.new, shares, costs)
        if not is_first and before == now:
            return
        self._routes[key] = (record.boot, now)
        used = decision.old or self._switches.used(key)
        switch = is_switch(used, decision.new)
        yield Change(
            t,
            self._app,
            "route",
            key,
            {
                "to": decision.new,
                "old": used if switch else decision.old,
                "why": one_line(reason(decision), LONGEST_WHY),
                "switch": switch,
                "shares": shares,
                "costs": costs,
            },
        )

    def _switched(self, node: str, t: float, record: Any) -> Iterable[Change]:
        self._switches.take(t, record.replica, record.downstream, record.old, record.new)
        return ()


def _birth_nodes(plan: DeploymentPlan) -> dict[str, str]:
    """Returns, by stream, the node of the first source that feeds it: whose clock births were read from.

    The result of a join has the latest birth of its inputs, which may be another source's.
    """
    node_of = {replica.operator: replica.node for replica in plan.replicas}
    sources: dict[str, str] = {}
    found: dict[str, str] = {}
    origins = plan.query.origins()
    for name in plan.query.topological():
        after = plan.query.operator(name).after
        sources[name] = sources[after[0]] if after else name
        for origin in origins[name]:
            if (node := node_of.get(sources[name])) is not None:
                found.setdefault(origin, node)
    return found


def _percentiles(found: list[float]) -> dict[str, Any]:
    ordered = sorted(found)
    last = len(ordered) - 1
    at = {f"p{share}": round(ordered[round(share / 100 * last)], 6) for share in (50, 95, 99)}
    return {"n": len(ordered), **at, "buckets": latency_buckets.counted(ordered)}


def _cost(cost: float | None) -> float | None:
    return None if cost is None else float(f"{cost:.3g}")


def _windows_s(query: Query) -> float:
    """Returns for how long tuples can be gathered in windows before one is delivered."""
    rules = [operator.takes for operator in query.operators]
    timed = sum(max(rule.size_ns, rule.slide_ns) for rule in rules if isinstance(rule, TimeWindow)) / 1e9
    return timed + sum(COUNTED_S for rule in rules if isinstance(rule, CountWindow))
