"""Estimates loss, delay and bandwidth of one link from what arrived and when, without I/O."""

from collections import deque
from statistics import median

from node_agent.linkstate.probe.messages import Estimate, Reply

WINDOW = 64
"""Packets over which loss is counted: the standard error of a delivery of 0.8 is 0.05."""
FEWEST = 8
"""With fewer packets there is no estimate."""
_SMOOTHING = 1 / 8
_PAIRS = 15
_ALL = (1 << WINDOW) - 1


class Arrivals:
    """Which of the last WINDOW numbered packets have arrived, counted from the first that did."""

    def __init__(self) -> None:
        self.newest = 0
        self._first = 0
        self._mask = 0
        """Bit i: packet ``newest − i`` has arrived. Numbers begin at 1."""

    def add(self, number: int) -> bool:
        """Returns whether the packet is new."""
        self._first = self._first or number
        ahead = number - self.newest
        if ahead > 0:
            self._mask = (self._mask << min(ahead, WINDOW) | 1) & _ALL
            self.newest = number
            return True
        bit = 1 << -ahead if -ahead < self.counted else 0
        fresh = bool(bit & ~self._mask)
        self._mask |= bit
        return fresh

    @property
    def counted(self) -> int:
        return min(WINDOW, self.newest - self._first + 1) if self.newest else 0

    @property
    def came(self) -> int:
        return self._mask.bit_count()

    @property
    def share(self) -> float:
        return self.came / self.counted if self.newest else 0.0


class Estimator:
    """Estimates the path to one peer and back from its replies."""

    def __init__(self) -> None:
        self.heard_ns: int | None = None
        self._replies = Arrivals()
        self._latest: Reply | None = None
        self._round_trip: float | None = None
        self._gaps: deque[int] = deque(maxlen=_PAIRS)

    def reply(self, reply: Reply, round_trip_ns: int, now_ns: int) -> bool:
        """Takes a reply. Returns whether it is new."""
        if not self._replies.add(reply.number):
            return False
        self.heard_ns = now_ns
        if self._latest is None or reply.newest >= self._latest.newest:
            self._latest = reply
        if not reply.in_pair:  # not for pairs: they are long, and the second packet waits for the first
            sample = round_trip_ns / 1e9
            smooth = self._round_trip
            self._round_trip = sample if smooth is None else smooth + _SMOOTHING * (sample - smooth)
        if reply.gap_ns is not None:
            self._gaps.append(reply.gap_ns)
        return True

    def estimate(self, pair_bytes: int) -> Estimate | None:
        """Returns the estimate. The latency is half the round trip: clocks of two nodes are not compared.

        Packets between the two of a pair increase their distance, a queue behind them decreases it; so the
        bandwidth is the median of the last pairs.
        """
        latest = self._latest
        if latest is None or latest.counted < FEWEST:
            return None
        trip = self._round_trip
        gap = median(self._gaps) if self._gaps else None
        return Estimate(
            latest.came / latest.counted,
            self._replies.share,
            trip / 2 if trip is not None else None,
            pair_bytes * 8e9 / gap if gap else None,
        )
