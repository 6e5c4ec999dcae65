"""The CED tree: the cheapest and fastest paths from the sources to the sink, and where they meet (section
IV-A).

Each link weighs h = α · CF / max CF + (1 - α) · DL / max DL. The union of the shortest paths of all sources
is a tree. A node where two or more sources' paths meet is a junction and detects what it can; nodes between
junctions only relay, so an edge of the tree is a path of links. Shorting a junction makes it a relay, too.
"""

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from node_agent.apps.comet.node_plan import MARKS_S, MOMENT
from orchestrator.apps.comet.planning.links import Link
from orchestrator.apps.comet.planning.problem import Task, Unplannable, World

ALPHA = 0.5
FASTEST = 0.0
"""The α that weighs delay alone."""


@dataclass(frozen=True)
class Hop:
    """A link as the tree uses it: events go from ``lower`` to ``upper``, requests the other way.

    ``cost``: of one event; ``request_cost``: of one request. ``delay``: the worst for an event, which waits
    for a disconnection, for what waits with it (``drain``), and travels; ``request_delay``: infinite if there
    is no way.
    """

    lower: str
    upper: str
    link: Link
    cost: float
    request_cost: float
    delay: float
    request_delay: float
    drain: float


@dataclass(frozen=True, eq=False)
class Edge:
    """What a junction gets over a path: the instances of one event, or what the junction ``child`` detects.

    ``name``: the event, or @ and the node of the junction. ``events``: all that come this way.
    """

    name: str
    child: "Junction | None"
    events: frozenset[str]
    hops: tuple[Hop, ...]

    @cached_property
    def delay(self) -> float:
        return sum(hop.delay for hop in self.hops)

    @cached_property
    def marked_delay(self) -> float:
        """Until it is known that nothing occurred: nodes say so every ``MARKS_S`` during a contact."""
        return self.delay + (MARKS_S if self.hops else MOMENT)

    @cached_property
    def request_delay(self) -> float:
        return sum(hop.request_delay for hop in self.hops)

    @cached_property
    def request_cost(self) -> float:
        return sum(hop.request_cost for hop in self.hops)


@dataclass(frozen=True, eq=False)
class Junction:
    """A node that detects. ``level``: links between it and the sink."""

    node: str
    level: int
    inputs: tuple[Edge, ...]

    @cached_property
    def events(self) -> frozenset[str]:
        return frozenset[str]().union(*(edge.events for edge in self.inputs))

    @cached_property
    def by_name(self) -> dict[str, Edge]:
        """The inputs by their names."""
        return {edge.name: edge for edge in self.inputs}


@dataclass(frozen=True, eq=False)
class CedTree:
    """``absent``: paths of the events that negations watch; they lead to the sink without a stop."""

    task: Task
    root: Junction
    absent: tuple[Edge, ...]

    @cached_property
    def junctions(self) -> tuple[Junction, ...]:
        """All of them, those below before those above."""
        found: list[Junction] = []

        def walk(junction: Junction) -> None:
            for edge in junction.inputs:
                if edge.child is not None:
                    walk(edge.child)
            found.append(junction)

        walk(self.root)
        return tuple(found)

    @property
    def inner(self) -> tuple[str, ...]:
        """The nodes of the junctions that can be shorted."""
        return tuple(junction.node for junction in self.junctions if junction is not self.root)

    @cached_property
    def height(self) -> int:
        """The number of links on the longest path."""

        def deepest(junction: Junction) -> int:
            below = (
                len(edge.hops) + (0 if edge.child is None else deepest(edge.child))
                for edge in junction.inputs
            )
            return max(below)

        return deepest(self.root)

    @cached_property
    def fastest(self) -> float:
        """The delay of pushing everything, below which no plan on this tree can go."""

        def slowest(junction: Junction) -> float:
            return max(
                edge.delay + (0.0 if edge.child is None else slowest(edge.child)) for edge in junction.inputs
            )

        watched = (self.task.conjunct.wait(edge.name) + edge.marked_delay for edge in self.absent)
        return max(slowest(self.root), *watched, 0.0)


def build_tree(task: Task, given: World, alpha: float = ALPHA) -> CedTree:
    """Raises Unplannable if a source cannot reach the sink."""
    next_link = _ways_to(task.sink, given, alpha)
    events = (*task.conjunct.events, *task.conjunct.absent)
    paths: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        node = given.sources[event].node
        if node != task.sink and node not in next_link:
            raise Unplannable(
                f'no link leads from {node}, the source of the event "{event}", to the sink {task.sink} of '
                f'"{task.name}": add links, or choose another sink'
            )
        paths[event] = []
        while node != task.sink:
            upper = next_link[node]
            paths[event].append((node, upper))
            node = upper
    hops = _hops(paths, given)
    positive = task.conjunct.events
    below: dict[str, list[str]] = {}
    for event in positive:
        for lower, upper in paths[event]:
            children = below.setdefault(upper, [])
            if lower not in children:
                children.append(lower)
    own: dict[str, list[str]] = {}
    for event in positive:
        own.setdefault(given.sources[event].node, []).append(event)

    def edges(node: str, level: int) -> Iterable[Edge]:
        """The edges that end at ``node``: its own events, and what comes from below."""
        for event in own.get(node, ()):
            yield Edge(event, None, frozenset([event]), ())
        for child in below.get(node, ()):
            yield gathered(child, level + 1, (hops[child, node],))

    def gathered(node: str, level: int, way: tuple[Hop, ...]) -> Edge:
        found = tuple(edges(node, level))
        if len(found) > 1:
            junction = Junction(node, level, found)
            return Edge(f"@{node}", junction, junction.events, way)
        only = found[0]
        return Edge(only.name, only.child, only.events, only.hops + way)

    root = Junction(task.sink, 0, tuple(edges(task.sink, 0)))
    absent = tuple(
        Edge(event, None, frozenset([event]), tuple(hops[hop] for hop in paths[event]))
        for event in task.conjunct.absent
    )
    return CedTree(task, root, absent)


def short(tree: CedTree, nodes: Collection[str]) -> CedTree:
    """Makes the junctions at ``nodes`` relays: their inputs become inputs of the junction above (section
    IV-C).

    Costs and delays of the links on the way add up.
    """

    def shortened(junction: Junction) -> Junction:
        inputs: list[Edge] = []
        for edge in junction.inputs:
            if edge.child is None:
                inputs.append(edge)
                continue
            child = shortened(edge.child)
            if child.node in nodes:
                inputs += [Edge(e.name, e.child, e.events, e.hops + edge.hops) for e in child.inputs]
            else:
                inputs.append(Edge(edge.name, child, edge.events, edge.hops))
        return Junction(junction.node, junction.level, tuple(inputs))

    return CedTree(tree.task, shortened(tree.root), tree.absent) if nodes else tree


def relinked(tree: CedTree, given: World) -> CedTree:
    """The same tree, with rates and links as they are in another world of the same nodes."""
    paths: dict[str, list[tuple[str, str]]] = {}
    edges = [edge for junction in tree.junctions for edge in junction.inputs]
    for edge in (*edges, *tree.absent):
        for event in sorted(edge.events):
            paths.setdefault(event, []).extend((hop.lower, hop.upper) for hop in edge.hops)
    hops = _hops(paths, given)

    def changed(edge: Edge) -> Edge:
        child = None if edge.child is None else rebuilt(edge.child)
        return Edge(edge.name, child, edge.events, tuple(hops[hop.lower, hop.upper] for hop in edge.hops))

    def rebuilt(junction: Junction) -> Junction:
        return Junction(junction.node, junction.level, tuple(map(changed, junction.inputs)))

    return CedTree(tree.task, rebuilt(tree.root), tuple(map(changed, tree.absent)))


def shorted_at(tree: CedTree, level: int) -> frozenset[str]:
    """The junctions that are at least ``level`` links away from the sink."""
    return frozenset(j.node for j in tree.junctions if j.level >= level and j is not tree.root)


def _ways_to(sink: str, given: World, alpha: float) -> Mapping[str, str]:
    """Dijkstra from the sink: for each node that can reach it, the next node on the way."""
    most_cost = max((link.cost_factor(given.sizes) for link in given.links), default=0.0) or 1.0
    most_delay = max((link.worst_delay for link in given.links), default=0.0) or 1.0
    into: dict[str, list[tuple[str, float]]] = {}
    for link in given.links:
        cost, delay = link.cost_factor(given.sizes) / most_cost, link.worst_delay / most_delay
        weight = alpha * cost + (1 - alpha) * delay
        into.setdefault(link.b, []).append((link.a, weight))
        if not link.one_way:
            into.setdefault(link.a, []).append((link.b, weight))
    found: dict[str, str] = {}
    queue: list[tuple[float, int, str, str]] = [(0.0, 0, sink, "")]
    done: set[str] = set()
    while queue:
        distance, steps, node, towards = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if towards:
            found[node] = towards
        for other, weight in into.get(node, ()):
            if other not in done:
                heapq.heappush(queue, (distance + weight, steps + 1, other, node))
    return found


def _hops(paths: Mapping[str, Sequence[tuple[str, str]]], given: World) -> Mapping[tuple[str, str], Hop]:
    rates: dict[tuple[str, str], float] = {}
    for event, path in paths.items():
        for step in path:
            rates[step] = rates.get(step, 0.0) + given.sources[event].rate
    best: dict[tuple[str, str], Link] = {}
    cheapest_first = sorted(given.links, key=lambda link: (link.cost_factor(given.sizes), link.worst_delay))
    for link in reversed(cheapest_first):
        best[link.a, link.b] = link
        if not link.one_way:
            best[link.b, link.a] = link
    found = {}
    for (lower, upper), rate in rates.items():
        up, down = best[lower, upper], best.get((upper, lower))
        waiting = rate * (up.edp + up.eap)
        drain = (waiting + 4 * math.sqrt(waiting) + 4) * given.sizes.event / up.bandwidth
        share = given.sizes.request / given.sizes.event
        found[lower, upper] = Hop(
            lower,
            upper,
            up,
            cost=up.cost_factor(given.sizes),
            request_cost=0.0 if down is None else down.cost_factor(given.sizes) * share,
            delay=up.worst_delay + drain,
            request_delay=math.inf if down is None else down.worst_delay + drain,
            drain=drain,
        )
    return found
