"""Feeds the stream: writes a small file for each run to take in, which Spark's file source reads.

The name of such a file follows from the run and how far it has come. So one that is written again after a
crash is the same file, and the source takes it once. A Python data source would need no such files, but Spark
starts several Python processes for one.
"""

import json
from hashlib import sha256
from pathlib import Path

from orchestrator.analytics.streaming.looking import Looking
from orchestrator.analytics.streaming.offsets import VERSION, Arrival, Offset, beginning, between, following
from orchestrator.runs.files import read_object, write_atomic

SCHEMA = "version int, run string, ended boolean"
"""Of a line in such a file, for Spark."""


class Feed:
    """Looks at the runs of a folder, and feeds what is new. ``made_by``: see ``offsets.following``."""

    def __init__(self, root: Path, folder: Path, made_by: str) -> None:
        self.arrivals = folder / "arrivals"
        self.arrivals.mkdir(exist_ok=True)
        self._marks = folder / "marks.json"
        self._made_by = made_by
        self._look = Looking(root)
        self._offset: Offset = read_object(self._marks) or beginning()

    def __call__(self) -> int:
        """Feeds what is new since the last time, also that of an earlier process; returns how many runs."""
        seen = self._look()
        end = following(self._offset, seen, self._made_by, len(seen))
        arrived = between(self._offset, end)
        for each in arrived:
            write_atomic(self.arrivals / self._name(each, end), _line(each))
        if arrived:  # after the files: what is not noted is written again
            write_atomic(self._marks, json.dumps(end).encode())
            self._offset = end
        return len(arrived)

    def _name(self, arrival: Arrival, offset: Offset) -> str:
        mark = f"{VERSION} {self._made_by} {arrival.run} {offset['runs'][arrival.run]}"
        return f"{sha256(mark.encode()).hexdigest()[:32]}.json"


def _line(arrival: Arrival) -> bytes:
    return json.dumps({"version": VERSION, "run": arrival.run, "ended": arrival.ended}).encode() + b"\n"
