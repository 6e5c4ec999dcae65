"""Counts an AODV node's control messages by kind, and the packets it dropped."""

from dataclasses import asdict, dataclass, field
from typing import Literal

from node_agent.model.refusals import Refusals

PACKET_HEADERS = 28  # IP and UDP; every message is a packet of its own
KINDS = ("RREQ", "RREP", "HELLO", "RERR", "RREP_ACK", "packet")

Reason = Literal["no_route", "too_old", "buffer_full", "unroutable"]
"""Why a packet was dropped. ``unroutable``: another node sent it here, but there is no route here."""


@dataclass(slots=True)
class KindCounters:
    """``sent``: this node's own messages; ``forwarded``: those it
    passed on. Bytes exclude IP and UDP headers."""

    sent: int = 0
    sent_bytes: int = 0
    forwarded: int = 0
    forwarded_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


@dataclass
class Counters:
    """The kind ``packet`` counts the IP and UDP headers of all messages."""

    kinds: dict[str, KindCounters] = field(default_factory=lambda: {kind: KindCounters() for kind in KINDS})
    drops: dict[Reason, int] = field(
        default_factory=lambda: {"no_route": 0, "too_old": 0, "buffer_full": 0, "unroutable": 0}
    )
    refusals: Refusals = field(default_factory=Refusals)
    suppressed: int = 0
    """RERR messages that the rate limit suppressed."""

    def sent(self, kind: str, size: int, forwarded: bool) -> None:
        for name, length in ((kind, size), ("packet", PACKET_HEADERS)):
            counted = self.kinds[name]
            if forwarded:
                counted.forwarded += 1
                counted.forwarded_bytes += length
            else:
                counted.sent += 1
                counted.sent_bytes += length

    def received(self, kind: str, size: int) -> None:
        messages, packets = self.kinds[kind], self.kinds["packet"]
        messages.received += 1
        messages.received_bytes += size
        packets.received += 1
        packets.received_bytes += PACKET_HEADERS

    def seal(self, size: int) -> None:
        """Counts the seal of a sent message."""
        counted = self.kinds.setdefault("SEAL", KindCounters())
        counted.sent += 1
        counted.sent_bytes += size

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Returns the counters as all routing daemons report them, for telemetry and query interfaces."""
        return {kind: asdict(counted) for kind, counted in self.kinds.items()}
