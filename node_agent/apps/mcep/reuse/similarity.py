"""How far one selection can stand for another (thesis, 5.1, 5.2 and section 5.3.3).

An *estimate* takes the selection that is wanted and the one that would be used, and says how much they
share: by atomic events, by the area of interests, by results they got from the same selection, by counts in
a grid, or by what arrived lately. Each operator's results carry what they depend on twice: *wanted*, as if
nothing were reused, and *used*, with reuse. An estimate holds what is wanted of one selection against what
was used of the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.model import AtomicId, EventId, McepError, Quality, ratio
from node_agent.apps.mcep.reuse.cells import Cells, cells_in_common
from node_agent.apps.mcep.reuse.overlap import area, common_area

Atoms = frozenset[AtomicId]


class Overlap(NamedTuple):
    """Sizes of what both have, of the wanted selection, and of the used one."""

    shared: float
    wanted: float
    used: float

    @property
    def quality(self) -> Quality:
        return Quality(ratio(self.shared, self.used, self.wanted), ratio(self.shared, self.wanted, self.used))


class Received(NamedTuple):
    """A result that an operator took as input. ``similarity``: how far it stands for what the operator's
    own predecessor would have given; 1 if it is that predecessor's."""

    atoms: int
    similarity: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A selection as the covering task sees it. An estimate needs some of this only.

    ``start``, ``end``: times of its first and last atomic event. ``missing``: how many atomic events are
    expected until it is complete. ``results``: its input by event. ``recent``: what its operator got lately.
    ``content``: its input, whatever it depends on.
    """

    operator: str
    number: int
    start: float
    end: float
    wanted: Atoms = frozenset()
    used: Atoms = frozenset()
    missing: int = 0
    region: Region | None = None
    results: Mapping[EventId, Received] | None = None
    wanted_cells: Cells = field(default_factory=dict)
    used_cells: Cells = field(default_factory=dict)
    recent: Atoms = frozenset()
    content: frozenset[EventId] | None = None


Estimate = Callable[[Candidate, Candidate], Overlap]
"""From the wanted selection and the used one."""


def by_atoms(wanted: Candidate, used: Candidate) -> Overlap:
    """Exact: counts atomic events by their ids."""
    return Overlap(len(wanted.wanted & used.used), len(wanted.wanted), len(used.used))


def by_interest(wanted: Candidate, used: Candidate) -> Overlap:
    """By the areas of the processing interests: right if events lie everywhere alike."""
    if wanted.region is None or used.region is None:
        raise McepError("to estimate by interest, each selection needs the region of its operator")
    if wanted.region == used.region:
        size = area(wanted.region)
        return Overlap(size, size, size)
    return Overlap(common_area(wanted.region, used.region), area(wanted.region), area(used.region))


def by_results(wanted: Candidate, used: Candidate) -> Overlap:
    """Per neighbour: counts results that both took from the same selection, each with its atomic events
    times its similarity to what is wanted."""
    mine, theirs = wanted.results or {}, used.results or {}
    shared = sum(each.atoms * each.similarity for name, each in mine.items() if name in theirs)
    return Overlap(
        shared, sum(each.atoms for each in mine.values()), sum(each.atoms for each in theirs.values())
    )


def by_cells(wanted: Candidate, used: Candidate) -> Overlap:
    """By counts in cells of place and time."""
    both = cells_in_common(wanted.wanted_cells, used.used_cells)
    return Overlap(both, sum(wanted.wanted_cells.values()), sum(used.used_cells.values()))


def by_recent(wanted: Candidate, used: Candidate) -> Overlap:
    """By what the two operators got lately, whatever is in the selections."""
    return Overlap(len(wanted.recent & used.recent), len(wanted.recent), len(used.recent))


ESTIMATES: dict[str, Estimate] = {
    "exact": by_atoms,
    "spatial": by_interest,
    "neighbour": by_results,
    "grid": by_cells,
    "recent": by_recent,
}
OF_OPERATORS = frozenset({by_interest, by_recent})
"""These say the same for all selections of two operators, so one estimate is enough for a batch."""


def suffices(found: Quality, least: Quality, strict: bool = False) -> bool:
    """Whether quality is above what the covered query asks for (E9).

    Equal selections suffice for any threshold; not with ``strict``, which compares as the thesis prints it.
    """
    if found.precision > least.precision and found.recall > least.recall:
        return True
    return not strict and found.precision == 1.0 and found.recall == 1.0
