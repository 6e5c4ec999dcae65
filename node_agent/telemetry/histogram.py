"""Counts durations in buckets, for metrics of the kind histogram."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from node_agent.telemetry.metrics import Exemplar, Sample

DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper edges in seconds, from one hop of a radio to a partition of a minute."""
EXEMPLAR_NS = 10_000_000_000
"""The exemplar is the slowest observation of so long before the last one."""
SLOT_NS = 100_000_000
"""Of observations closer than this, only the slowest is kept: so few are held, however many come."""
MOST_HELD = 2 * EXEMPLAR_NS // SLOT_NS
Named = tuple[str, int]
"""What an observation is looked up by: the name of a stream, and a number in it."""


class DurationHistogram:
    """Of the ten seconds before the last observation it knows the slowest, to within a tenth of a second."""

    __slots__ = ("_edges_ns", "_slowest", "_sum_ns", "counts")

    def __init__(self, edges: Sequence[float] = DURATION_BUCKETS) -> None:
        self._edges_ns = [round(edge * 1e9) for edge in edges]
        self.counts = [0] * (len(edges) + 1)
        self._sum_ns = 0
        self._slowest: deque[tuple[int, int, Named]] = deque(maxlen=MOST_HELD)
        """Duration, time and name: each later than the one before it, and faster."""

    @property
    def slowest(self) -> Named:
        return self._slowest[0][2] if self._slowest else ("", 0)

    def add(self, duration_ns: int, named: Named, t_ns: int) -> None:
        """Takes an observation at ``t_ns``. Less than 0, which two clocks can give, counts as 0."""
        if duration_ns < 0:
            duration_ns = 0
        self.counts[bisect_left(self._edges_ns, duration_ns)] += 1
        self._sum_ns += duration_ns
        slowest = self._slowest
        while slowest and slowest[-1][0] <= duration_ns:
            slowest.pop()
        while slowest and not t_ns - EXEMPLAR_NS <= slowest[0][1] <= t_ns:
            slowest.popleft()  # too long ago, or a clock was set back
        if not slowest or t_ns - slowest[-1][1] >= SLOT_NS:
            slowest.append((duration_ns, t_ns, named))

    def add_all(self, duration_ns: int, shorter_ns: Sequence[int], first: Named, t_ns: int) -> None:
        """Takes neighbours of which each is shorter than ``duration_ns`` by its entry in ``shorter_ns``.

        Those of one record usually fall into one bucket: then it costs little more than one.
        """
        least, most = min(shorter_ns), max(shorter_ns)
        fastest = duration_ns - most
        place = bisect_left(self._edges_ns, fastest)
        name, number = first
        if fastest < 0 or place != bisect_left(self._edges_ns, duration_ns - least):
            for offset, shorter in enumerate(shorter_ns):
                self.add(duration_ns - shorter, (name, number + offset), t_ns)
            return
        count = len(shorter_ns)
        self.counts[place] += count - 1
        self._sum_ns += (count - 1) * duration_ns - sum(shorter_ns) + least
        self.add(duration_ns - least, (name, number + shorter_ns.index(least)), t_ns)

    def add_equal(self, duration_ns: int, count: int) -> None:
        """Takes ``count`` observations that nobody can look up."""
        duration_ns = max(duration_ns, 0)
        self.counts[bisect_left(self._edges_ns, duration_ns)] += count
        self._sum_ns += duration_ns * count

    def sample(self, name: str, labels: tuple[str, ...], slowest: dict[str, str] | None = None) -> Sample:
        """``slowest``: the labels of the exemplar; without them the sample has none."""
        exemplar = None
        if slowest is not None and self._slowest:
            duration_ns, at_ns, _ = self._slowest[0]
            exemplar = Exemplar(slowest, duration_ns / 1e9, at_ns)
        return Sample(name, labels, self._sum_ns / 1e9, counts=tuple(self.counts), exemplar=exemplar)
