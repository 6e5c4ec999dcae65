"""What the next hops of all nodes add up to."""

from collections.abc import Collection, Mapping

Tables = Mapping[str, Mapping[str, str]]
"""Node → destination → next hop."""


def complete(tables: Tables) -> bool:
    """Does every node have a route to every other?"""
    return all(len(routes) >= len(tables) - 1 for routes in tables.values())


def users(tables: Tables, relay: str) -> int:
    """Routes that lead over ``relay`` next, to somebody else."""
    return sum(
        next_hop == relay != destination
        for node, routes in tables.items()
        if node != relay
        for destination, next_hop in routes.items()
    )


def path(tables: Tables, source: str, destination: str) -> tuple[str, ...]:
    """The nodes that a packet passes, both ends included; empty if it gets lost or goes in circles."""
    nodes = [source]
    while nodes[-1] != destination:
        next_hop = tables.get(nodes[-1], {}).get(destination)
        if next_hop is None or len(nodes) > len(tables):
            return ()
        nodes.append(next_hop)
    return tuple(nodes)


def reached(tables: Tables, node: str, neighbours: Collection[str]) -> bool:
    """Do all others reach ``node`` and it them, over nodes that are in range of it?"""
    others = [other for other in tables if other != node]
    there = [path(tables, other, node) for other in others]
    back = [path(tables, node, other) for other in others]
    return all(way and way[-2] in neighbours for way in there) and all(
        way and way[1] in neighbours for way in back
    )
