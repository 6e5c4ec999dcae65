"""A link metric of our own: quick to believe a new link, quick to doubt a dying one.

Where the radio tells the signal of its neighbours, a link's quality follows from that: the share of full-size
frames that will arrive a little later, if the signal goes on as it does. HELLOs are short and arrive where
data does not, they come too rarely to notice a change soon, and a busy channel destroys them; a signal has
none of these faults. Frames that the radio gave up, and silence, reduce the quality at once.

Where the radio tells no signals, the share of the last HELLOs counts. On links to nodes that do not announce
this metric, both ends count as olsrd does (etx_ff).
"""

from collections.abc import Callable
from math import exp, sqrt
from typing import Protocol

from node_agent.model.link_layer import LinkReading
from node_agent.olsr.sensitivity import Sensitivity
from node_agent.olsr.signal_trend import SignalTrend

AHEAD_S = 1.5
"""How far signals are predicted: about as long as news of a link take to the nodes that use it."""
WIDTH_DB = 0.4
"""How steeply delivery falls with the signal."""
_DOUBT = 0.7  # what each frame that was given up leaves of the quality
_MOST_DOUBTS = 6
_SILENT = 2.0  # HELLO intervals without a frame after which a link is doubted …
_GONE = 4.0  # … and given up
_HELLOS = 8


class Fallback(Protocol):
    quality: int

    def packet(self, seqno: int) -> None: ...

    def lost(self) -> None: ...

    def tick(self, hello_ms: int) -> None: ...

    def differs(self, announced: int) -> bool: ...


class Fast:
    __slots__ = (
        "_doubts",
        "_fallback",
        "_heard",
        "_heard_s",
        "_hellos",
        "_last",
        "_trend",
        "quality",
        "spoken",
    )

    def __init__(self, fallback: Fallback) -> None:
        self.quality = 0
        self.spoken = False
        """Whether the neighbour announces this metric."""
        self._fallback = fallback
        self._trend = SignalTrend()
        self._last: LinkReading | None = None
        self._doubts = 0
        self._hellos = ""
        self._heard = False  # since the last look at the radio
        self._heard_s = 0.0

    def packet(self, seqno: int) -> None:
        self._fallback.packet(seqno)

    def hello(self) -> None:
        self._count("+")
        self._heard = True
        self._doubts = max(0, self._doubts - 1)

    def lost(self) -> None:
        self._fallback.lost()
        self._count("-")

    def tick(self, hello_ms: int) -> None:
        self._fallback.tick(hello_ms)
        if not self.spoken:
            self.quality = self._fallback.quality

    def unspoken(self) -> None:
        """Counts as olsrd does from now on."""
        self.spoken = False
        self.quality = self._fallback.quality

    def differs(self, announced: int) -> bool:
        if not self.spoken:
            return self._fallback.differs(announced)
        return announced != self.quality

    def observe(
        self, reading: LinkReading | None, sensitivity: Sensitivity, hello_s: float, now_s: float
    ) -> bool:
        """Takes what the radio knows of the link now; None: nothing. ``hello_s``: the neighbour's interval.
        ``sensitivity`` learns from it.

        Returns whether a frame was acknowledged since the last time: the link works both ways.
        """
        acknowledged = False
        last, self._last = self._last, reading
        if reading is not None:
            if reading.signal_dbm is not None and (last is None or reading.received != last.received):
                self._trend.add(now_s - min(reading.age_s, hello_s), reading.signal_dbm)
                sensitivity.heard(reading.signal_dbm)
                self._heard = True
            if last is not None:
                answered = max(0, reading.acknowledged - last.acknowledged)
                acknowledged = answered > 0
                if reading.signal_dbm is not None:
                    sensitivity.learn(reading.signal_dbm, answered, max(0, reading.retries - last.retries))
                if acknowledged:
                    self._doubts = 0
                elif reading.failed > last.failed:
                    self._doubts = min(_MOST_DOUBTS, self._doubts + reading.failed - last.failed)
        if self._heard:
            self._heard, self._heard_s = False, now_s
        if self.spoken:
            share = self._share(sensitivity.dbm, hello_s, now_s)
            # ETX multiplies both directions; data goes one way, and only a short ACK comes back.
            self.quality = round(255 * sqrt(share))
        return acknowledged

    def _share(self, sensitivity_dbm: float | None, hello_s: float, now_s: float) -> float:
        """Returns the share of full-size frames that are expected to arrive."""
        if sensitivity_dbm is None or not self._trend.known:
            share = (self._hellos.count("+") + 1) / (len(self._hellos) + 1)
        else:
            share = delivery(self._trend.predicted(now_s + AHEAD_S) - sensitivity_dbm)
            silent = (now_s - self._heard_s) / hello_s
            if silent > _SILENT:
                share *= max(0.0, 1 - (silent - _SILENT) / (_GONE - _SILENT))
        return share * _DOUBT**self._doubts

    def _count(self, outcome: str) -> None:
        self._hellos = (self._hellos + outcome)[-_HELLOS:]


def delivery(margin_db: float) -> float:
    """Returns the share of full-size frames that arrive so far above the sensitivity."""
    return 1 / (1 + exp(min(60.0, -margin_db / WIDTH_DB)))


def fast(olsrd: Callable[[int], Fallback]) -> Callable[[int], Fast]:
    """Returns how to make a meter that counts like ``olsrd`` where the neighbour does."""
    return lambda seqno: Fast(olsrd(seqno))
