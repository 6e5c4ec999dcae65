"""Checks whether routing has converged: compares what nodes know with the true links."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from math import ceil, inf

from node_agent.agent.control import Report
from orchestrator.planning.distances import islands
from orchestrator.radio.truth import Links

DEPENDABLE = 4.0
"""Transmissions for a full frame. Protocols may ignore a link that takes more, or see it come and go."""

_MOST_NAMED = 5
_POLL_S = 0.5
_MARGIN_S = 3.0
"""Waiting ends this much before the phase's timeout, so that the error can name the nodes."""
_NOT_TOLD = "no costs from the routing layer"

SETTLED_S = 5.0
"""Costs have settled if they have not changed much for so long."""

Costs = Mapping[str, Mapping[str, float]]
"""By node, the costs of reaching the nodes that it may send to."""
Look = Callable[[Iterable[str]], Awaitable[dict[str, str]]]
"""Asks these nodes; returns those that are not ready, and why."""


async def unready_within(
    limit: float, nodes: Iterable[str], look: Look, check: Callable[[], None]
) -> dict[str, str]:
    """Waits for all nodes for nearly ``limit`` seconds; returns those that are not ready then, and why.

    ``check`` raises to end the wait at once.
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


class Settling:
    """Watches whether costs settle: none may change by more than ``share`` within ``SETTLED_S``. Pure."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._since = inf
        self._lowest: dict[tuple[str, str], float] = {}
        self._highest: dict[tuple[str, str], float] = {}

    def settled(self, now_s: float, costs: Costs) -> bool:
        """Takes the costs at ``now_s``. Says whether they have settled by now."""
        found = {(node, peer): cost for node, row in costs.items() for peer, cost in row.items()}
        lowest = {pair: min(cost, self._lowest.get(pair, cost)) for pair, cost in found.items()}
        highest = {pair: max(cost, self._highest.get(pair, cost)) for pair, cost in found.items()}
        if found.keys() != self._lowest.keys() or any(
            not highest[pair] - lowest[pair] <= self._share * highest[pair] for pair in found
        ):
            lowest = highest = found
            self._since = now_s
        self._lowest, self._highest = lowest, highest
        return now_s - min(self._since, now_s) >= SETTLED_S


async def settled_within(
    limit: float, share: float, look: Callable[[], Awaitable[Costs]], check: Callable[[], None]
) -> float | None:
    """Waits for costs to settle, for nearly ``limit`` seconds. Returns how long that took; None if they did
    not.
    """
    settling, began = Settling(share), time.monotonic()
    while not settling.settled(time.monotonic(), await look()):
        check()
        if time.monotonic() - began >= limit - _MARGIN_S:
            return None
        await asyncio.sleep(_POLL_S)
    return time.monotonic() - began


def unready(reports: Mapping[str, Report | None], links: Links, quorum: float) -> dict[str, str]:
    """Returns the asked nodes that do not know enough routes yet, and why."""
    reaches = {
        node: report.reaches for node, report in reports.items() if report is not None and report.ready
    }
    short = shortfalls(reaches, links, quorum)
    return {node: short.get(node, _NOT_TOLD) for node in reports if node not in reaches or node in short}


def connected(links: Links) -> dict[str, list[str]]:
    """Returns for each node the others that it reaches over dependable links."""
    mutual = {
        node: [peer for peer in peers if _cost(links, node, peer) <= DEPENDABLE >= _cost(links, peer, node)]
        for node, peers in links.items()
    }
    island = islands(mutual)
    return {node: [peer for peer in links if peer != node and island[peer] == island[node]] for node in links}


def _cost(links: Links, source: str, destination: str) -> float:
    return links.get(source, {}).get(destination, inf)


def shortfalls(reaches: Mapping[str, Collection[str]], links: Links, quorum: float) -> dict[str, str]:
    """Returns nodes that have routes to too few of the nodes they are connected with, and the missing ones.

    A node that ground truth does not know yet counts as not ready.
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
