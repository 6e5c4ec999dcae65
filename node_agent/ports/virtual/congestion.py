"""Limits how fast a stream sends: round-trip times (RFC 6298) and a NewReno window (RFC 5681, 6582, 3042)."""

from node_agent.ports.virtual.segment import StreamConfig


class RetransmissionTimeout:
    """Computes the smoothed round-trip time and from it the retransmission timeout."""

    def __init__(self, config: StreamConfig) -> None:
        self._config = config
        self._smoothed_ns: int | None = None
        self._variation_ns = 0
        self._base_ns = config.initial_rto_ns
        self._backoff = 0

    @property
    def current_ns(self) -> int:
        return min(self._base_ns << self._backoff, self._config.max_rto_ns)

    def sample(self, round_trip_ns: int) -> None:
        if self._smoothed_ns is None:
            self._smoothed_ns = round_trip_ns
            self._variation_ns = round_trip_ns // 2
        else:
            self._variation_ns += (abs(self._smoothed_ns - round_trip_ns) - self._variation_ns) // 4
            self._smoothed_ns += (round_trip_ns - self._smoothed_ns) // 8
        self._base_ns = max(self._config.min_rto_ns, self._smoothed_ns + 4 * self._variation_ns)
        self._backoff = 0

    def back_off(self) -> None:
        if self.current_ns < self._config.max_rto_ns:
            self._backoff += 1


class CongestionWindow:
    """Computes how many bytes may be in flight, and says when to retransmit at once."""

    DUPLICATES = 3

    def __init__(self, config: StreamConfig) -> None:
        self._mss = config.mss
        self._bytes = config.initial_window * config.mss
        self._threshold: int | None = None
        self._duplicates = 0
        self._recover = 0
        self.recovering = False

    @property
    def size(self) -> int:
        if self.recovering:
            return self._bytes
        # Limited transmit: each of the first duplicates shows that a segment has left the network.
        return self._bytes + min(self._duplicates, self.DUPLICATES - 1) * self._mss

    def acknowledged(self, count: int, up_to: int, flight_before: int) -> bool:
        """Counts ``count`` newly acknowledged bytes. Returns True if the next
        segment is known to be lost (partial ack)."""
        self._duplicates = 0
        if self.recovering:
            if up_to < self._recover:
                self._bytes = max(self._bytes - count, 0) + self._mss
                return True
            self.recovering = False
            flight = flight_before - count
            self._bytes = min(self._threshold or self._bytes, max(flight, self._mss) + self._mss)
        elif flight_before + self._mss > self._bytes:  # an unused window says nothing about the path
            if self._threshold is None or self._bytes < self._threshold:
                self._bytes += min(count, self._mss)
            else:
                self._bytes += max(self._mss * self._mss // self._bytes, 1)
        return False

    def duplicate(self, acknowledged: int, sent: int) -> bool:
        """Counts a duplicate acknowledgement. Returns True if the missing segment must be sent again now."""
        if self.recovering:
            self._bytes += self._mss
            return False
        self._duplicates += 1
        # Duplicates of data from before the last loss are caused by our own retransmissions.
        if self._duplicates != self.DUPLICATES or acknowledged < self._recover:
            return False
        self.recovering = True
        self._recover = sent
        self._threshold = max((sent - acknowledged) // 2, 2 * self._mss)
        self._bytes = self._threshold + self.DUPLICATES * self._mss
        return True

    def timed_out(self, flight: int, sent: int, repeated: bool) -> None:
        """Starts over with one segment. ``repeated``: the same data timed out before."""
        if not repeated:
            self._threshold = max(flight // 2, 2 * self._mss)
        self._bytes = self._mss
        self._recover = sent
        self._duplicates = 0
        self.recovering = False
