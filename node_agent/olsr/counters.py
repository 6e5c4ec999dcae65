"""Counts a daemon's sent, forwarded and received messages by kind."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from node_agent.model.refusals import Refusals
from node_agent.olsr import greeting, sealed, wire

PACKET_OVERHEAD = wire.PACKET_HEADER_SIZE + 28  # with UDP and IP headers

_NAMES = {
    wire.HELLO: "HELLO",
    wire.TC: "TC",
    wire.MID: "MID",
    wire.HNA: "HNA",
    wire.LQ_HELLO: "LQ_HELLO",
    wire.LQ_TC: "LQ_TC",
    sealed.SEALED: "SEAL",
    greeting.GREETING: "GREETING",
}

Tally = Mapping[str, tuple[int, int]]  # kind → messages, bytes


class Traffic:
    __slots__ = (
        "forwarded",
        "forwarded_bytes",
        "received",
        "received_bytes",
        "sent",
        "sent_bytes",
    )

    def __init__(self) -> None:
        self.sent = self.sent_bytes = 0
        self.forwarded = self.forwarded_bytes = 0
        self.received = self.received_bytes = 0


class Counters:
    """``kinds`` counts messages by their size field; "packet" counts the headers around them."""

    def __init__(self) -> None:
        self.kinds = defaultdict[str, Traffic](Traffic)
        self.refusals = Refusals()
        self.dropped = 0  # messages to forward that did not fit

    def receive(self, tallied: Tally) -> None:
        for kind, (messages, size) in tallied.items():
            traffic = self.kinds[kind]
            traffic.received += messages
            traffic.received_bytes += size

    def send(self, messages: Iterable[wire.Message], own: int) -> None:
        packet = self.kinds["packet"]
        packet.sent += 1
        packet.sent_bytes += PACKET_OVERHEAD
        for message in messages:
            traffic = self.kinds[_NAMES.get(message.kind, "other")]
            size = wire.MESSAGE_HEADER_SIZE + len(message.body)
            if message.originator == own:
                traffic.sent += 1
                traffic.sent_bytes += size
            else:
                traffic.forwarded += 1
                traffic.forwarded_bytes += size

    def seal(self) -> None:
        """Counts the seal of a sent packet."""
        traffic = self.kinds[_NAMES[sealed.SEALED]]
        traffic.sent += 1
        traffic.sent_bytes += sealed.OVERHEAD

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {
            kind: {field: getattr(traffic, field) for field in Traffic.__slots__}
            for kind, traffic in sorted(self.kinds.items())
        }


def tally(messages: Iterable[wire.Message]) -> Tally:
    """Returns what one received packet adds to the counters."""
    sums: dict[str, tuple[int, int]] = {"packet": (1, PACKET_OVERHEAD)}
    for message in messages:
        kind = _NAMES.get(message.kind, "other")
        count, size = sums.get(kind, (0, 0))
        sums[kind] = (count + 1, size + wire.MESSAGE_HEADER_SIZE + len(message.body))
    return sums
