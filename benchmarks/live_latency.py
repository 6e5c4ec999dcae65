"""Measures how long it takes from a record on a node to a changed pixel of the page in a browser.

A run of 25 moving nodes in namespaces, whose clock is the browser's too. The page notes when it has drawn
what it knows, and how many changes that are; a second reader takes the same changes in the same order. A
change (a route, a queue, a position) is shown when the page has drawn that many. Figures that are summed up
by the second (rates, latencies) are left out: they exist only when their second is over.
"""

import json
import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.shared import harness
from benchmarks.watching.processes import RunProcess, mobile_experiment, serving, write_experiment
from benchmarks.watching.watchers import browser_page

NODES, RATE = 25, 8.0
WARMUP_S, DURATION_S = 5.0, 30.0
END_S = 180.0
AT_ONCE = ("route", "queue", "position")
_NOTE_DRAWN = """() => {
  window.drawn = [];
  let last = -1;
  const look = () => {
    const stats = window.roveStats;
    if (stats.shownChanges > last) { last = stats.shownChanges; window.drawn.push([last, stats.shownAt]); }
    requestAnimationFrame(look);
  };
  look();
}"""


class ChangeReader(threading.Thread):
    """Collects the changes that are shown at once: the number of each, and its time."""

    def __init__(self, address: str, run: str) -> None:
        super().__init__(daemon=True)
        self._url = f"{address}api/runs/{run}/changes"
        self.changes: list[tuple[int, float]] = []
        self._count = 0

    def run(self) -> None:
        with suppress(OSError), urllib.request.urlopen(self._url, timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    self._take(json.loads(line[5:]))

    def _take(self, message: dict[str, Any]) -> None:
        for t, _, channel, *_ in message["changes"]:
            self._count += 1
            if channel in AT_ONCE:
                self.changes.append((self._count, t))


def zero_ns(directory: Path) -> int:
    """Returns the run's first moment: 0 s of its changes."""
    segments = directory.glob("nodes/*/segments/*-s000001.jsonl")
    return min(int(json.loads(segment.open().readline())["t_ns"]) for segment in segments)


def delays(changes: list[tuple[int, float]], drawn: list[tuple[int, float]], zero_s: float) -> list[float]:
    """Returns for each change how many seconds later it was on the screen."""
    found, place = [], 0
    for number, t in changes:
        if not drawn[0][0] < number <= drawn[-1][0]:
            continue
        while drawn[place][0] < number:
            place += 1
        found.append(drawn[place][1] / 1000 - zero_s - t)
    return found


def measure() -> harness.Figures:
    with TemporaryDirectory(prefix="rove-live-") as temporary:
        folder = Path(temporary)
        file = write_experiment(mobile_experiment(NODES, RATE, WARMUP_S, DURATION_S), folder)
        with serving(folder / "runs") as server:
            run = RunProcess(file, folder / "runs")
            try:
                directory = run.directory()
                run.wait_for("warm-up", END_S)
                reader = ChangeReader(server.address, directory.name)
                with browser_page(server.address, directory.name) as page:
                    reader.start()
                    page.evaluate(_NOTE_DRAWN)
                    page.wait_for_timeout((DURATION_S - 5.0) * 1000)
                    drawn = [(int(number), float(at)) for number, at in page.evaluate("window.drawn")]
                verdict = run.result(END_S)["verdict"]
            finally:
                run.end()
        late = sorted(delays(reader.changes, drawn, zero_ns(directory) / 1e9))
    print(f"{len(drawn)} drawn, {len(late)} changes, verdict {verdict}", file=sys.stderr)
    return {
        "benchmark": "live_latency",
        "seconds_p50": late[len(late) // 2],
        "seconds_p95": late[int(len(late) * 0.95)],
        "seconds_max": late[-1],
        "changes": len(late),
        "verdict": verdict,
    }


if __name__ == "__main__":
    harness.main("live_latency: from a record on a node to a changed pixel", measure)
