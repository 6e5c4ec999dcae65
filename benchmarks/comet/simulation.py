"""Carries out a plan message by message: Poisson sources, links that go up and down, stores, requests,
answers.

A small discrete-event simulation that shares no formula with the estimator, in order to hold its costs and
delays against. It also returns the detections, to be compared with the reference. Patterns with negation are
refused.
"""

import heapq
import random
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from node_agent.apps.comet.conjuncts import Conjunct, matches_with
from node_agent.apps.comet.events import Detection, EventSource, Instance, detection_of
from node_agent.apps.comet.instances import bounds_for
from orchestrator.apps.comet.planning.ced_tree import Edge, Hop, Junction
from orchestrator.apps.comet.planning.estimator import Plan
from orchestrator.apps.comet.planning.problem import World

Bounds = Mapping[str, tuple[float, float]]
"""For each event asked for: the earliest start and the latest end of its instances."""


@dataclass
class Outcome:
    """``cost``: per second. ``delays``: of each detection, from its last constituent to the sink."""

    cost: float
    events_sent: int
    requests_sent: int
    delays: dict[Detection, float]
    instances: list[Instance]

    @property
    def worst_delay(self) -> float:
        return max(self.delays.values(), default=0.0)


def simulate(plan: Plan, given: World, seed: int, duration: float) -> Outcome:
    """``duration``: seconds in which events occur; what they cause is carried out to the end."""
    if plan.tree.absent:
        raise ValueError("the simulation of plans knows no negation")
    run = _Run(plan, given, random.Random(f"comet/{seed}"))
    instances = [
        each
        for name in sorted(plan.tree.root.events)
        for each in poisson(given.sources[name], run.rng, duration)
    ]
    run.start(instances)
    run.loop()
    return Outcome(run.cost / duration, run.events_sent, run.requests_sent, run.delays, instances)


def poisson(source: EventSource, rng: random.Random, duration: float) -> list[Instance]:
    found: list[Instance] = []
    at = source.begin
    while (at := at + rng.expovariate(source.rate)) < min(duration, source.end):
        found.append(Instance(at, at + source.length, source.name, len(found)))
    return found


@dataclass
class _Direction:
    """One direction of a link. It is down first, then up, and so on."""

    edp: float
    eap: float
    bandwidth: float
    latency: float
    phase: float
    busy_until: float = 0.0

    def arrival(self, now: float, size: float) -> float:
        """When ``size`` bytes that are sent now have arrived."""
        at = max(now, self.busy_until)
        seconds = size / self.bandwidth
        while True:
            period = self.edp + self.eap
            place = (at + self.phase) % period
            if place < self.edp:
                at += self.edp - place
                continue
            if place + seconds > period and seconds <= self.eap:
                at += period - place
                continue
            break
        self.busy_until = at + seconds
        return at + seconds + self.latency


@dataclass
class Store:
    """Instances that a node knows, by event, in order of their starts."""

    instances: dict[str, list[Instance]] = field(default_factory=dict)
    known: set[Instance] = field(default_factory=set)

    def add(self, instance: Instance) -> bool:
        if instance in self.known:
            return False
        self.known.add(instance)
        insort(self.instances.setdefault(instance.event, []), instance)
        return True

    def near(self, conjunct: Conjunct, anchor: Instance, events: frozenset[str]) -> dict[str, list[Instance]]:
        found = {}
        for name in events - {anchor.event}:
            window = conjunct.windows[anchor.event, name]
            listed = self.instances.get(name, [])
            low = bisect_left(listed, anchor.start - window, key=lambda each: each.start)
            high = bisect_right(listed, anchor.end + window, key=lambda each: each.start)
            found[name] = listed[low:high]
        return found


@dataclass
class _Outlet:
    """What leaves over an edge: matches found below it, and requests that wait for more of them."""

    edge: Edge
    pulled: bool
    span: float
    """No request bounds the times of an event by more than this."""
    matches: list[tuple[float, tuple[Instance, ...]]] = field(default_factory=list)
    asked: list[tuple[float, Bounds]] = field(default_factory=list)
    sent: set[Instance] = field(default_factory=set)

    @cached_property
    def key(self) -> str:
        """The event by whose times matches and requests are kept in order."""
        return min(self.edge.events)

    def keep_match(self, match: tuple[Instance, ...]) -> bool:
        """Returns whether somebody asked for it."""
        start = next(each.start for each in match if each.event == self.key)
        insort(self.matches, (start, match), key=_first)
        low = bisect_left(self.asked, start - self.span, key=_first)
        high = bisect_right(self.asked, start, key=_first)
        return any(_within(match, bounds) for _, bounds in self.asked[low:high])

    def keep_request(self, bounds: Bounds) -> list[tuple[Instance, ...]]:
        """Returns the matches that it asks for."""
        start, end = bounds[self.key]
        insort(self.asked, (start, bounds), key=_first)
        low = bisect_left(self.matches, start, key=_first)
        high = bisect_right(self.matches, end, key=_first)
        return [match for _, match in self.matches[low:high] if _within(match, bounds)]


class _Run:
    def __init__(self, plan: Plan, given: World, rng: random.Random) -> None:
        self.plan, self.given, self.rng = plan, given, rng
        self.conjunct = plan.tree.task.conjunct
        self.cost = 0.0
        self.events_sent = self.requests_sent = 0
        self.delays: dict[Detection, float] = {}
        self.now = 0.0
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.number = 0
        self.directions: dict[tuple[str, str], _Direction] = {}
        self.stores = {junction.node: Store() for junction in plan.tree.junctions}
        self.asks: dict[tuple[str, int], list[Bounds]] = {}
        self.outlets: dict[str, tuple[_Outlet, Junction]] = {}
        span = 2 * max(self.conjunct.windows.values(), default=0.0)
        for junction in plan.tree.junctions:
            pushed = plan.steps[junction.node][0]
            for edge in junction.inputs:
                self.outlets[edge.name] = (_Outlet(edge, edge.name not in pushed, span), junction)
                for hop in edge.hops:
                    self._connect(hop)

    def _connect(self, hop: Hop) -> None:
        link, phase = hop.link, self.rng.random() * (hop.link.edp + hop.link.eap)
        for pair in ((hop.lower, hop.upper), (hop.upper, hop.lower)):
            if pair not in self.directions:
                self.directions[pair] = _Direction(link.edp, link.eap, link.bandwidth, link.latency, phase)

    def start(self, instances: list[Instance]) -> None:
        for instance in instances:
            self.at(instance.end, partial(self.offer, self.outlets[instance.event][0], (instance,)))

    def at(self, time: float, action: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.queue, (time, self.number, action))

    def loop(self) -> None:
        while self.queue:
            self.now, _, action = heapq.heappop(self.queue)
            action()

    def offer(self, outlet: _Outlet, match: tuple[Instance, ...]) -> None:
        """A match below is known: it is sent if it is pushed, or if somebody asked for it."""
        if not outlet.pulled:
            self.send_events(outlet, match)
            return
        if outlet.keep_match(match):
            self.send_events(outlet, match)

    def ask(self, outlet: _Outlet, bounds: Bounds) -> None:
        """A request arrived."""
        for match in outlet.keep_request(bounds):
            self.send_events(outlet, match)

    def send_events(self, outlet: _Outlet, match: tuple[Instance, ...]) -> None:
        junction = self.outlets[outlet.edge.name][1]
        for instance in match:
            if instance not in outlet.sent:
                outlet.sent.add(instance)
                self.carry(outlet.edge.hops, self.given.sizes.event, partial(self.arrive, junction, instance))
                self.cost += sum(hop.cost for hop in outlet.edge.hops)
                self.events_sent += 1

    def carry(
        self, hops: tuple[Hop, ...], size: float, action: Callable[[], None], *, down: bool = False
    ) -> None:
        if not hops:
            action()
            return
        first, rest = (hops[-1], hops[:-1]) if down else (hops[0], hops[1:])
        pair = (first.upper, first.lower) if down else (first.lower, first.upper)
        arrival = self.directions[pair].arrival(self.now, size)
        self.at(arrival, partial(self.carry, rest, size, action, down=down))

    def arrive(self, junction: Junction, instance: Instance) -> None:
        store = self.stores[junction.node]
        if not store.add(instance):
            return
        near = store.near(self.conjunct, instance, junction.events)
        edges = {edge.name: edge for edge in junction.inputs}
        known: frozenset[str] = frozenset()
        for number, step in enumerate(self.plan.steps[junction.node]):
            if number and instance.event in known:
                targets = [edges[name] for name in step]
                for match in matches_with(self.conjunct, instance, known, near):
                    self.request(junction, number, match, targets)
            known = known.union(*(edges[name].events for name in step))
        above = self.outlets.get(f"@{junction.node}")
        for match in matches_with(self.conjunct, instance, junction.events, near):
            if above is not None:
                self.offer(above[0], match)
            else:
                found = detection_of(frozenset(match))
                self.delays.setdefault(found, self.now - found.end)

    def request(
        self, junction: Junction, number: int, match: tuple[Instance, ...], targets: list[Edge]
    ) -> None:
        events = frozenset[str]().union(*(edge.events for edge in targets))
        bounds = {name: bounds_for(self.conjunct, match, name) for name in events}
        before = self.asks.setdefault((junction.node, number), [])
        if any(_covers(other, bounds) for other in before[-50:]):
            return
        before.append(bounds)
        for edge in targets:
            outlet = self.outlets[edge.name][0]
            part = {name: bounds[name] for name in edge.events}
            self.carry(edge.hops, self.given.sizes.request, partial(self.ask, outlet, part), down=True)
            self.cost += edge.request_cost
            self.requests_sent += 1


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


def _covers(wide: Bounds, narrow: Bounds) -> bool:
    return all(wide[name][0] <= low and wide[name][1] >= high for name, (low, high) in narrow.items())


def _within(match: tuple[Instance, ...], bounds: Bounds) -> bool:
    return all(bounds[each.event][0] <= each.start and each.end <= bounds[each.event][1] for each in match)
