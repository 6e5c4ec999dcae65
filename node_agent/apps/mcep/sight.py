"""What a query's home knows of the events in a region, to compare interests before anything is streamed.

On one broker these are the recent events themselves. With several brokers the home has only its own area's,
so a lattice of points stands for events that lie everywhere alike (thesis, section 3.3.2).
"""

import math
from collections.abc import Iterable

from node_agent.apps.mcep.geometry import Point, Region, bounds, contains
from node_agent.apps.mcep.model import AtomicId
from node_agent.apps.mcep.site import Site

LATTICE = 32
"""Points along the longer side of a region, at least; at most twice as many."""


class Sight:
    """``look_back``: over how many seconds events are counted."""

    def __init__(self, site: Site, types: Iterable[str], look_back: float) -> None:
        self._site, self._types, self._look_back = site, tuple(types), look_back
        self._is_alone = len(site.servers) == 1

    def events(self, region: Region, t: float) -> frozenset[AtomicId]:
        """Those in a region in the seconds before ``t``."""
        if not self._is_alone:
            return lattice(region)
        storage, since = self._site.storage, t - self._look_back
        return frozenset(
            atom
            for type in self._types
            for each in storage.find(type, [region], since, t)
            for atom in each.provenance
        )

    def rate(self, region: Region, t: float) -> float:
        """Events a second in a region; with several brokers 1, so that a budget counts graphs."""
        if not self._is_alone:
            return 1.0
        return self._site.count(self._types, [region], t - self._look_back, t) / self._look_back


def lattice(region: Region) -> frozenset[AtomicId]:
    """Points inside of a region, on a lattice that is the same for regions of about the same size."""
    box = bounds(region)
    longer = max(box.x1 - box.x0, box.y1 - box.y0, 1e-6)
    step = 2.0 ** math.floor(math.log2(longer / LATTICE))
    columns = range(math.ceil(box.x0 / step), math.floor(box.x1 / step) + 1)
    rows = range(math.ceil(box.y0 / step), math.floor(box.y1 / step) + 1)
    return frozenset(
        (str(column), row)
        for column in columns
        for row in rows
        if contains(region, Point(column * step, row * step))
    )
