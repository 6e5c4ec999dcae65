"""Compares the costs that replicas believed with those of the true links at the same time.

A replica samples what the network path to each downstream replica costs (the table ``costs``). The truth is
the cheapest path over the links of the ground truth, in the same unit: transmissions for ``etx``, hops for
``hops``. Other link metrics have no counterpart in the ground truth.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from operator import itemgetter
from statistics import fmean, median
from typing import Any, NamedTuple

from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph
from orchestrator.results.contribution import Figures, Later, Metric, Rows
from orchestrator.results.link_changes import LinkLine, read_link_lines
from orchestrator.results.spark import Subject, rounded

_HERE = "orchestrator.apps.dataflow.analytics"

MOST_SECONDS = 60
"""Of a longer window, samples of about this many seconds are compared: those whose number times ``GOLDEN``
has a small fraction. They are spread evenly, and not in step with replicas, which look at costs every 2 s.
"""
GOLDEN = 0.618034
HOPS, ETX = "hops", "etx"
LEAST, MOST = 1e-6, 1e12
"""Costs beyond these cannot be meant; files of somebody else's run may contain anything."""

_ERROR = (
    "how far the costs of paths that replicas believed were from those of the true links at the same time, "
    "of samples in the window (in 60 s of a longer one) where both know a path: the median of "
    "|believed − true| / true, and the geometric mean of believed / true (above 1: too dear). Only for the "
    "link metrics `etx` and `hops`, and where the true links are known"
)
METRICS = (
    Metric("cost_error_ratio", _ERROR, "", "less", averaged=True),
    Metric("cost_bias_ratio", _ERROR, averaged=True),
    Metric(
        "cost_unknown_ratio",
        "of these samples with a true path, the share in which the replica knew none",
        "",
        "less",
        averaged=True,
    ),
    Metric(
        "cost_phantom_ratio",
        "of these samples without a true path, the share in which the replica believed in one",
        "",
        "less",
        averaged=True,
    ),
)


class Sample(NamedTuple):
    t_ns: int
    here: str
    there: str
    believed: float | None
    metric: str


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    assert subject.app is not None
    nodes = {replica.id: replica.node for replica in subject.app.plan.replicas}
    links = subject.run.truth("links.jsonl")
    samples = [
        Sample(row["t_ns"], nodes[row["replica"]], nodes[row["to"]], row["cost"], row["metric"])
        for row in sorted(rows["samples"], key=itemgetter("t_ns", "replica", "to"))
        if row["metric"] in (HOPS, ETX) and row["replica"] in nodes and row["to"] in nodes
    ]
    found = list(compared(samples, read_link_lines(links))) if links is not None and samples else []
    return {**figures(found), "cost_errors": over_time(subject, found)}


def figures(found: Sequence[tuple[Sample, float | None]]) -> dict[str, float | None]:
    """Returns the metrics. Each sample comes with its true cost; None: there was no path."""
    both = [pair for each, true in found if (pair := _both(each, true))]
    with_path = [each.believed for each, true in found if true is not None]
    without = [each.believed for each, true in found if true is None]
    return {
        "cost_error_ratio": rounded(median(abs(b - t) / t for b, t in both)) if both else None,
        "cost_bias_ratio": rounded(exp(fmean(log(b / t) for b, t in both))) if both else None,
        "cost_unknown_ratio": _share(with_path, lambda cost: cost is None),
        "cost_phantom_ratio": _share(without, lambda cost: cost is not None),
    }


def _both(sample: Sample, true: float | None) -> tuple[float, float] | None:
    if sample.believed is None or true is None or not LEAST <= sample.believed <= MOST:
        return None
    return sample.believed, true


def _share(costs: Sequence[float | None], wanted: Any) -> float | None:
    return rounded(sum(map(wanted, costs)) / len(costs)) if costs else None


def over_time(subject: Subject, found: Sequence[tuple[Sample, float | None]]) -> list[list[float | None]]:
    """Returns the median error of each second that has samples with both costs."""
    seconds: dict[int, list[float]] = {}
    for sample, true in found:
        if (pair := _both(sample, true)) is not None:
            second = (sample.t_ns - subject.zero_ns) // 10**9
            seconds.setdefault(second, []).append(abs(pair[0] - pair[1]) / pair[1])
    return [[float(second), rounded(median(errors))] for second, errors in sorted(seconds.items())]


def compared(samples: Sequence[Sample], changes: Iterator[LinkLine]) -> Iterator[tuple[Sample, float | None]]:
    """Yields each sample, in the order of time, with the true cost of its path then; None: there is none.

    Samples between two replicas on one node are left out.
    """
    links: dict[str, dict[str, float]] = {}
    coming = next(changes, None)
    known: dict[tuple[str, str], dict[str, float]] = {}
    for sample in samples:
        while coming is not None and coming.t_ns <= sample.t_ns:
            if coming.up and coming.cost is not None and LEAST <= coming.cost <= MOST:
                links.setdefault(coming.src, {})[coming.dst] = coming.cost
            else:
                links.get(coming.src, {}).pop(coming.dst, None)
            if known:
                known.clear()
            coming = next(changes, None)
        if sample.here == sample.there:
            continue
        start = (sample.here, sample.metric)
        if start not in known:
            known[start] = _from(links, *start)
        yield sample, known[start].get(sample.there)


def _from(links: dict[str, dict[str, float]], start: str, metric: str) -> dict[str, float]:
    unit = metric == HOPS
    costs = {node: dict.fromkeys(row, 1.0) for node, row in links.items()} if unit else links
    return distances(CostGraph(costs, metric, "ground_truth", 0), start)


FIGURES = Figures(
    Later(f"{_HERE}.cost_frames:frames"),
    values,
    METRICS,
    series={"cost_errors": list[tuple[float, float]]},
)
