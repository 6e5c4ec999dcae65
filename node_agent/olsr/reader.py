"""Reads link costs from our own OLSR daemon in the same process, as in virtual time."""

from collections.abc import Callable
from functools import lru_cache

from node_agent.linkstate.olsrd import Tables, reading
from node_agent.linkstate.reader import Reading
from node_agent.olsr.config import Quality
from node_agent.olsr.view import Costs
from node_agent.olsr.wire import dotted

SOURCE = "olsr"

_dotted = lru_cache(maxsize=4096)(dotted)


class OlsrCoreReader:
    """``costs`` is the daemon's method."""

    def __init__(self, costs: Callable[[int], Costs], now_ns: Callable[[], int], quality: Quality) -> None:
        self._costs = costs
        self._now_ns = now_ns
        self._quality = quality

    async def read(self) -> Reading:
        return parse(self._costs(self._now_ns()), self._quality)


def parse(costs: Costs, quality: Quality) -> Reading:
    """A daemon that counts hops measures nothing else about its links."""
    hop_count = quality == "hops"
    tables = Tables(
        [
            (_dotted(last_hop), _dotted(destination), cost, None if hop_count else delivery)
            for last_hop, destination, cost, delivery in costs.edges
        ],
        {_dotted(alias): _dotted(main) for alias, main in costs.aliases.items()},
        [_dotted(address) for address in costs.own],
        hop_count,
    )
    return reading(tables, SOURCE)
