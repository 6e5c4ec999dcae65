"""Makes of a selection's input what estimates look at."""

import math
from collections import deque
from collections.abc import Iterable, Sequence

from node_agent.apps.mcep.geometry import Point, Region
from node_agent.apps.mcep.model import EventId
from node_agent.apps.mcep.reuse.cells import Cells, CellSize, joined
from node_agent.apps.mcep.reuse.incomplete import pattern
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.results import Input, Key
from node_agent.apps.mcep.reuse.similarity import Atoms, Candidate, Received, by_cells, by_recent, by_results


class Recent:
    """The atomic events that an operator got in the last ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._events: deque[tuple[float, Atoms]] = deque()
        self._atoms: Atoms | None = None

    def add(self, inputs: Iterable[Input]) -> None:
        """Events that are older than the last one are known already: selections may share events."""
        last = self._events[-1][0] if self._events else -math.inf
        new = [(each.event.t, each.event.provenance) for each in inputs if each.event.t >= last]
        if not new:
            return
        self._events.extend(new)
        self._atoms = None
        oldest = new[-1][0] - self._seconds
        while self._events[0][0] < oldest:
            self._events.popleft()

    @property
    def atoms(self) -> Atoms:
        if self._atoms is None:
            self._atoms = frozenset().union(*(each for _, each in self._events))
        return self._atoms


def candidate(
    key: Key,
    inputs: Sequence[Input],
    missing: int,
    region: Region,
    recent: Recent,
    rules: Rules,
    cell: CellSize | None,
) -> Candidate:
    """A selection for the covering task. What the rules do not need is left out, but for atomic ids: the
    similarity that results are annotated with is always counted by these."""
    used: Atoms = frozenset().union(*[each.event.provenance for each in inputs])
    wanted = used
    if any(each.wanted is not None for each in inputs):
        wanted = frozenset().union(
            *[each.event.provenance if each.wanted is None else each.wanted for each in inputs]
        )
    results, wanted_cells, used_cells, atoms = None, None, None, None
    if rules.estimate is by_results:
        results = {
            _origin(each): Received(max(1, len(each.event.provenance)), each.similarity) for each in inputs
        }
    if rules.estimate is by_cells and cell is not None:
        used_cells = joined(_cells(each, cell) for each in inputs)
        wanted_cells = joined(
            _cells(each, cell) if each.wanted_cells is None else each.wanted_cells for each in inputs
        )
    if rules.estimate is by_recent or rules.share is pattern or rules.sure is not None:
        atoms = recent.atoms
    times = [each.event.t for each in inputs]
    return Candidate(
        *key,
        min(times),
        max(times),
        wanted,
        used,
        missing,
        region,
        results,
        wanted_cells or {},
        used_cells or {},
        atoms or frozenset(),
        frozenset(map(_origin, inputs)) if rules.asks_for_equal and not missing else None,
    )


def _origin(given: Input) -> EventId:
    """What two operators have in common if they got it from the same selection, or sensor."""
    shared = given.event.shared
    return shared.origin if shared is not None and shared.origin[0] else given.event.id


def _cells(given: Input, cell: CellSize) -> Cells:
    """Those of a result, or the one of an atomic event."""
    event = given.event
    if given.used_cells or not isinstance(event.place, Point):
        return given.used_cells
    return {cell.cell(event.place, event.t): 1}
