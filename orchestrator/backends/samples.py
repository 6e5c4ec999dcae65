"""Checks the samples that a node's agent reports: a node may not invent metrics, applications or labels."""

from collections.abc import Collection, Iterable, Mapping
from math import isfinite

from node_agent.agent.metrics import AGENT_METRICS, LINK_COST
from node_agent.agent.taps import MOST_SAMPLES
from node_agent.apps.registry import APPLICATIONS
from node_agent.telemetry.metrics import Exemplar, Metric, MetricKind, Sample
from orchestrator.foreign_text import one_line
from orchestrator.runs.backend import NodeNotSeen

LONGEST_LABEL = 200
MOST_EXEMPLAR_LABELS = 8
_LARGEST_COUNT = 2**63 - 1


class SampleCheck:
    """Knows the metrics that nodes of one run can report, by application; ``""`` is the agent itself."""

    def __init__(self, apps: Mapping[str, str], nodes: Collection[str]) -> None:
        """``apps``: the kind of each. Kinds that are not known here have no metrics of their own."""
        own = {metric.name: metric for metric in AGENT_METRICS}
        self._nodes = frozenset(nodes)
        self._known: dict[str, Mapping[str, Metric]] = {"": own}
        for app, kind in apps.items():
            metrics = APPLICATIONS[kind].metrics if kind in APPLICATIONS else None
            self._known[app] = {**own, **{each.name: each for each in (metrics.metrics if metrics else ())}}

    def checked(self, node: str, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
        """Returns the samples. Raises NodeNotSeen, with the first thing that is wrong with them."""
        if len(samples) > MOST_SAMPLES:
            raise NodeNotSeen(f"the metrics of {node} are refused: more than {MOST_SAMPLES} samples")
        seen: set[tuple[str, str, tuple[str, ...]]] = set()
        for sample in samples:
            key = sample.app, sample.name, sample.labels
            wrong = self._problem(sample) or ("it is there twice" if key in seen else "")
            if wrong:
                name = one_line(sample.name, 80)
                raise NodeNotSeen(f"the metrics of {node} are refused: {name}: {wrong}")
            seen.add(key)
        return samples

    def _problem(self, sample: Sample) -> str:
        metric = self._known.get(sample.app, {}).get(sample.name)
        if metric is None:
            return "no such metric is declared"
        if len(sample.labels) != len(metric.labels):
            return f"{len(sample.labels)} labels instead of {len(metric.labels)}"
        if not _short(sample.labels):
            return f"a label is longer than {LONGEST_LABEL} characters"
        if sample.name == LINK_COST and sample.labels[0] not in self._nodes:
            return "the neighbour is not a node of the run"
        if not isfinite(sample.value):
            return "the value is not a finite number"
        if metric.kind is not MetricKind.GAUGE and sample.value < 0:
            return "the value is negative"
        if len(sample.counts) != (len(metric.buckets) + 1 if metric.kind is MetricKind.HISTOGRAM else 0):
            return f"{len(sample.counts)} counts, which do not fit its buckets"
        if not all(0 <= count <= _LARGEST_COUNT for count in sample.counts):
            return "a count is out of range"
        return "" if sample.exemplar is None or _fits(sample.exemplar) else "its exemplar is out of range"


def _fits(exemplar: Exemplar) -> bool:
    return (
        len(exemplar.labels) <= MOST_EXEMPLAR_LABELS
        and _short((*exemplar.labels, *exemplar.labels.values()))
        and isfinite(exemplar.value)
        and 0 <= exemplar.t_ns < 2**62
    )


def _short(texts: Iterable[str]) -> bool:
    return all(len(text) <= LONGEST_LABEL for text in texts)
