"""Reads link costs from our own OLSR daemon in the same process, as in virtual time."""

from collections.abc import Callable
from functools import lru_cache

from node_agent.linkstate.olsrd import Link, Tables, reading
from node_agent.linkstate.reader import Reading
from node_agent.olsr.config import Quality
from node_agent.olsr.view import View
from node_agent.olsr.wire import dotted

SOURCE = "olsr"

_dotted = lru_cache(maxsize=4096)(dotted)


class OlsrCoreReader:
    """``view`` is the daemon's method."""

    def __init__(self, view: Callable[[int], View], now_ns: Callable[[], int], quality: Quality) -> None:
        self._view = view
        self._now_ns = now_ns
        self._quality = quality

    async def read(self) -> Reading:
        return parse(self._view(self._now_ns()), self._quality)


def parse(view: View, quality: Quality) -> Reading:
    """Leaves out broken links: a daemon that counts hops gives no other quality."""
    hop_count = quality == "hops"
    tables = Tables(
        [
            Link(
                _dotted(edge.last_hop),
                _dotted(edge.destination),
                edge.cost,
                None if hop_count else edge.quality * edge.neighbour_quality,
            )
            for edge in view.topology
            if edge.cost is not None
        ],
        {_dotted(alias): _dotted(mid.main) for mid in view.mid for alias in mid.aliases},
        [_dotted(view.main_address), *(_dotted(interface.address) for interface in view.interfaces)],
        hop_count,
    )
    return reading(tables, SOURCE)
