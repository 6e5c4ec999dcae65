"""The state of one node on the medium: its contention for the channel, and its last transmission."""

from typing import Any

from msgspec import Struct

from orchestrator.radio.channel import Channel

EVERYONE = -1
"""The destination of a broadcast."""


class Outgoing(Struct, frozen=True, gc=False):
    """A frame as the MAC sees it; ``size`` is that of the Ethernet frame."""

    destination: int
    size: int
    payload: Any


Overlap = tuple[int, int, int]
"""Another node's transmission that was on the air together with the frame in question: the node, when it
started and when it ended."""


class Station:
    __slots__ = (
        "acknowledged",
        "air_ns",
        "backoff",
        "bit",
        "broadcasts",
        "decoders",
        "end",
        "given_up",
        "handed_over",
        "head",
        "heard",
        "heard_nodes",
        "hearers",
        "index",
        "kind",
        "length",
        "link_acknowledged",
        "link_attempts",
        "link_given_up",
        "link_received",
        "link_timeouts",
        "ln_control",
        "ln_unicast",
        "locks",
        "matters_until",
        "overlaps",
        "peer",
        "power",
        "ready",
        "reserved",
        "response",
        "rivals",
        "start",
        "timeouts",
        "tries",
        "window",
    )

    def __init__(self, index: int, count: int, window: int) -> None:
        self.index = index
        self.bit = 1 << index

        # Contention. Counting starts at ``ready``; ``backoff`` slots are left from there.
        self.head: Outgoing | None = None
        self.ready = 0
        self.backoff = 0
        self.window = window
        self.tries = 0
        self.handed_over = False
        self.response = (0, index)

        # The last transmission, on the air or ended. ``locks``: the nodes whose receivers follow it.
        # ``reserved``: the end of the exchange; nodes that decode it stay silent until then.
        self.kind = 0
        self.peer = EVERYONE
        self.start = 0
        self.end = 0
        self.length = 0
        self.locks = 0
        self.overlaps: list[Overlap] | None = None
        self.reserved = 0
        self.matters_until = 0

        # Ground truth, by receiver and in total.
        self.link_attempts = [0] * count
        self.link_received = [0] * count
        self.link_acknowledged = [0] * count
        self.link_timeouts = [0] * count
        self.link_given_up = [0] * count
        self.acknowledged = 0
        self.air_ns = 0  # how long it has sent, answers included
        self.broadcasts = 0
        self.timeouts = 0
        self.given_up = 0

    def place(self, channel: Channel) -> None:
        index = self.index
        self.hearers = channel.hearers[index]
        self.decoders = channel.decoders[index]
        self.heard = channel.heard[index]
        self.heard_nodes = channel.heard_nodes[index]
        self.rivals = channel.rivals[index]
        self.power = channel.power_mw[index]
        self.ln_unicast = channel.ln_unicast[index]
        self.ln_control = channel.ln_control[index]
