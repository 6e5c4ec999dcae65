"""Checks samples against the list of metrics: what a node sends is not believed to be well-formed."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from msgspec.structs import replace

from node_agent.telemetry.metrics import Exemplar, MetricKind, Sample
from orchestrator.live.metrics import RUN, Declared

MOST_SERIES = 4096
"""Series of one answer. A histogram counts as many as it has buckets."""
LONGEST_LABEL = 200
LONGEST_EXEMPLAR = 128
"""Characters of all labels of an exemplar together, by OpenMetrics."""
_LARGEST_COUNT = 2**62


MOST_RUN_SERIES = 20_000
"""Of what the orchestrator itself knows of a run: a thousand nodes have a dozen each."""


class Checked(NamedTuple):
    """``refused``: how many samples were left out."""

    samples: list[Sample]
    refused: int


def checked(
    samples: Iterable[Sample], registry: Mapping[str, Declared], most_series: int = MOST_SERIES
) -> Checked:
    """Returns the samples that can be shown. It leaves out unknown metrics, wrong labels, values that are no
    numbers, series that come twice, and all beyond ``most_series``.
    """
    kept: list[Sample] = []
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    series = refused = 0
    for sample in samples:
        declared = registry.get(sample.name)
        key = (sample.name, sample.app, sample.labels)
        size = max(1, len(sample.counts))
        if declared is None or not _fits(sample, declared) or key in seen or series + size > most_series:
            refused += 1
            continue
        seen.add(key)
        series += size
        if sample.exemplar is not None and not _can_be_shown(sample.exemplar):
            sample = replace(sample, exemplar=None)
        kept.append(sample)
    return Checked(kept, refused)


def _fits(sample: Sample, declared: Declared) -> bool:
    metric = declared.metric
    values = (sample.app, *sample.labels)
    if len(sample.labels) != len(metric.labels) or any(len(value) > LONGEST_LABEL for value in values):
        return False
    if declared.reporter == RUN and sample.app:
        return False
    if not isfinite(sample.value) or (metric.kind is not MetricKind.GAUGE and sample.value < 0):
        return False
    buckets = len(metric.buckets) + 1 if metric.kind is MetricKind.HISTOGRAM else 0
    return len(sample.counts) == buckets and all(0 <= count < _LARGEST_COUNT for count in sample.counts)


def _can_be_shown(exemplar: Exemplar) -> bool:
    letters = sum(len(name) + len(value) for name, value in exemplar.labels.items())
    names = all(name.isidentifier() and name.isascii() for name in exemplar.labels)
    return letters <= LONGEST_EXEMPLAR and names and isfinite(exemplar.value)
