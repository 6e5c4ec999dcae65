"""Reads what an agent reports when it is asked and does not record: costs of its links, its process, its log.

What cannot be read is left out: a live figure that froze would be worse than none.
"""

import asyncio
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from node_agent.agent.costs import AgentCosts
from node_agent.agent.metrics import (
    BOOT,
    BUFFERED,
    CPU,
    LINK_COST,
    OPEN_FDS,
    RECORDS,
    RESIDENT,
    STARTED,
)
from node_agent.linkstate.base import LINK_STATE_TIMEOUT, LinkStateUnavailable
from node_agent.model.cost_graph import CostGraph
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segment_log import SegmentLog

COSTS_TIMEOUT = min(1.0, LINK_STATE_TIMEOUT)
"""Other requests of the agent's owner wait meanwhile."""
MOST_NEIGHBOURS = 256
_PROCESS = Path("/proc/self")


async def own_links(
    costs: AgentCosts, members: Collection[str], timeout: float = COSTS_TIMEOUT
) -> CostGraph | None:
    """Returns the links of the node itself to ``members`` of the run, at most ``MOST_NEIGHBOURS``; None if
    there are no costs now.
    """
    try:
        async with asyncio.timeout(timeout):
            graph = await costs.cost_graph()
    except (LinkStateUnavailable, TimeoutError):
        return None
    row = graph.costs.get(costs.node, {})
    peers = [peer for peer in sorted(row) if peer in members and 0 <= row[peer] < float("inf")]
    kept = {peer: row[peer] for peer in peers[:MOST_NEIGHBOURS]}
    return CostGraph({costs.node: kept}, graph.metric, graph.source, graph.taken_ns)


def link_samples(links: CostGraph | None) -> Iterator[Sample]:
    if links is not None:
        for row in links.costs.values():
            yield from (Sample(LINK_COST, (peer, links.metric), cost) for peer, cost in row.items())


def log_samples(log: SegmentLog, started_ns: int) -> Iterator[Sample]:
    yield Sample(BOOT, (), log.boot)
    yield Sample(STARTED, (), started_ns / 1e9)
    yield Sample(RECORDS, (), log.records)
    yield Sample(BUFFERED, (), log.buffered_bytes)


def process_samples(process: Path = _PROCESS) -> Iterator[Sample]:
    """Reads the process from /proc; elsewhere than on Linux there is none."""
    used = os.times()
    yield Sample(CPU, (), used.user + used.system)
    with suppress(OSError, ValueError, IndexError):
        pages = int((process / "statm").read_bytes().split()[1])
        yield Sample(RESIDENT, (), pages * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError):
        yield Sample(OPEN_FDS, (), sum(1 for _ in (process / "fd").iterdir()))
