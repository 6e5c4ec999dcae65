"""All data of an answer at one moment, and how olsrd writes costs."""

from collections.abc import Mapping
from typing import NamedTuple

from node_agent.host.interfaces import InterfaceFacts
from node_agent.model.refusals import Refusal
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.view import View

BROKEN_LINK = 4194304.0
BROKEN_ROUTE = 4294967295.0


class Snapshot(NamedTuple):
    view: View
    config: OlsrConfig
    interfaces: Mapping[str, InterfaceFacts]
    """By name; vanished interfaces are missing."""
    counters: Mapping[str, Mapping[str, int]]
    """By kind of message; see the daemon's ``Counters``."""
    refusals: tuple[Refusal, ...]
    version: str
    pid: int
    system_time_s: int

    @property
    def counts_hops(self) -> bool:
        """Says whether the daemon counts hops. Then, like olsrd without link quality, every link is broken,
        every path costs 0, and only ``metric`` has information.
        """
        return self.config.quality == "hops"

    def link_cost(self, cost: float | None) -> float:
        return BROKEN_LINK if cost is None or self.counts_hops else cost

    def path_cost(self, cost: float | None) -> float:
        if self.counts_hops:
            return 0.0
        return BROKEN_ROUTE if cost is None else cost


def cost_text(cost: float) -> str:
    return "INFINITE" if cost >= BROKEN_LINK else f"{cost:.3f}"
