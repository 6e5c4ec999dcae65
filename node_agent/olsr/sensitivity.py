"""The signal at which half of the full-size frames arrive: as the radio says, or learnt from own frames.

It is learnt by whole dB: how many transmissions were acknowledged. Where frames get lost although stronger
ones do not, the sensitivity is above; where nothing is known, whatever was heard may be used. Old counts
fade, so that what is avoided now is tried again.
"""

from math import floor

_FORGOTTEN = 0.99  # what is left of counts from one look at the radio to the next
_ENOUGH = 8.0  # transmissions that say something
_HALF = 0.5


class Sensitivity:
    def __init__(self) -> None:
        self.known: float | None = None
        """What the radio says."""
        self._weakest: float | None = None
        self._counts: dict[int, tuple[float, float]] = {}  # by dB: acknowledged, all transmissions

    @property
    def dbm(self) -> float | None:
        """Returns None as long as no signal was heard."""
        if self.known is not None or self._weakest is None:
            return self.known
        counts = sorted((signal, pair) for signal, pair in self._counts.items() if pair[1] >= _ENOUGH)
        if not counts:
            return self._weakest
        best = max(acknowledged / tried for _, (acknowledged, tried) in counts)
        least, acknowledged, tried = self._weakest, 0.0, 0.0
        for signal, (more_acknowledged, more_tried) in counts:
            acknowledged, tried = acknowledged + more_acknowledged, tried + more_tried
            if acknowledged / tried < _HALF * best:
                least = max(least, signal + 1.0)
        return least

    def heard(self, signal_dbm: float) -> None:
        if self._weakest is None or signal_dbm < self._weakest:
            self._weakest = signal_dbm

    def learn(self, signal_dbm: float, acknowledged: int, lost: int) -> None:
        """Counts transmissions to a neighbour with this signal."""
        if self.known is None and acknowledged + lost > 0:
            before = self._counts.get(floor(signal_dbm), (0.0, 0.0))
            counted = before[0] + acknowledged, before[1] + acknowledged + lost
            self._counts[floor(signal_dbm)] = counted

    def forget(self) -> None:
        """Lets old counts fade. Call it with each look at the radio."""
        if self._counts:
            self._counts = {
                signal: (acknowledged * _FORGOTTEN, tried * _FORGOTTEN)
                for signal, (acknowledged, tried) in self._counts.items()
                if tried >= 1.0
            }
