"""Events with time and place, their order, and what a query asks for (thesis, section 2.1 and 2.2)."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from node_agent.apps.mcep.geometry import Place, Point, Region, region_problem

if TYPE_CHECKING:
    from node_agent.apps.mcep.graph import OperatorGraph

Value = float | int | str | bool
AtomicId = tuple[str, int]
"""Of an atomic event: its source, and its number there."""
EventId = tuple[str, int, float, int]
Cell = tuple[int, int, int]
"""Of a grid of place and time."""

Mark = tuple[float | int | str, ...]
"""A position in the order of events: the ``key`` of one, ``(t,)`` before all at t, ``(t, inf)`` after
them."""
BEGINNING: Mark = ()
END: Mark = (math.inf, math.inf)


FAR_S = 30 * 86400.0
"""No moment of a run is later."""


class McepError(ValueError):
    """What was asked for cannot work. The text says what to change."""


class Shared(NamedTuple):
    """What a selection manager says of a result (see ``reuse``).

    ``origin``: its id there: the operator whose selection was processed, that selection's number, a time, and
    the place among its results. ``wanted``: the atomic events that the result would depend on without reuse;
    None: those it does depend on. ``used_cells``, ``wanted_cells``: both as counts in a grid, if selections
    are compared by one.
    """

    origin: EventId = ("", 0, 0.0, 0)
    wanted: frozenset[AtomicId] | None = None
    used_cells: Mapping[Cell, int] = {}
    wanted_cells: Mapping[Cell, int] | None = None


class Event(NamedTuple):
    """Something at a time and a place. Events of one epoch are ordered by time, number and source.

    ``source``: the sensor or operator; what an operator makes of each event, or of each sensor's events,
    alone is from ``"<sensor> <operator>"``. ``epoch``: the processing interest it was computed for;
    ``born``: the first one for which it was computed, so an event that is used again keeps its ``id``.
    ``provenance``: the atomic events it depends on. ``shared``: of a result that comes from selections which
    queries share, or is made of such.
    """

    t: float
    seq: int
    source: str
    type: str
    place: Place
    attributes: Mapping[str, Value] = {}
    epoch: int = 0
    born: int = 0
    provenance: frozenset[AtomicId] = frozenset()
    shared: Shared | None = None

    @property
    def key(self) -> Mark:
        return self[:3]

    @property
    def id(self) -> EventId:
        return self.source, self.born, self.t, self.seq

    @property
    def wanted(self) -> frozenset[AtomicId]:
        """The atomic events that it would depend on if queries shared nothing."""
        own = self.shared.wanted if self.shared is not None else None
        return self.provenance if own is None else own


def atomic(
    type: str,
    t: float,
    place: Point,
    seq: int,
    source: str = "",
    attributes: Mapping[str, Value] | None = None,
) -> Event:
    """An event of a sensor.

    >>> atomic("speed", 1.0, Point(3, 4), 0, "car7", {"speed": 12.5}).provenance
    frozenset({('car7', 0)})
    """
    source = source or type
    return Event(t, seq, source, type, place, attributes or {}, provenance=frozenset({(source, seq)}))


def just_before(t: float) -> Mark:
    return (t,)


def just_after(t: float) -> Mark:
    return (t, math.inf)


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a processing interest stands for the wanted one, counted in atomic events."""

    precision: float
    recall: float


def quality(wanted: Iterable[AtomicId], processed: Iterable[AtomicId]) -> Quality:
    """Equations 2.4 and 2.5."""
    asked, used = set(wanted), set(processed)
    both = len(asked & used)
    return Quality(ratio(both, len(used), len(asked)), ratio(both, len(asked), len(used)))


def ratio(both: float, of: float, other: float) -> float:
    """``both / of``. With nothing to divide by, 1 if the other side is empty too, else 0."""
    if of:
        return both / of
    return 0.0 if other else 1.0


Order = Literal["spatiotemporal", "spatial", "none"]
Completeness = Literal["weak", "strong", "best_effort"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What is promised about results.

    ``order``: within and between epochs, between epochs only, or as results come. ``completeness``: all
    results of each epoch before the next one (``strong``: the same for all queries with the same region),
    or what is ready. ``suppression``: whether what the last epoch already sent and computed is used again.
    """

    order: Order = "spatiotemporal"
    completeness: Completeness = "weak"
    suppression: bool = False

    @property
    def is_strict(self) -> bool:
        return self.completeness != "best_effort"


RegionFunction = Callable[[Point], Region]


@dataclass(frozen=True, slots=True)
class Query:
    """``focal_object``: whose place decides the interest, by ``region``. ``history``: δ, how many seconds
    before each switch are wanted too."""

    name: str
    graph: "OperatorGraph"
    focal_object: str
    region: RegionFunction
    history: float = 0.0
    policy: Policy = field(default_factory=Policy)

    @property
    def look_back(self) -> float:
        """How long before an epoch's start events matter: its history and the operators' restriction
        windows."""
        return self.history + max(self.graph.additional_time(each.name) for each in self.graph.sources)

    def interest(self, place: Point) -> Region:
        """The wanted region around a place. Raises ``McepError`` if the user's function fails or gives
        nonsense."""
        try:
            region: object = self.region(place)
        except Exception as error:
            raise McepError(
                f"query {self.name}: the region function failed at ({place.x:g}, {place.y:g}): "
                f"{type(error).__name__}: {error}"
            ) from error
        problem = region_problem(region)
        if problem:
            raise McepError(
                f"query {self.name}: the region function gave no region at ({place.x:g}, {place.y:g}): "
                f"{problem}"
            )
        assert isinstance(region, Region)
        return region
