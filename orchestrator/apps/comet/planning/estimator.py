"""What a plan costs per second, and how late its detections can be (section IV-B).

A junction knows the events below it. It sends an instance on only if it is part of a match of all of them
(``rates.kept``), and it sends each instance once, however many matches it is part of. So what comes out of a
junction does not depend on how it gets its inputs, and the cost of a plan is a sum over its junctions:

    pushed input i:             Σ_e λ_e · kept(e | T_i) · CF_i
    input i pulled with K known: matches(K) · request cost_i  +  Σ_e λ_e · kept(e | K ∪ T_i) · CF_i

T_i are the events below input i, e runs over them, K are the events of the inputs obtained before, CF_i is
the sum over the links of its path. A request names the interval in which instances would complete a match of
K; the junction below answers with the instances of its own matches that fit in there, those that occur later
too, each instance once.

Delay of a junction, after its last step; D_i is the delay of what the junction below detects, DL_i of the
path:

    pushed inputs:      D = max (D_i + DL_i)
    inputs pulled next: D' = max(D, max (max(D + DL_i down, D_i) + DL_i up))

An event that a negation watches goes to the sink. Pushed it costs λ · CF; pulled after everything else it
costs matches · request cost + λ · kept · CF. The sink must know that it did not occur: if it can occur after
the last constituent, the delay is at least the window and its path. Nodes say every ``MARKS_S`` seconds of a
contact how far such events are known, which comes on top.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from node_agent.apps.comet.patterns import And, Event
from orchestrator.apps.comet.planning.ced_tree import CedTree, Edge, Junction
from orchestrator.apps.comet.planning.problem import Task, World
from orchestrator.apps.comet.planning.rates import Occurrence, occurrence, restricted

Steps = tuple[tuple[str, ...], ...]
"""How a junction gets its inputs, by their names: those pushed to it, then those it pulls, in order. Inputs
of one step are pulled at the same time (multi-target).
"""

Discounts = Mapping[tuple[str, str, str], float]
"""Lower node, upper node, event: the share of instances that another plan does not send over that link
anyway.
"""

_LOG_NEVER = math.log(1e-18)


@dataclass(frozen=True)
class Plan:
    """A tree, how each of its junctions gets its inputs, and which watched events the sink pulls."""

    tree: CedTree
    steps: Mapping[str, Steps]
    pulled_absent: frozenset[str]
    cost: float
    delay: float


@dataclass(frozen=True)
class Traffic:
    """What an edge carries per second: instances of each event, and requests."""

    events: Mapping[str, float]
    requests: float


class Estimator:
    """Estimates plans of one task. Keeps what it computed, for every tree of that task."""

    def __init__(self, task: Task, given: World, discounts: Discounts | None = None) -> None:
        self.task = task
        self.given = given
        self.discounts = discounts or {}
        self.operations = 0
        """A count of the work done, by which searches bound themselves: the same on every machine."""
        self._log_rates = {name: math.log(given.sources[name].rate) for name in task.conjunct.events}
        self._occurrences: dict[frozenset[str], Occurrence] = {}
        self._costs: dict[tuple[str, int, frozenset[str] | None], float] = {}
        self._prices: dict[tuple[str, int, str], float] = {}
        self._are_rare: dict[frozenset[str], bool] = {}

    def occurrence(self, events: frozenset[str]) -> Occurrence:
        found = self._occurrences.get(events)
        if found is None:
            shape = restricted(self.task.conjunct.shape, events)
            assert shape is not None, "a node knows at least one event"
            found = self._occurrences[events] = occurrence(shape, self.given.sources)
        return found

    def frequency(self, edge: Edge) -> float:
        return self.occurrence(edge.events).matches

    def traffic(self, edge: Edge, known: frozenset[str] | None) -> Traffic:
        """``known``: the events obtained before, if the input is pulled; None: it is pushed."""
        kept = self.occurrence(edge.events if known is None else known | edge.events).kept
        rates = {name: self.given.sources[name].rate * kept[name] for name in sorted(edge.events)}
        return Traffic(rates, 0.0 if known is None else self.occurrence(known).matches)

    def edge_cost(self, edge: Edge, known: frozenset[str] | None) -> float:
        self.operations += 1
        key = (edge.name, len(edge.hops), known)
        cost = self._costs.get(key)
        if cost is None:
            carried = self.traffic(edge, known)
            cost = carried.requests * edge.request_cost
            cost += sum(rate * self.price(edge, name) for name, rate in carried.events.items())
            self._costs[key] = cost
        return cost

    def price(self, edge: Edge, event: str) -> float:
        """What one instance of an event costs over the edge's path."""
        key = (edge.name, len(edge.hops), event)
        price = self._prices.get(key)
        if price is None:
            price = sum(
                hop.cost * self.discounts.get((hop.lower, hop.upper, event), 1.0) for hop in edge.hops
            )
            self._prices[key] = price
        return price

    def junction_cost(self, junction: Junction, steps: Steps) -> float:
        """Of what comes in at a junction."""
        edges = junction.by_name
        total = 0.0
        known: frozenset[str] | None = None
        for step in steps:
            of_step = 0.0
            for name in step:
                edge = edges[name]
                # Most are known: this is where plans of large networks take their time.
                cost = self._costs.get((name, len(edge.hops), known))
                if cost is None:
                    cost = self.edge_cost(edge, known)
                else:
                    self.operations += 1
                of_step += cost
            total += of_step
            known = (known or frozenset()).union(*(edges[name].events for name in step))
            if self._never(known):
                break  # nothing is ever asked for
        return total

    def _never(self, events: frozenset[str]) -> bool:
        """Whether events match so rarely that pulls for their matches cost nothing.

        At most n w^(n-1) Π λ combinations per second lie within the outermost window.
        """
        shape, number = self.task.conjunct.shape, len(events)
        if number < 4 or isinstance(shape, Event):
            return False
        never = self._are_rare.get(events)
        if never is None:
            logarithm = math.log(number) + (number - 1) * math.log(shape.window)
            never = logarithm + sum(self._log_rates[name] for name in events) < _LOG_NEVER
            self._are_rare[events] = never
        return never

    def absent_traffic(self, edge: Edge, pulled: bool) -> Traffic:
        rate = self.given.sources[edge.name].rate
        if not pulled:
            return Traffic({edge.name: rate}, 0.0)
        shape = self.task.conjunct.shape
        window = max(a.window for a in self.task.conjunct.absences if edge.name in a.events)
        kept = occurrence(And((shape, Event(edge.name)), window), self.given.sources).kept[edge.name]
        return Traffic(
            {edge.name: rate * kept}, self.occurrence(frozenset(self.task.conjunct.events)).matches
        )

    def absent_cost(self, edge: Edge, pulled: bool) -> float:
        carried = self.absent_traffic(edge, pulled)
        return carried.requests * edge.request_cost + carried.events[edge.name] * self.price(edge, edge.name)

    def absent_delay(self, edge: Edge, pulled: bool, delay: float) -> float:
        """``delay``: until the constituents of a match are known at the sink."""
        wait = self.task.conjunct.wait(edge.name)
        if pulled:
            return max(delay + edge.request_delay, wait) + edge.marked_delay
        return wait + edge.marked_delay

    def plan(self, tree: CedTree, steps: Mapping[str, Steps], pulled_absent: frozenset[str]) -> Plan:
        """Returns the plan with its cost and delay."""
        cost = sum(self.junction_cost(junction, steps[junction.node]) for junction in tree.junctions)
        cost += sum(self.absent_cost(edge, edge.name in pulled_absent) for edge in tree.absent)
        delays: dict[str, float] = {}
        for junction in tree.junctions:
            delays[junction.node] = junction_delay(junction, steps[junction.node], delays)
        delay = with_absences(self, tree, pulled_absent, delays[tree.root.node])
        return Plan(tree, dict(steps), pulled_absent, cost, delay)


def junction_delay(junction: Junction, steps: Steps, delays: Mapping[str, float]) -> float:
    """``delays``: of the junctions below, by their nodes."""
    edges = junction.by_name
    delay = 0.0
    for number, step in enumerate(steps):
        after = delay
        for name in step:
            edge = edges[name]
            ready = 0.0 if edge.child is None else delays[edge.child.node]
            if number:
                ready = max(ready, delay + edge.request_delay)
            after = max(after, ready + edge.delay)
        delay = after
    return delay


def with_absences(estimator: Estimator, tree: CedTree, pulled_absent: frozenset[str], delay: float) -> float:
    waits = (estimator.absent_delay(edge, edge.name in pulled_absent, delay) for edge in tree.absent)
    return max([delay, *waits])


def all_pushed(junction: Junction) -> Steps:
    return (tuple(edge.name for edge in junction.inputs),)


def in_order(steps: Sequence[Sequence[str]]) -> Steps:
    """Leaves out empty steps; names within a step are sorted, so that equal plans are equal values."""
    return (tuple(sorted(steps[0])), *(tuple(sorted(step)) for step in steps[1:] if step))
