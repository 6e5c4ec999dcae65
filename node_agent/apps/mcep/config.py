"""What an agent is given of queries with moving interests: brokers, clients, queries, and its own drive."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

from msgspec import Meta, Struct

from node_agent.apps.mcep.areas import MOST_CORNERS, Areas, shaped
from node_agent.apps.mcep.checks import check_query
from node_agent.apps.mcep.deployment import Deployed, Deployment, check_deployment
from node_agent.apps.mcep.foretold import Foretold, prediction_of
from node_agent.apps.mcep.geometry import Box, Point, Polygon, Region, circles, squares
from node_agent.apps.mcep.interest import (
    Always,
    Condition,
    QualityAware,
    Spatial,
    Timed,
    check_condition,
)
from node_agent.apps.mcep.model import Completeness, McepError, Order, Policy, Quality, Query
from node_agent.apps.mcep.moving.config import BetweenConfig, MigrateConfig, migration_of
from node_agent.apps.mcep.reuse.deployed import split_key
from node_agent.apps.mcep.reusing.config import ReuseConfig, reuse_of
from node_agent.apps.mcep.sensing import Drive, Reading, Sample, filmed
from node_agent.apps.mcep.situations import SITUATIONS, graph_of

MOST_SECONDS = 30 * 86400.0
MOST_DRIVE = 16_000_000
"""Characters of a drive."""
MOST_NUMBER = 1e7
Seconds = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]
Metres = Annotated[float, Meta(ge=-1e7, le=1e7)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Face = Annotated[str, Meta(max_length=1000)]


class WhenTimed(Struct, frozen=True, tag="timed", tag_field="when"):
    seconds: Seconds


class WhenFar(Struct, frozen=True, tag="spatial", tag_field="when"):
    metres: Annotated[float, Meta(ge=0, le=1e7)]


class WhenPoor(Struct, frozen=True, tag="quality", tag_field="when"):
    precision: Annotated[float, Meta(ge=0, le=1)]
    recall: Annotated[float, Meta(ge=0, le=1)]
    look_back: Seconds


class WhenMoved(Struct, frozen=True, tag="always", tag_field="when"):
    """With every place of the focal object."""


When = WhenMoved | WhenTimed | WhenFar | WhenPoor


class QueryConfig(Struct, frozen=True):
    """``focal``: the client that the interest follows. ``radius``: of a circle around it, or half of the edge
    of a square. ``hosts``: the broker of each operator. ``home``: the broker that moves the interest and puts
    results in order. ``cells``: the region is around the middle of the square of this size where the object
    is, not around the object; 0: around the object. ``known``: faces of friends by name, see ``faces``."""

    name: Name
    situation: Name
    focal: Name
    radius: Annotated[float, Meta(gt=0, le=1e7)]
    home: Name
    hosts: dict[Name, Name]
    parameters: dict[Name, float] = {}
    history: Seconds = 0.0
    order: Order = "spatiotemporal"
    completeness: Completeness = "weak"
    suppression: bool = False
    when: When = WhenMoved()
    shape: Literal["circle", "square"] = "circle"
    cells: Annotated[float, Meta(ge=0, le=1e7)] = 0.0
    foretold: Foretold | None = None
    known: dict[Name, tuple[Face, ...]] = {}
    migrate: MigrateConfig | None = None
    """How operators move between brokers; None: they stay."""

    @property
    def asks(self) -> str:
        """What queries must have in common to share graphs; empty if this one shares none."""
        if self.completeness != "strong":
            return ""
        return self.logic

    @property
    def logic(self) -> str:
        """What its operators do: those of two queries with the same word do the same."""
        known = SITUATIONS[self.situation].parameters if self.situation in SITUATIONS else {}
        changed = {n: v for n, v in self.parameters.items() if n not in known or known[n].default != v}
        said = [f"{name} {value:g}" for name, value in sorted(changed.items())]
        said += [f"friend {name}" for name in sorted(self.known)]
        return f"{self.situation} ({', '.join(said)})" if said else self.situation

    @property
    def has_graphs(self) -> bool:
        """Whether it has a graph for each region. What it delivers then depends on what was ready when."""
        return self.foretold is not None or self.completeness == "strong"


class Limits(Struct, frozen=True):
    """``waiting``: messages that wait at a node, for other nodes and before operators. ``stored``: events on
    a broker. A node with more takes nothing from clients; a broker with four times as many takes nothing."""

    waiting: Annotated[int, Meta(ge=100, le=10_000_000)] = 20_000
    stored: Annotated[int, Meta(ge=100, le=10_000_000)] = 500_000


class Settings(Struct, frozen=True):
    """What all nodes are given. ``areas``: of brokers, each as (x0, y0, x1, y1). ``every``: seconds between
    two readings of a client's speed. ``until``: when clients leave, in seconds after the beginning. ``ttl``:
    for how many seconds brokers keep events. ``polygons``: the corners of areas that are no boxes; those in
    ``areas`` are around them."""

    areas: dict[Name, tuple[Metres, Metres, Metres, Metres]]
    clients: tuple[Name, ...]
    queries: tuple[QueryConfig, ...]
    every: Annotated[float, Meta(ge=0.01, le=86400)]
    until: Seconds
    ttl: Seconds
    limits: Limits = Limits()
    polygons: dict[Name, Annotated[tuple[tuple[Metres, Metres], ...], Meta(max_length=MOST_CORNERS)]] = {}
    cameras: tuple[Name, ...] = ()
    """Clients that stand and film."""
    reuse: ReuseConfig | None = None
    between: BetweenConfig | None = None
    """How far brokers are from each other, if operators move."""

    def phase(self, client: str) -> float:
        """When a client reads its speed for the first time: not all at the same moment."""
        return self.every * (self.clients.index(client) + 0.5) / len(self.clients)


class InterestConfig(Struct, frozen=True):
    """``drive``: of a client, see ``drive_text``; empty on a broker. ``filmed``: of a camera, faces by the
    number of the picture."""

    node: Name
    settings: Settings
    drive: Annotated[str, Meta(max_length=MOST_DRIVE)] = ""
    filmed: dict[Annotated[int, Meta(ge=0)], tuple[Face, ...]] = {}


def deployment_of(settings: Settings) -> Deployment:
    """Raises McepError."""
    areas = areas_of(settings)
    queries = [deployed(each, tuple(settings.areas), settings.between) for each in settings.queries]
    first: dict[str, Deployed] = {}
    for number, each in enumerate(queries):
        if each.asks:  # those who ask for the same have one graph, which knows that it is the same
            graph = first.setdefault(each.asks, each).query.graph
            queries[number] = replace(each, query=replace(each.query, graph=graph))
    reuse = None if settings.reuse is None else reuse_of(settings.reuse)
    return Deployment(areas, settings.clients, tuple(queries), settings.ttl, reuse)


def areas_of(settings: Settings) -> Areas:
    """Raises McepError."""
    shapes: dict[str, Box | Polygon] = {name: Box(*each) for name, each in settings.areas.items()}
    if strangers := sorted(settings.polygons.keys() - shapes.keys()):
        raise McepError(f"{strangers[0]} has a polygon, and is no broker")
    for name, corners in settings.polygons.items():
        shapes[name] = Polygon(tuple(Point(*each) for each in corners))
    return shaped(shapes)


def deployed(
    config: QueryConfig, brokers: tuple[str, ...] = (), between: BetweenConfig | None = None
) -> Deployed:
    prediction = None if config.foretold is None else prediction_of(config.foretold)
    condition = condition_of(config.when)
    moves = None if config.migrate is None else migration_of(config.migrate, brokers, between)
    query = query_of(config)
    return Deployed(query, config.hosts, config.home, condition, prediction, config.asks, moves)


def query_of(config: QueryConfig) -> Query:
    """Raises McepError if there is no such situation, or its parameters have no meaning."""
    try:
        graph = graph_of(config.situation, config.parameters, config.known)
    except KeyError as error:
        known = ", ".join(SITUATIONS)
        raise McepError(f"query {config.name}: {error.args[0]!r} is not known; there are {known}") from None
    policy = Policy(config.order, config.completeness, config.suppression)
    square = config.shape == "square"
    region: Callable[[Point], Region] = squares(2 * config.radius) if square else circles(config.radius)
    return Query(config.name, graph, config.focal, _by_cells(region, config.cells), config.history, policy)


def _by_cells(region: Callable[[Point], Region], size: float) -> Callable[[Point], Region]:
    """The region around the middle of the square where a place is; without a size, around the place."""
    if not size:
        return region

    def middle(at: float) -> float:
        return (math.floor(at / size) + 0.5) * size

    return lambda place: region(Point(middle(place.x), middle(place.y)))


def condition_of(when: When) -> Condition:
    match when:
        case WhenTimed(seconds):
            return Timed(seconds)
        case WhenFar(metres):
            return Spatial(metres)
        case WhenPoor(precision, recall, look_back):
            return QualityAware(Quality(precision, recall), look_back)
        case _:
            return Always()


def drive_text(samples: Iterable[tuple[float, float, float, float, str]]) -> str:
    """A drive as lines ``t,x,y,speed,lane``, in whole millimetres."""
    return "\n".join(
        f"{t:.10g},{x:.3f},{y:.3f},{speed:.3f},{' '.join(lane.split())}" for t, x, y, speed, lane in samples
    )


def drive_of(text: str) -> Drive:
    """Raises ValueError if it is no drive, or its times do not grow."""
    samples = []
    for line in text.splitlines():
        *numbers, lane = line.split(",", 4)
        t, x, y, speed = map(float, numbers)
        if not all(abs(each) <= MOST_NUMBER for each in (t, x, y, speed)):
            raise ValueError(f"{line[:80]!r} is no sample of a drive")
        samples.append(Sample(t, x, y, speed, lane))
    return Drive(samples)


def nodes_of(config: InterestConfig) -> tuple[str, ...]:
    return (*config.settings.areas, *config.settings.clients)


def problems(config: InterestConfig, node: str) -> list[str]:
    """Why a node cannot run this; empty if it can."""
    found = [] if config.node == node else [f"the plan is for {config.node}"]
    if config.node in config.settings.clients:
        try:
            drive_of(config.drive)
        except ValueError as error:
            found.append(str(error))
    return found + settings_problems(config.settings)


def settings_problems(settings: Settings) -> list[str]:
    found: list[str] = []
    for each in settings.queries:
        try:
            check_query(query_of(each), settings.ttl)
            check_condition(condition_of(each.when))
        except McepError as error:
            found.append(str(error))
    if not found:
        try:
            check_deployment(deployment_of(settings))
        except McepError as error:
            found.append(str(error))
    return found or list(_unlike(settings))


def _unlike(settings: Settings) -> Iterator[str]:
    """Selection managers whose operators do not do the same."""
    logic = {each.name: each.logic for each in settings.queries}
    for manager in settings.reuse.managers if settings.reuse is not None else ():
        types = {(logic[query], name) for query, name in map(split_key, manager.operators)}
        if len(types) > 1:
            yield f"selection manager {manager.name}: its operators do not do the same"


def homes_of(settings: Settings, client: str) -> dict[str, str]:
    """By query whose focal object a client is, the broker that moves its interest."""
    return {each.name: each.home for each in settings.queries if each.focal == client}


def readings_of(config: InterestConfig) -> Iterator[Reading]:
    """What a client's sensors see; what no query wants is silent. Raises McepError, ValueError."""
    settings, drive = config.settings, drive_of(config.drive)
    times = settings.every, settings.until, settings.phase(config.node)
    if config.node in settings.cameras:
        here = drive.at(0.0)
        readings = filmed(config.filmed, Point(here.x, here.y), *times)
    else:
        readings = drive.readings(*times)
    wanted = types_of(deployment_of(settings))
    return (each if each.type in wanted else each.silenced() for each in readings)


def types_of(deployment: Deployment) -> frozenset[str]:
    """The types of atomic events that some query wants."""
    return frozenset(source.type for each in deployment.queries for source in each.query.graph.sources)
