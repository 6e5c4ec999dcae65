"""Writes the records of a run as OpenMetrics with times, for `promtool tsdb create-blocks-from openmetrics`.

The believed records go through the same tallies that agents feed while they run, so the back-fill has the
values that scrapes would have found, also for times when a node could not be reached. Each series has a
sample for every round of records that an application writes once a sample period, but at most one a second,
and one at the end. What a gauge's own records state is always there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from node_agent.apps.records import record_format
from node_agent.telemetry.metrics import MetricKind, Sample
from node_agent.telemetry.segments import inspect
from orchestrator.clocks.correction import ahead_ns
from orchestrator.live.facts import RunFacts
from orchestrator.live.metrics import Declared, metrics
from orchestrator.live.prometheus.checking import MOST_RUN_SERIES, MOST_SERIES, checked
from orchestrator.live.prometheus.exposition import labels_of
from orchestrator.live.prometheus.rounds import Boots
from orchestrator.live.prometheus.run_gauges import RunGauges
from orchestrator.live.prometheus.series_store import Series, SeriesStore
from orchestrator.live.prometheus.targets import RunTarget, node_labels
from orchestrator.live.run import LiveRun
from orchestrator.runs.run_directory import RunDirectory

JOB = "rove-records"
"""Not the job of scrapes: a scrape's time is a little older than its values. In one series with those of the
records, counters would seem to fall."""
RUN_PERIOD_S = 1.0
MS = 1_000_000
_LONGEST_VIRTUAL_NS = 30 * 24 * 3600 * 10**9

LEAST_BYTES = 64 * 1024 * 1024
BYTES_PER_S = 256 * 1024
MOST_BYTES = 1024 * 1024 * 1024
"""The text of one node has at most ``LEAST_BYTES`` and ``BYTES_PER_S`` for each second of the run, and never
more than ``MOST_BYTES``."""
_REFUSED_BYTES = 64
"""What a sample counts that is only looked at."""


class RunRecords(NamedTuple):
    """``offset_ns`` is added to times: that of the run's start, for a run in virtual time."""

    directory: RunDirectory
    facts: RunFacts
    target: RunTarget
    offset_ns: int = 0


class Written(NamedTuple):
    """``left_out``: samples that have an impossible time, or that the list of metrics does not have.
    ``cut``: rounds of samples beyond what a node may have, of the nodes in ``cut_nodes``.
    """

    series: int
    samples: int
    left_out: int
    cut: int = 0
    cut_nodes: tuple[str, ...] = ()


def write(runs: Iterable[RunRecords], output: BinaryIO, job: str = JOB) -> Written:
    """Reads all records of the runs and writes the text. Raises OSError."""
    registry = metrics()
    with TemporaryFile() as spill:
        backfill = _Backfill(registry, SeriesStore(spill), job)
        for run in runs:
            backfill.read(run)
        for line in backfill.lines():
            output.write(line)
    nodes = tuple(sorted(backfill.cut))
    return Written(len(backfill.last_ms), backfill.written, backfill.left_out, backfill.cut.total(), nodes)


class _Backfill:
    def __init__(self, registry: Mapping[str, Declared], store: SeriesStore, job: str) -> None:
        self.registry = registry
        self._store = store
        self.job = job
        self.last_ms: dict[Series, int] = {}
        self.written = 0
        self.left_out = 0
        self.cut: Counter[str] = Counter()

    def read(self, run: RunRecords) -> None:
        format, before = record_format(), self.written + self.left_out
        for node in run.facts.nodes:
            boots = Boots(run.facts, _Of(self, run, node))
            place = run.directory.segments(node)
            inspect(place, run.facts.writers.get(node), 0, boots.take, format)
            boots.end()
        if self.written + self.left_out > before:  # else the run failed before its nodes recorded anything
            self._read_run(run)

    def _read_run(self, run: RunRecords) -> None:
        """Adds what the orchestrator knew of the run, every few seconds of its time."""
        live, gauges = LiveRun(run.directory), RunGauges(run.facts)
        output = _Of(self, run, "")
        due = 0.0
        try:
            while not live.ended:
                changes = live.poll()
                if not changes and live.caught_up:
                    break  # it goes on: the rest is not there yet
                for change in changes:
                    if change.t >= due and live.zero_ns is not None:
                        output.sample(gauges.samples(), live.zero_ns + round(due * 1e9))
                        due = change.t - change.t % RUN_PERIOD_S + RUN_PERIOD_S
                    gauges.take((change,))
            if live.zero_ns is not None:
                output.sample(gauges.samples(), live.zero_ns + round(live.now * 1e9))
        finally:
            live.close()

    def lines(self) -> Iterator[bytes]:
        families = self._store.families()
        for name, declared in self.registry.items():
            if name in families:
                metric, family = declared.metric, declared.family
                yield f"# HELP {family} {_escaped(metric.help)}\n".encode()
                yield f"# TYPE {family} {metric.kind}\n".encode()
                if metric.unit:
                    yield f"# UNIT {family} {metric.unit}\n".encode()
                yield from self._store.lines_of(name)
        yield b"# EOF\n"

    def add(
        self,
        samples: Iterable[Sample],
        target: Mapping[str, str],
        t_ms: int,
        most_bytes: int,
        most_series: int,
    ) -> int:
        """Returns how many bytes it took: at most ``most_bytes``, or one sample more."""
        taken = islice(samples, 1 + most_bytes // _REFUSED_BYTES)
        kept, refused = checked(taken, self.registry, most_series)
        self.left_out += refused
        took = refused * _REFUSED_BYTES
        for sample in kept:
            if took >= most_bytes:
                break
            took += self._add(sample, target, t_ms)
        return took

    def _add(self, sample: Sample, target: Mapping[str, str], t_ms: int) -> int:
        declared = self.registry[sample.name]
        labels = {**target, **labels_of(declared, sample)}
        series = Series(sample.name, tuple((name, value) for name, value in labels.items() if value))
        if t_ms <= self.last_ms.get(series, -1):
            return _REFUSED_BYTES  # a clock that was set back, or two rounds in one millisecond
        self.last_ms[series] = t_ms
        self.written += 1
        lines = "".join(_lines(declared, sample, series.labels, t_ms)).encode()
        self._store.add(series, lines)
        return len(lines)


class _Of:
    """What one node adds, within bounds. ``node`` is empty for what the orchestrator knew."""

    def __init__(self, backfill: _Backfill, run: RunRecords, node: str) -> None:
        self._backfill = backfill
        self._clock = run.facts.clocks.get(node, ())
        self._first_ns, self._last_ns = _possible(run.facts)
        own = node_labels(run.target, node) if node else {**run.target.labels, "instance": run.target.run}
        self._target = {"job": backfill.job, **own}
        self._name = own["instance"]
        self._offset_ns = run.offset_ns
        self._room = most_bytes(run.facts)
        self._most_series = MOST_SERIES if node else MOST_RUN_SERIES

    def true_ns(self, t_ns: int) -> int | None:
        t_ns -= ahead_ns(self._clock, t_ns) if self._clock else 0
        return t_ns if self._first_ns <= t_ns <= self._last_ns else None

    def refuse(self, number: int) -> None:
        self._backfill.left_out += number

    def add(self, samples: Iterable[Sample], true_ns: int) -> None:
        if self._room > 0:
            t_ms = (true_ns + self._offset_ns) // MS
            self._room -= self._backfill.add(samples, self._target, t_ms, self._room, self._most_series)
        else:
            self._backfill.cut[self._name] += 1

    def sample(self, samples: Iterable[Sample], t_ns: int) -> None:
        """Adds those of one moment, or refuses them."""
        if (true_ns := self.true_ns(t_ns)) is None:
            self.refuse(sum(1 for _ in samples))
        else:
            self.add(samples, true_ns)


def most_bytes(facts: RunFacts) -> int:
    """Returns how much text one node may have."""
    first_ns, last_ns = (0, facts.measure[1]) if facts.virtual and facts.measure else _possible(facts)
    return min(MOST_BYTES, LEAST_BYTES + BYTES_PER_S * max(0, last_ns - first_ns) // 10**9)


def _possible(facts: RunFacts) -> tuple[int, int]:
    """Returns the first and the last time that the run's own clock can have shown."""
    if facts.virtual:
        return 0, facts.measure[1] + 3600 * 10**9 if facts.measure is not None else _LONGEST_VIRTUAL_NS
    return facts.span or (0, 2**62)


def _lines(
    declared: Declared, sample: Sample, labels: tuple[tuple[str, str], ...], t_ms: int
) -> Iterator[str]:
    own = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    time = f"{t_ms // 1000}.{t_ms % 1000:03d}"
    metric = declared.metric
    if metric.kind is not MetricKind.HISTOGRAM:
        yield f"{metric.name}{{{own}}} {float(sample.value)!r} {time}\n"
        return
    edges = (*map(repr, metric.buckets), "+Inf")
    for edge, count in zip(edges, accumulate(sample.counts), strict=True):
        yield f'{metric.name}_bucket{{{own},le="{edge}"}} {count} {time}\n'
    yield f"{metric.name}_count{{{own}}} {sum(sample.counts)} {time}\n"
    yield f"{metric.name}_sum{{{own}}} {float(sample.value)!r} {time}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
