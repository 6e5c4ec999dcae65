"""Moves the nodes of a session along their ways, on the clock of CORE's host, and measures how late.

Uploaded next to the driver: the standard library alone, and a Python that may be 3.10.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable

LEAST_MOVE = 0.01
"""Pixels: less is not worth a call."""
JOIN_S = 10.0
Path = list[list[float]]
"""Points of seconds, x and y."""


class Motion(threading.Thread):
    """A round that takes long delays the next."""

    def __init__(
        self,
        place: Callable[[str, float, float], None],
        places: dict[str, tuple[float, float]],
        paths: dict[str, Path],
        period: float,
        explain: Callable[[Exception], str],
    ) -> None:
        """``places``: where the nodes are. ``explain``: why ``place`` failed; empty if it should not have."""
        super().__init__(name="motion", daemon=True)
        self._place = place
        self._placed = dict(places)
        self._paths = paths
        self._period = period
        self._explain = explain
        self.begun_ns = time.time_ns()
        self.failure = ""
        self.rounds = 0
        self.late_rounds = 0
        """Those that began more than a period late."""
        self.late_s = 0.0
        """The longest between the moments at which two rounds began, beyond the period."""
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._move()
        except Exception as error:
            why = self._explain(error)
            if not why:
                raise
            self.failure = f"nodes move no more: {why}"

    def _move(self) -> None:
        times = {node: [point[0] for point in path] for node, path in self._paths.items()}
        last = max(path[-1][0] for path in self._paths.values())
        begun = time.monotonic()
        due = begun
        while not self._ended.wait(max(due - time.monotonic(), 0.0)):
            now = time.monotonic()
            self.late_s = max(self.late_s, now - due)
            self.late_rounds += now - due > self._period
            due = max(due + self._period, now)
            elapsed = now - begun
            for node, path in self._paths.items():
                x, y = position(path, times[node], elapsed)
                placed = self._placed[node]
                if max(abs(x - placed[0]), abs(y - placed[1])) >= LEAST_MOVE:
                    self._place(node, x, y)
                    self._placed[node] = x, y
            self.rounds += 1
            if elapsed > last:
                return

    def stop(self) -> None:
        self._ended.set()
        self.join(JOIN_S)


def position(path: Path, times: list[float], t: float) -> tuple[float, float]:
    """Straight between the points of a way; at its first before it, at its last after it."""
    after = bisect_right(times, t)
    if after == 0 or after == len(path):
        _, x, y = path[0 if after == 0 else -1]
        return x, y
    (t0, x0, y0), (t1, x1, y1) = path[after - 1], path[after]
    share = (t - t0) / (t1 - t0)
    return x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
