"""Has routing converged? Asked of the nodes, and held against what an all-knowing observer sees."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from math import ceil, inf

from node_agent.agent.control import Report
from orchestrator.planning.distances import islands
from orchestrator.radio.truth import Links

DEPENDABLE = 4.0
"""Transmissions for a full frame. A link that takes more may be rightly ignored, or come and go."""

_MOST_NAMED = 5
_POLL_S = 0.5
_MARGIN_S = 3.0
"""Before the phase is cut short we say ourselves who did not make it."""
_NOT_TOLD = "no costs from the routing layer"

Look = Callable[[Iterable[str]], Awaitable[dict[str, str]]]
"""Asks these nodes: those of them that are not ready, and why."""


async def unready_within(
    limit: float, nodes: Iterable[str], look: Look, check: Callable[[], None]
) -> dict[str, str]:
    """Wait for all of them, for nearly ``limit`` seconds; those who are not ready then, and why.

    ``check`` raises what ends the waiting at once.
    """
    deadline = time.monotonic() + max(limit - _MARGIN_S, limit / 2)
    waiting = dict.fromkeys(nodes, _NOT_TOLD)
    while waiting:
        check()
        waiting = await look(waiting)
        if time.monotonic() >= deadline:
            break
        if waiting:
            await asyncio.sleep(_POLL_S)
    return waiting


def unready(reports: Mapping[str, Report | None], links: Links, quorum: float) -> dict[str, str]:
    """Of the nodes that were asked, those that routing has not told enough, and why."""
    reaches = {
        node: report.reaches for node, report in reports.items() if report is not None and report.ready
    }
    short = shortfalls(reaches, links, quorum)
    return {node: short.get(node, _NOT_TOLD) for node in reports if node not in reaches or node in short}


def connected(links: Links) -> dict[str, list[str]]:
    """For each node the others that it has a way to over dependable links."""
    mutual = {
        node: [peer for peer in peers if _cost(links, node, peer) <= DEPENDABLE >= _cost(links, peer, node)]
        for node, peers in links.items()
    }
    island = islands(mutual)
    return {node: [peer for peer in links if peer != node and island[peer] == island[node]] for node in links}


def _cost(links: Links, source: str, destination: str) -> float:
    return links.get(source, {}).get(destination, inf)


def shortfalls(reaches: Mapping[str, Collection[str]], links: Links, quorum: float) -> dict[str, str]:
    """Who knows no way to enough of the nodes that it is connected with, and to whom not.

    As long as ground truth says nothing of a node, nobody can say that what it knows is enough.
    """
    expected = connected(links)
    found = {}
    for node, known in reaches.items():
        if quorum and node not in expected:
            found[node] = "its true links are not known yet"
            continue
        wanted = expected.get(node, [])
        lacking = [peer for peer in wanted if peer not in known]
        if len(wanted) - len(lacking) < ceil(quorum * len(wanted)):
            named = ", ".join(lacking[:_MOST_NAMED]) + (", …" if len(lacking) > _MOST_NAMED else "")
            found[node] = f"routing knows no way to {len(lacking)} of {len(wanted)} nodes ({named})"
    return found
