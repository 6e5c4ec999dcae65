"""Links as the planner sees them: how long they are down and up, what they carry and cost (section II-A)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Bytes of an event instance on a link, and of one request for instances of an interval."""

    event: float = 1000.0
    request: float = 50.0


@dataclass(frozen=True)
class Link:
    """A link between two nodes: down for ``edp`` seconds, up for ``eap``, and so on.

    ``edp``: expected disconnection period; ``eap``: expected active period; ``bandwidth``: bytes per second
    while it is up; ``latency``: seconds that a packet takes. ``cost``: of sending one event; None: the
    seconds that this takes, ``event size / bandwidth``. ``one_way``: only ``a`` can send.

        Link("n01", "n02", edp=300, eap=60, bandwidth=16_000)
    """

    a: str
    b: str
    edp: float
    eap: float
    bandwidth: float
    latency: float = 0.0
    cost: float | None = None
    one_way: bool = False

    def cost_factor(self, sizes: Sizes) -> float:
        return sizes.event / self.bandwidth if self.cost is None else self.cost

    @property
    def worst_delay(self) -> float:
        """DL: a packet waits for at most one disconnection, and travels."""
        return self.edp + self.latency
