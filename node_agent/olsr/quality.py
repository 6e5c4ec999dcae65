"""Link quality: how well a link receives, and what it costs.

``EtxFf`` equals olsrd's etx_ff to the digit (packets counted over a window of 32 s, fixed-point ratio),
``EtxFloat`` its etx_float (exponential mean over HELLOs); ``Unmeasured`` treats every link as perfect. Our
own metric is in ``fast``.
Qualities are bytes (255 = all received), costs integers in units of 1/1024, so sums and ties are exact.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

from node_agent.olsr import wire
from node_agent.olsr.config import Quality
from node_agent.olsr.fast import fast

SCALE = 1024
BROKEN = 1 << 22

_USEFUL = 25  # a direction that delivers less than a tenth is no link
_WINDOW = 32
_FIRST_WINDOW = 4
_INITIAL_TOTAL = 3  # a new link starts as if three packets a second had been lost
_LARGEST_GAP = 256  # a larger jump of the packet counter is a restart, not loss
_AGING, _QUICK_AGING, _QUICK_STEPS = 0.05, 0.25, 12


class Meter(Protocol):
    """Measures one link. ``quality`` is the last measurement, 0..255."""

    quality: int

    def packet(self, seqno: int) -> None: ...

    def hello(self) -> None: ...

    def lost(self) -> None:
        """Counts an overdue HELLO."""
        ...

    def tick(self, hello_ms: int) -> None:
        """Ends a second of measurement. The neighbour says it sends a HELLO every ``hello_ms``."""
        ...

    def differs(self, announced: int) -> bool:
        """Says whether ``quality`` differs enough from what was announced to others."""
        ...


class EtxFf:
    __slots__ = (
        "_last",
        "_missed",
        "_received",
        "_slot",
        "_sum_received",
        "_sum_total",
        "_total",
        "_window",
        "quality",
    )

    def __init__(self, seqno: int) -> None:
        """``seqno``: the packet that revealed the link; like olsrd, it is not counted."""
        self.quality = 0
        self._last = seqno
        self._missed = 0
        self._received = [0] * _WINDOW
        self._total = [_INITIAL_TOTAL] * _WINDOW
        self._window = _FIRST_WINDOW
        self._slot = 0
        self._sum_received = 0
        self._sum_total = _INITIAL_TOTAL * _FIRST_WINDOW

    def packet(self, seqno: int) -> None:
        gap = (seqno - self._last) & 0xFFFF
        if gap == 0:
            return
        if gap > _LARGEST_GAP:
            gap = 1
        self._last = seqno
        self._missed = 0
        self._received[self._slot] += 1
        self._total[self._slot] += gap
        self._sum_received += 1
        self._sum_total += gap

    def hello(self) -> None:
        pass

    def lost(self) -> None:
        self._missed += 1

    def tick(self, hello_ms: int) -> None:
        if self._window < _WINDOW:
            self._sum_received += self._received[self._window]
            self._sum_total += self._total[self._window]
            self._window += 1
        received, total = self._sum_received, self._sum_total
        if self._missed > 1:
            received = max(0, received - received * self._missed * hello_ms // 1000 // _WINDOW)
        # The ratio is cut to ten bits before it is scaled, as captured values of olsrd show.
        self.quality = min(255, received * 1024 // total * 255 >> 10) if total else 0
        self._slot = slot = (self._slot + 1) % _WINDOW
        self._sum_received -= self._received[slot]
        self._sum_total -= self._total[slot]
        self._received[slot] = self._total[slot] = 0

    def differs(self, announced: int) -> bool:
        return is_relevant(announced, self.quality)


class EtxFloat:
    __slots__ = ("_ratio", "_steps", "quality")

    def __init__(self, seqno: int) -> None:
        self.quality = 0
        self._ratio = 0.0
        self._steps = 0

    def packet(self, seqno: int) -> None:
        pass

    def hello(self) -> None:
        self._age(1.0)

    def lost(self) -> None:
        self._age(0.0)

    def tick(self, hello_ms: int) -> None:
        pass

    def differs(self, announced: int) -> bool:
        return announced != self.quality

    def _age(self, sample: float) -> None:
        self._steps += 1
        weight = _QUICK_AGING if self._steps <= _QUICK_STEPS else _AGING
        self._ratio += (sample - self._ratio) * weight
        self.quality = int(self._ratio * 255 + 0.5)


class Unmeasured:
    __slots__ = ("quality",)

    def __init__(self, seqno: int) -> None:
        self.quality = 255

    def packet(self, seqno: int) -> None:
        pass

    def hello(self) -> None:
        pass

    def lost(self) -> None:
        pass

    def tick(self, hello_ms: int) -> None:
        pass

    def differs(self, announced: int) -> bool:
        return announced != self.quality


class Metric(NamedTuple):
    """A method of measuring links, and its messages."""

    meter: Callable[[int], Meter]
    measured: bool  # messages carry qualities
    hello_kind: int
    tc_kind: int
    quick: bool = False  # meters are ``Fast``: they ask the radio, and the node announces itself

    def pack(self, quality: int, neighbour_quality: int) -> bytes:
        return bytes((quality, neighbour_quality, 0, 0)) if self.measured else b""

    def unpack(self, packed: bytes) -> tuple[int, int]:
        return (packed[0], packed[1]) if self.measured else (255, 255)


_METRICS = {
    "etx_ff": Metric(EtxFf, True, wire.LQ_HELLO, wire.LQ_TC),
    "etx_float": Metric(EtxFloat, True, wire.LQ_HELLO, wire.LQ_TC),
    "fast": Metric(fast(EtxFf), True, wire.LQ_HELLO, wire.LQ_TC, quick=True),
    "hops": Metric(Unmeasured, False, wire.HELLO, wire.TC),
}


def metric(name: Quality) -> Metric:
    return _METRICS[name]


def settling_s(name: Quality, hello_s: float) -> float:
    """Returns how long after its first packet the quality of a lossless link is near 1, in seconds."""
    match name:
        case "etx_ff":  # until the window has no second left from before the link
            return float(_WINDOW)
        case "etx_float":  # 1 - 0.75 ** 12 = 97 %
            return _QUICK_STEPS * hello_s
        case "fast" | "hops":  # believed at once
            return 0.0


@cache  # of two bytes
def cost(quality: int, neighbour_quality: int) -> int:
    """Returns the ETX of a link in units of 1/1024; BROKEN if a direction delivers almost nothing."""
    if quality < _USEFUL or neighbour_quality < _USEFUL:
        return BROKEN
    return 255 * 255 * SCALE // (quality * neighbour_quality)


def is_relevant(old: int, new: int) -> bool:
    """Says whether a change should be announced: if it is more than a tenth, or the link became perfect."""
    return new != old and (new == 255 or abs(new - old) * 10 > old)
