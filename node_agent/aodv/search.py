"""Expanding ring search: how far requests go, how long to wait, when to give up (RFC 3561, section 6.4)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from node_agent.aodv.config import AodvConfig
from node_agent.aodv.limits import RateLimit


class Ring(NamedTuple):
    """``retries``: how often the whole network was asked again."""

    ttl: int
    retries: int = 0


def first_ring(config: AodvConfig, last_known_hops: int | None) -> Ring:
    if last_known_hops is None:
        return Ring(config.ttl_start)
    return _wider(config, last_known_hops)


def next_ring(config: AodvConfig, ring: Ring) -> Ring | None:
    """Returns None when the search must give up."""
    if ring.ttl < config.net_diameter:
        return _wider(config, ring.ttl)
    return Ring(ring.ttl, ring.retries + 1) if ring.retries < config.rreq_retries else None


def reply_timeout(config: AodvConfig, ring: Ring) -> float:
    """Returns seconds to wait for a reply. Doubles with every
    repetition, which relieves a congested network."""
    if ring.ttl < config.net_diameter:
        return config.ring_traversal_time(ring.ttl)
    return config.net_traversal_time * (1 << ring.retries)


def _wider(config: AodvConfig, ttl: int) -> Ring:
    ttl += config.ttl_increment
    return Ring(ttl if ttl <= config.ttl_threshold else config.net_diameter)


@dataclass(slots=True)
class Search:
    """``destination_only``: no other node may answer."""

    destination: int
    ring: Ring
    destination_only: bool
    due_ns: int
    asked: bool = False
    """False while the rate limit delays the request."""


class Searches:
    """The current searches. The caller sends the request of one from
    ``begin`` or ``due`` if ``may_ask`` allows."""

    def __init__(self, config: AodvConfig) -> None:
        self._config = config
        self._limit = RateLimit(config.rreq_rate_limit)
        self._searches: dict[int, Search] = {}

    def __len__(self) -> int:
        return len(self._searches)

    def __contains__(self, destination: int) -> bool:
        return destination in self._searches

    def begin(
        self, destination: int, last_known_hops: int | None, destination_only: bool, now_ns: int
    ) -> Search:
        ring = first_ring(self._config, last_known_hops)
        search = Search(destination, ring, destination_only, now_ns)
        self._searches[destination] = search
        return search

    def end(self, destination: int) -> bool:
        """Ends the search, and returns whether there was one."""
        return self._searches.pop(destination, None) is not None

    def may_ask(self, search: Search, now_ns: int) -> bool:
        """Counts the request as sent if the rate limit allows it; otherwise postpones it until then."""
        free_ns = self._limit.free_at_ns(now_ns)
        search.asked = free_ns <= now_ns
        if search.asked:
            self._limit.take(now_ns)
            search.due_ns = now_ns + round(reply_timeout(self._config, search.ring) * 1_000_000_000)
        else:
            search.due_ns = free_ns
        return search.asked

    def due(self, now_ns: int) -> Iterator[Search]:
        yield from [search for search in self._searches.values() if search.due_ns <= now_ns]

    def widen(self, search: Search) -> bool:
        """Returns False if the search has failed."""
        if search.asked:
            wider = next_ring(self._config, search.ring)
            if wider is None:
                del self._searches[search.destination]
                return False
            search.ring = wider
        return True

    def next_due_ns(self) -> int | None:
        return min((search.due_ns for search in self._searches.values()), default=None)
