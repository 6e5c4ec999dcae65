"""Latency restrictions: from what a consumer accepts on a path to what each stream may take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from node_agent.migration.plan import MigrationError
from node_agent.migration.situation import Network

Stream = tuple[str, str]
"""Who sends and who receives."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path from a source to a consumer, both included, and the seconds it may take."""

    names: tuple[str, ...]
    limit: float

    def streams(self) -> list[Stream]:
        return list(zip(self.names, self.names[1:], strict=False))


def local_limits(routes: Iterable[Route], processing: Mapping[str, float]) -> dict[Stream, float]:
    """What is left of a path's limit after its operators' processing, shared evenly among its streams.

    A stream on several paths gets the least. Then each path keeps its limit if each stream does.
    """
    limits: dict[Stream, float] = {}
    for route in routes:
        streams = route.streams()
        if not streams:
            raise MigrationError("a path needs a source and a consumer")
        left = route.limit - sum(processing.get(name, 0.0) for name in route.names)
        if left < 0:
            raise MigrationError(
                f"operators on the way to {route.names[-1]} take longer than {route.limit:g} s"
            )
        for stream in streams:
            limits[stream] = min(limits.get(stream, left / len(streams)), left / len(streams))
    return limits


def route_latency(
    route: Route, hosts: Mapping[str, str], network: Network, processing: Mapping[str, float]
) -> float:
    """How long an event takes on a path, with the given placement."""
    ways = sum(network.between(hosts[a], hosts[b]) for a, b in route.streams())
    return ways + sum(processing.get(name, 0.0) for name in route.names)


def late_routes(
    routes: Sequence[Route], hosts: Mapping[str, str], network: Network, processing: Mapping[str, float]
) -> list[Route]:
    """Paths that take longer than allowed: each path by itself (erratum E8), not their sum."""
    return [each for each in routes if route_latency(each, hosts, network, processing) > each.limit + 1e-9]
