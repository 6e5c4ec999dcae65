"""What a result depends on with and without reuse, from the events that it is made of."""

from collections.abc import Sequence

from node_agent.apps.mcep.model import Event, Shared, quality
from node_agent.apps.mcep.reuse.cells import Cells, joined
from node_agent.apps.mcep.reuse.results import Input


def inherited(events: Sequence[Event]) -> Shared | None:
    """Of a result that nobody shares, but that is made of such as are. None: it depends on none."""
    every = [each.shared for each in events if each.shared is not None]
    if not every:
        return None
    wanted = None
    if any(each.wanted is not None for each in every):
        wanted = frozenset().union(*(each.wanted for each in events))
    used = joined(each.used_cells for each in every)
    return Shared(wanted=wanted, used_cells=used, wanted_cells=joined(map(_wanted_cells, every)) or None)


def input_of(event: Event) -> Input:
    """An event as a selection manager takes it."""
    said = event.shared
    if said is None:
        return Input(event)
    similarity = quality(event.wanted, event.provenance).precision
    return Input(event, said.wanted, similarity, said.used_cells, said.wanted_cells)


def output_of(given: Input) -> Event:
    """A result that a selection manager gave, as the successor takes it."""
    return given.event._replace(
        shared=Shared(given.event.id, given.wanted, given.used_cells, given.wanted_cells)
    )


def _wanted_cells(shared: Shared) -> Cells:
    return shared.used_cells if shared.wanted_cells is None else shared.wanted_cells
