"""Moves the nodes of a session along their paths, on the clock of CORE's host, and measures the lateness.

Uploaded next to the driver: it uses the standard library alone, and Python may be 3.10.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable

LEAST_MOVE = 0.01
"""Pixels; a shorter move is not worth a call."""
JOIN_S = 10.0
Path = list[list[float]]
"""Points: seconds, x, y."""


class Motion(threading.Thread):
    """Moves all nodes once a round; a slow round delays the next."""

    def __init__(
        self,
        place: Callable[[str, float, float], None],
        places: dict[str, tuple[float, float]],
        paths: dict[str, Path],
        period: float,
        explain: Callable[[Exception], str],
    ) -> None:
        """``places``: the nodes' current positions. ``explain``: why
        ``place`` failed; empty for an unexpected error."""
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
        """Rounds that began more than a period late."""
        self.late_s = 0.0
        """The largest delay of a round's begin."""
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
    """Interpolates between the points of a path; before the first and after the last it stays there."""
    after = bisect_right(times, t)
    if after == 0 or after == len(path):
        _, x, y = path[0 if after == 0 else -1]
        return x, y
    (t0, x0, y0), (t1, x1, y1) = path[after - 1], path[after]
    share = (t - t0) / (t1 - t0)
    return x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
