"""Random worlds: sensors that move and see, a focal object that walks, a query, and what fails."""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.mcep.operators import random_graph
from node_agent.apps.mcep.checks import check_query
from node_agent.apps.mcep.collect import Observed, Strategy, changed_sources, collect_points, points_of
from node_agent.apps.mcep.geometry import Box, Circle, Point, Polygon, Region
from node_agent.apps.mcep.interest import Always, Condition, QualityAware, Spatial, Switched, Timed
from node_agent.apps.mcep.model import Completeness, Event, Policy, Quality, Query, atomic
from node_agent.apps.mcep.model import Order as ResultOrder
from node_agent.apps.mcep.switching import Plan

SIDE = 1000.0
STEP = 1 / 16


@dataclass(frozen=True)
class World:
    seed: int
    query: Query
    condition: Condition
    sensors: tuple[str, ...]
    events: tuple[Event, ...]
    beats: tuple[float, ...]
    walk: tuple[tuple[Point, float], ...]
    end: float
    faults: tuple[tuple[float, tuple[str, ...]], ...]
    servers: int
    delay: float
    ttl: float
    cell_m: float
    points: str
    """How streams begin: basic, approximate, collected (only sources that changed), never (without markers: a
    baseline)."""
    strategy: Strategy

    @property
    def partial(self) -> bool:
        return self.points == "collected"

    def server_of(self, event: Event) -> int:
        assert isinstance(event.place, Point)
        return min(self.servers - 1, max(0, math.floor(event.place.x / SIDE * self.servers)))

    def seen(self, type: str, regions: list[Region], since: float, before: float) -> list[Event]:
        return [
            each for each in self.events
            if each.type == type and since <= each.t < before and all(lies_in(r, each.place) for r in regions)
        ]  # fmt: skip

    def plan(
        self,
        count: Callable[[str, Iterable[Region], float, float], int],
        latest: Callable[[str, Region, float, int], list[float]],
    ) -> Plan | None:
        query = self.query
        if self.points == "basic":
            return None
        everything = frozenset(each.name for each in query.graph.sources)

        def plan(
            last: Switched | None, region: Region, start: float, epoch: int
        ) -> tuple[dict[str, float], frozenset[str]]:
            points = query.graph.points(start, query.history)
            if last is None:
                return points, everything
            if self.points == "never":
                return points, frozenset()
            changed = changed_sources(query.graph, last.region, region, start, query.history, count)
            if self.points == "approximate":
                changed = everything
            watched = {
                each.name: Observed(dict.fromkeys(each.streams, 0.5)) for each in query.graph.operators
            }
            history = query.history
            found = collect_points(query.graph, epoch, start, history, changed, self.strategy, watched)
            types = {each.name: each.type for each in query.graph.sources}

            def last_times(source: str, before: float, most: int) -> list[float]:
                return latest(types[source], region, before, most)

            return points_of(query.graph, found, start, history, last_times), changed

        return plan


def lies_in(region: Region, place: object) -> bool:
    """Written once more, since the oracle must not share it with the machines."""
    assert isinstance(place, Point)
    if isinstance(region, Box):
        return region.x0 <= place.x <= region.x1 and region.y0 <= place.y <= region.y1
    if isinstance(region, Circle):
        return (place.x - region.x) ** 2 + (place.y - region.y) ** 2 <= region.radius**2
    crossings = 0
    for number, one in enumerate(region.corners):
        other = region.corners[number - 1]
        low, high = (one, other) if one.y < other.y else (other, one)
        if low.y <= place.y < high.y:
            crossings += place.x < low.x + (place.y - low.y) * (high.x - low.x) / (high.y - low.y)
    return crossings % 2 == 1


def world(
    seed: int, *, rough: bool = False, baseline: bool = False, suppression: bool | None = None
) -> World:
    """``rough``: machines crash and links are cut. ``baseline``: the interest moves without markers."""
    draw = random.Random(f"mcep/{seed}")
    points = draw.choice(["basic", "basic", "approximate", "collected"])
    strategy: Strategy = (
        draw.choice(["basic", "time_span", "count"]) if points == "collected" else "time_span"
    )
    if points == "approximate":
        strategy = draw.choice(["time_span", "count"])
    end = draw.choice([20.0, 30.0])
    policy = _policy(draw, rough or baseline, points)
    points = "never" if baseline else points
    if suppression is not None and policy.is_strict:
        policy = Policy(policy.order, policy.completeness, suppression)
    graph = random_graph(draw, steady=False)
    history = draw.choice([0.0, 0.0, 1.0, 3.0])
    query = Query("q", graph, "fo", _region(draw), history, policy)
    ttl = history + max(graph.additional_time(each.name) for each in graph.sources) + 1.0
    check_query(query, ttl)
    sensors = tuple(f"car{number}" for number in range(draw.randint(3, 7)))
    types = [each.type for each in graph.sources]
    events = tuple(_events(draw, sensors, types, end))
    beats = (*(k * 0.5 for k in range(int(end / 0.5) + 1)), end + 0.5)
    walk = tuple(_walk(draw, end))
    servers = draw.randint(1, 3)
    made = World(
        seed, query, _condition(draw), sensors, events, beats, walk, end, (), servers,
        draw.choice([0.01, 0.2, 1.0]), ttl, draw.choice([50.0, 250.0]), points, strategy,
    )  # fmt: skip
    if not rough:
        return made
    return World(**{**made.__dict__, "faults": tuple(_faults(draw, made))})


def _policy(draw: random.Random, rough: bool, points: str) -> Policy:
    order: ResultOrder = draw.choice(["spatiotemporal", "spatiotemporal", "spatial", "none"])
    completeness: Completeness = draw.choice(["weak", "weak", "weak", "best_effort"])
    if rough or points == "collected":
        completeness = "weak"
    return Policy(order, completeness, completeness == "weak" and draw.random() < 0.5)


def _region(draw: random.Random) -> Callable[[Point], Region]:
    size = draw.choice([300.0, 400.0, 600.0])
    kind = draw.choice(["box", "circle", "polygon"])

    def region(place: Point) -> Region:
        x, y = place
        if kind == "box":
            return Box(x - size, y - size, x + size, y + size)
        if kind == "circle":
            return Circle(x, y, size)
        return Polygon((Point(x - size, y - size), Point(x + size, y - size), Point(x, y + size)))

    return region


def _condition(draw: random.Random) -> Condition:
    conditions: list[Condition] = [Always(), Always(), Timed(3.0), Spatial(120.0)]
    return draw.choice([*conditions, QualityAware(Quality(0.8, 0.8), 3.0)])


def _events(draw: random.Random, sensors: tuple[str, ...], types: list[str], end: float) -> list[Event]:
    found = []
    gap = draw.choice([8, 16, 24])
    for sensor in sensors:
        x, y = draw.uniform(0, SIDE), draw.uniform(0, SIDE)
        dx, dy = draw.uniform(-30, 30), draw.uniform(-30, 30)
        t, seq = draw.randint(0, gap) * STEP, 0
        while t < end:
            place = Point((x + dx * t) % SIDE, (y + dy * t) % SIDE)
            attributes: dict[str, int | str] = {"value": draw.randrange(97), "kind": draw.choice("ab")}
            found.append(atomic(draw.choice(types), t, place, seq, sensor, attributes))
            t, seq = t + draw.randint(1, gap) * STEP, seq + 1
    return sorted(found, key=lambda each: each.key)


def _walk(draw: random.Random, end: float) -> list[tuple[Point, float]]:
    place = Point(draw.uniform(200, 800), draw.uniform(200, 800))
    t, found = draw.randint(0, 32) * STEP, []
    stride = draw.choice([50.0, 150.0, 400.0])
    while t < end - 1:
        found.append((place, t))
        if draw.random() < 0.9:
            place = Point(
                (place.x + draw.uniform(-stride, stride)) % SIDE,
                (place.y + draw.uniform(-stride, stride)) % SIDE,
            )
        t += draw.randint(16, 96) * STEP
    return found


def _faults(draw: random.Random, made: World) -> list[tuple[float, tuple[str, ...]]]:
    hosts = [*(f"server{n}" for n in range(made.servers)), *(o.name for o in made.query.graph.operators)]
    at = draw.uniform(0.2, 0.9) * made.end
    if draw.random() < 0.4:
        return [(at, ("crash", draw.choice(hosts)))]
    stream = draw.choice(made.query.graph.streams)
    sender = stream.producer if stream.producer.startswith("o") else draw.choice(hosts[: made.servers])
    links = [
        (sender, stream.successor),
        ("broker", hosts[0]),
        (hosts[0], "broker"),
        (made.sensors[0], hosts[0]),
    ]
    link = draw.choice(links)
    mended = [(at + draw.uniform(1, 10), ("mend", *link))] if draw.random() < 0.5 else []
    return [(at, ("cut", *link)), *mended]
