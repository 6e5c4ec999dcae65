"""What brokers tell selection managers, and what these answer."""

import math
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.reuse.results import Results


class Offer(NamedTuple):
    """A selection: the end of its restriction window, and by window the numbers of its events."""

    end: float
    windows: tuple[tuple[str, tuple[int, ...]], ...]


class Offered(NamedTuple):
    """From the broker of an operator to its selection manager: selections, in order.

    ``fresh``: events that were not told before; an operator's events are numbered from 0 on, and so are its
    selections. ``forget``: no later selection has an event with a lower number. ``region``: of the
    epoch that began ``since`` then; None: the query has ended. ``upto``: all selections that could be known
    before then have been told.
    """

    operator: str
    epoch: int
    since: float
    region: Region | None
    fresh: tuple[Event, ...] = ()
    selections: tuple[Offer, ...] = ()
    forget: int = 0
    upto: float = -math.inf


class Covered(NamedTuple):
    """From a selection manager to a broker of operators: results, and for which selections they are."""

    manager: str
    results: Results
