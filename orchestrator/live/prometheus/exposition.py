"""Turns samples into the text that Prometheus reads: its own format, or OpenMetrics with exemplars.

Nothing is kept between two scrapes: a series that a node does not report any more is gone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import exposition as plain
from prometheus_client.core import Metric as Family
from prometheus_client.core import Timestamp
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as ShownExemplar

from node_agent.telemetry.metrics import Exemplar, MetricKind, Sample
from orchestrator.live.metrics import APP, Declared

OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LONGEST_ACCEPT = 1000
_openmetrics: Callable[[Collector], bytes] = openmetrics.generate_latest


class Exposition(NamedTuple):
    data: bytes
    content_type: str


class Labelled(NamedTuple):
    """Samples that share ``labels``, such as those of one run."""

    samples: Sequence[Sample]
    labels: Mapping[str, str] = {}


def exposition(groups: Iterable[Labelled], registry: Mapping[str, Declared], accept: str = "") -> Exposition:
    """``accept``: the header of the request; OpenMetrics if it names it. Samples must have been checked."""
    collector = _Fresh(list(families(groups, registry)))
    if wants_openmetrics(accept):
        return Exposition(_openmetrics(collector), OPENMETRICS_TYPE)
    return Exposition(plain.generate_latest(collector), PLAIN_TYPE)


def wants_openmetrics(accept: str) -> bool:
    offered = accept[:LONGEST_ACCEPT].split(",")
    return any(each.partition(";")[0].strip() == OPENMETRICS for each in offered)


def families(groups: Iterable[Labelled], registry: Mapping[str, Declared]) -> Iterator[Family]:
    """Yields the metrics in the order of the list, each with all of its series."""
    by_name: dict[str, list[tuple[Sample, Mapping[str, str]]]] = {}
    for group in groups:
        for sample in group.samples:
            by_name.setdefault(sample.name, []).append((sample, group.labels))
    for name, declared in registry.items():
        if name in by_name:
            metric = declared.metric
            family = Family(declared.family, metric.help, metric.kind.value, metric.unit)
            for sample, labels in by_name[name]:
                add(family, declared, sample, labels)
            yield family


def add(
    family: Family,
    declared: Declared,
    sample: Sample,
    labels: Mapping[str, str],
    timestamp: Timestamp | None = None,
) -> None:
    """Adds the series of one sample."""
    metric = declared.metric
    own = {**labels, **labels_of(declared, sample)}
    if metric.kind is not MetricKind.HISTOGRAM:
        family.add_sample(metric.name, own, sample.value, timestamp)
        return
    place = _place(metric.buckets, sample.exemplar)
    edges = (*map(repr, metric.buckets), "+Inf")
    for index, (edge, count) in enumerate(zip(edges, accumulate(sample.counts), strict=True)):
        exemplar = _shown(sample.exemplar) if index == place else None
        family.add_sample(f"{metric.name}_bucket", {**own, "le": edge}, count, timestamp, exemplar)
    family.add_sample(f"{metric.name}_count", own, sum(sample.counts), timestamp)
    family.add_sample(f"{metric.name}_sum", own, sample.value, timestamp)


def labels_of(declared: Declared, sample: Sample) -> dict[str, str]:
    """Returns the labels of a sample, without those of its target."""
    own = dict(zip(declared.metric.labels, sample.labels, strict=True))
    return {APP: sample.app, **own} if sample.app else own


def _place(edges: Sequence[float], exemplar: Exemplar | None) -> int | None:
    if exemplar is None:
        return None
    return next((index for index, edge in enumerate(edges) if exemplar.value <= edge), len(edges))


def _shown(exemplar: Exemplar | None) -> ShownExemplar | None:
    if exemplar is None:
        return None
    return ShownExemplar(exemplar.labels, exemplar.value, exemplar.t_ns / 1e9)


class _Fresh(Collector):
    """The families of one scrape."""

    def __init__(self, made: Sequence[Family]) -> None:
        self._made = made

    def collect(self) -> Sequence[Family]:
        return self._made
