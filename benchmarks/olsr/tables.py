"""Evaluates the next hops of all nodes together."""

from collections.abc import Collection, Mapping

Tables = Mapping[str, Mapping[str, str]]
"""Node → destination → next hop."""


def complete(tables: Tables) -> bool:
    """Says whether every node has a route to every other."""
    return all(len(routes) >= len(tables) - 1 for routes in tables.values())


def users(tables: Tables, relay: str) -> int:
    """Returns routes to other nodes whose next hop is ``relay``."""
    return sum(
        next_hop == relay != destination
        for node, routes in tables.items()
        if node != relay
        for destination, next_hop in routes.items()
    )


def path(tables: Tables, source: str, destination: str) -> tuple[str, ...]:
    """Returns the nodes that a packet passes, including both ends; empty if it gets lost or loops."""
    nodes = [source]
    while nodes[-1] != destination:
        next_hop = tables.get(nodes[-1], {}).get(destination)
        if next_hop is None or len(nodes) > len(tables):
            return ()
        nodes.append(next_hop)
    return tuple(nodes)


def reached(tables: Tables, node: str, neighbours: Collection[str]) -> bool:
    """Says whether all others reach ``node`` and it reaches them, over nodes in its range."""
    others = [other for other in tables if other != node]
    there = [path(tables, other, node) for other in others]
    back = [path(tables, node, other) for other in others]
    return all(way and way[-2] in neighbours for way in there) and all(
        way and way[1] in neighbours for way in back
    )
