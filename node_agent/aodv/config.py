"""The configuration of an AODV node. Names and defaults are those of RFC 3561, section 10."""

from typing import Literal

from msgspec import Struct

Detection = Literal["feedback", "hello"]


class AodvConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All times are in seconds.

    ``detection`` says how a broken link is noticed. ``feedback``: the link layer reports which packet it gave
    up. ``hello``: nodes on routes in use send hellos, and a neighbour that falls silent is gone; replies are
    then acknowledged too (RREP-ACK), which reveals links that work in one direction only.
    """

    detection: Detection = "feedback"
    active_route_timeout: float = 3.0
    hello_interval: float = 1.0
    allowed_hello_loss: int = 2
    net_diameter: int = 35
    node_traversal_time: float = 0.04
    rreq_retries: int = 2
    rreq_rate_limit: int = 10
    rerr_rate_limit: int = 10
    ttl_start: int = 1
    ttl_increment: int = 2
    ttl_threshold: int = 7
    timeout_buffer: int = 2
    destination_only: bool = False
    gratuitous: bool = True
    jitter: float = 0.01
    """A node waits a random time up to this before it passes on a flooded
    request, so that neighbours do not all send at once."""
    held_packets: int = 64
    held_seconds: float = 30.0

    def __post_init__(self) -> None:
        times = ("active_route_timeout", "hello_interval", "node_traversal_time", "held_seconds")
        counts = ("allowed_hello_loss", "rreq_rate_limit", "rerr_rate_limit", "ttl_start", "ttl_increment")
        for name in times:
            if not 0.001 <= getattr(self, name) <= 3600:
                raise ValueError(f"{name} is between 1 ms and 1 h: {getattr(self, name)} s given")
        for name in (*counts, "held_packets"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1: {getattr(self, name)} given")
        if not self.ttl_start <= self.ttl_threshold <= self.net_diameter <= 255:
            raise ValueError("it must hold that ttl_start ≤ ttl_threshold ≤ net_diameter ≤ 255")
        if not 0 <= self.rreq_retries <= 10:
            raise ValueError(f"rreq_retries is 0 to 10: {self.rreq_retries} given")
        if self.timeout_buffer < 0 or not 0 <= self.jitter <= self.node_traversal_time:
            raise ValueError("timeout_buffer is not negative, jitter is between 0 and node_traversal_time")

    @property
    def net_traversal_time(self) -> float:
        return 2 * self.node_traversal_time * self.net_diameter

    @property
    def path_discovery_time(self) -> float:
        return 2 * self.net_traversal_time

    @property
    def my_route_timeout(self) -> float:
        return 2 * self.active_route_timeout

    @property
    def delete_period(self) -> float:
        return 5 * max(self.active_route_timeout, self.hello_interval)

    @property
    def blacklist_timeout(self) -> float:
        return max(1, self.rreq_retries) * self.net_traversal_time

    @property
    def next_hop_wait(self) -> float:
        return self.node_traversal_time + 0.01

    @property
    def silence(self) -> float:
        """Returns after how many seconds without a message a neighbour on a route in use counts as gone."""
        return self.allowed_hello_loss * self.hello_interval

    def ring_traversal_time(self, ttl: int) -> float:
        return 2 * self.node_traversal_time * (ttl + self.timeout_buffer)
