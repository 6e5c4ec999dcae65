"""Feeds tallies with the records of an agent while it writes them, and collects their samples.

A tally that raises an error is counted as a failed extension and not fed any more; the agent goes on.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from node_agent.agent.metrics import AGENT_METRIC_KINDS
from node_agent.extensions.errors import explain
from node_agent.extensions.failures import Failures
from node_agent.model.telemetry import Event
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import MetricKinds, Sample, Tally
from node_agent.telemetry.segment_log import SegmentLog

MOST_SAMPLES = 4096
"""Limit of the samples that an agent reports at once."""
MOST_SAMPLE_BYTES = 3 * 1024 * 1024
"""Limit of their size in a report: its owner reads no longer ones than 4 MB."""
WHAT = "tally of metrics"

Record = Callable[[Event], None]


class _Tags(dict[type[Event], str]):
    """The kind of record of each type of event; looked up once for each record, so it must be quick."""

    def __missing__(self, kind: type[Event]) -> str:
        tag = self[kind] = tag_of(kind)
        return tag


class _Tap(NamedTuple):
    app: str
    tally: Tally


class Taps:
    """The tallies of one agent: one for each application that has metrics, and one for the agent's own
    records under each name.
    """

    def __init__(self, log: SegmentLog, failures: Failures) -> None:
        self._log = log
        self._failures = failures
        self._tags = _Tags()
        self._taps: list[_Tap] = []

    def agents(self, app: str = "") -> Record:
        """Returns a function that records what the agent reports, itself or in the name of ``app``."""
        return self.recorder(app, AGENT_METRIC_KINDS)

    def recorder(self, app: str, kinds: MetricKinds | None) -> Record:
        """Returns a function that records what ``app`` reports, and feeds a tally of ``kinds`` with it. It
        raises LogError like the log's, and then feeds nothing.
        """
        tap = None if kinds is None else self._made(app, kinds)
        if tap is None:
            return self._log.recorder(app)
        write, tags, take = self._log.writer(app), self._tags, tap.tally.take

        def record(event: Event) -> None:
            nonlocal take
            t_ns = write(event)
            try:
                take(tags[type(event)], event, t_ns)
            except Exception as error:
                take = _ignore
                self._leave_out(tap, error)

        return record

    def samples(self) -> Iterator[Sample]:
        """Yields the present samples of all tallies, finite ones only, and at most ``MOST_SAMPLES``."""
        return islice(self._samples(), MOST_SAMPLES)

    def _samples(self) -> Iterator[Sample]:
        for tap in tuple(self._taps):
            try:
                found = list(islice(tap.tally.samples(), MOST_SAMPLES))
                named = [replace(sample, app=tap.app) if tap.app else sample for sample in found]
                finite = [sample for sample in named if isfinite(sample.value)]
            except Exception as error:
                self._leave_out(tap, error)
                continue
            yield from finite

    def _made(self, app: str, kinds: MetricKinds) -> _Tap | None:
        try:
            tap = _Tap(app, kinds.tally())
        except Exception as error:
            self._count(app, error)
            return None
        self._taps.append(tap)
        return tap

    def _leave_out(self, tap: _Tap, error: Exception) -> None:
        if tap in self._taps:
            self._taps.remove(tap)
            self._count(tap.app, error)

    def _count(self, app: str, error: Exception) -> None:
        self._failures.add(WHAT, app or "agent", "", explain(error), left_out=True)


def within_bounds(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yields the first samples that fit into a report."""
    left = MOST_SAMPLE_BYTES
    for sample in islice(samples, MOST_SAMPLES):
        left -= len(msgspec.json.encode(sample)) + 1
        if left < 0:
            return
        yield sample


def _ignore(kind: str, record: Any, t_ns: int) -> None:
    """Takes the place of a tally that failed."""
