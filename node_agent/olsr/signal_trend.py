"""Follows the signal of one neighbour and predicts it a little ahead, by a straight line through recent
samples.
"""

from collections import deque

_WINDOW_S = 3.0
_MOST = 16
_SHORTEST_S = 0.4  # samples that lie closer together say nothing about a trend
_MOST_AHEAD_DB = 4.0


class SignalTrend:
    __slots__ = ("_samples", "_slope")

    def __init__(self) -> None:
        self._samples = deque[tuple[float, float]](maxlen=_MOST)  # seconds, dBm
        self._slope = 0.0

    def add(self, at_s: float, dbm: float) -> None:
        samples = self._samples
        samples.append((at_s, dbm))
        while samples[0][0] < at_s - _WINDOW_S:
            samples.popleft()
        self._slope = self._slope_now()

    @property
    def known(self) -> bool:
        """Says whether there is a sample."""
        return bool(self._samples)

    def predicted(self, at_s: float) -> float:
        """Returns the signal to expect at a time after the last sample. There must be a sample."""
        samples = self._samples
        count = len(samples)
        middle_s = sum([each[0] for each in samples]) / count
        middle_dbm = sum([each[1] for each in samples]) / count
        ahead = middle_dbm + self._slope * (at_s - middle_s)
        last = samples[-1][1]
        return min(max(ahead, last - _MOST_AHEAD_DB), last + _MOST_AHEAD_DB)

    def _slope_now(self) -> float:
        """Returns dB a second by least squares, drawn towards 0 as far as the samples scatter."""
        samples = self._samples
        count = len(samples)
        if samples[-1][0] - samples[0][0] < _SHORTEST_S:
            return 0.0
        middle_s = sum([each[0] for each in samples]) / count
        middle_dbm = sum([each[1] for each in samples]) / count
        spread = scatter = together = 0.0
        for at_s, dbm in samples:
            off_s, off_dbm = at_s - middle_s, dbm - middle_dbm
            spread += off_s * off_s
            together += off_s * off_dbm
            scatter += off_dbm * off_dbm
        slope = together / spread
        if count < 3 or not slope:
            return slope
        residual = max(0.0, scatter - slope * together) / (count - 2)
        return slope * slope * slope / (slope * slope + residual / spread)
