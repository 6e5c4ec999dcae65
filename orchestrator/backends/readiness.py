"""Has routing converged? Asked of the nodes, and held against what an all-knowing observer sees."""

from collections.abc import Collection, Mapping
from math import ceil, inf

from orchestrator.radio.truth import Links
from orchestrator.spec.semantics import islands

DEPENDABLE = 4.0
"""Transmissions for a full frame. A link that takes more may be rightly ignored, or come and go."""

_MOST_NAMED = 5


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
