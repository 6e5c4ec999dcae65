"""Groups a sweep's runs by cell: mean and standard deviation over seeds, and gain over a factor's smallest
value.

The gain is paired: runs with the same seed share their mobility (``comparison``).
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results import registry
from orchestrator.results.comparison import compare, ends, further, pairs_by_seed
from orchestrator.results.contribution import Breakdown
from orchestrator.results.inputs import OLD_KIND, OLD_NAME

SEED = "seed"

Document = dict[str, Any]


def apps_of(summary: Mapping[str, Any]) -> dict[str, Document]:
    """Returns the applications of a run's summary: ``kind`` and ``metrics`` by name."""
    if "apps" in summary:
        return dict(summary["apps"])
    return {OLD_NAME: {"kind": OLD_KIND, "metrics": summary["metrics"]}}


def cells(summaries: Sequence[Document], usable: Sequence[bool]) -> list[Document]:
    """Returns one cell for each combination of factors other than the seed; means are over the usable runs.

    A cell has the means of each of its ``apps``; if there is only one, they are also beside those of the
    whole run.
    """
    groups: dict[str, list[tuple[Document, bool]]] = {}
    for summary, counts in zip(summaries, usable, strict=True):
        groups.setdefault(_key(_factors(summary)), []).append((summary, counts))
    members = {key: [summary for summary, counts in group if counts] for key, group in groups.items()}
    return [_cell(group, members) for group in groups.values()]


def _factors(summary: Document) -> Document:
    return {name: value for name, value in summary["factors"].items() if name != SEED}


def _key(factors: Mapping[str, Any]) -> str:
    return json.dumps(factors, sort_keys=True)


def _cell(group: Sequence[tuple[Document, bool]], members: Mapping[str, Sequence[Document]]) -> Document:
    factors = _factors(group[0][0])
    used = members[_key(factors)]
    everyone = [summary for summary, _ in group]
    baseline = _baseline(factors, members)
    others = None if baseline is None else members[_key(baseline)]
    cell: Document = {
        "factors": factors,
        "n": len(used),
        "seeds": [summary["seed"] for summary in used],
        "runs": [summary["run"] for summary in used],
        "excluded": [
            {"run": summary["run"], "verdict": summary["verdict"]} for summary, counts in group if not counts
        ],
        "metrics": _means("", [s["metrics"] for s in everyone], [s["metrics"] for s in used]),
        "apps": {},
    }
    if baseline is not None:
        cell["versus"] = {"factors": baseline, "ratios": {}}
    kinds = {name: app["kind"] for summary in everyone for name, app in apps_of(summary).items()}
    for name, kind in kinds.items():
        figures = _figures(name, kind, everyone, used, others)
        cell["apps"][name] = figures
        if len(kinds) == 1:
            cell["metrics"] |= figures["metrics"]
            cell |= {key: found for key, found in figures.items() if key not in ("kind", "metrics", "ratios")}
            if baseline is not None:
                cell["versus"]["ratios"] = figures["ratios"]
    return cell


def _figures(
    app: str,
    kind: str,
    everyone: Sequence[Document],
    used: Sequence[Document],
    others: Sequence[Document] | None,
) -> Document:
    """Returns a cell's figures of one application; ``others``: the runs that it is compared with."""
    all_metrics, used_metrics = (
        [apps_of(summary)[app]["metrics"] for summary in group if app in apps_of(summary)]
        for group in (everyone, used)
    )
    figures: Document = {"kind": kind, "metrics": _means(kind, all_metrics, used_metrics)}
    for breakdown in registry.breakdowns(kind):
        if parts := _parts(breakdown, used_metrics):
            figures[breakdown.metric] = parts
    if others is not None:
        compared = [metric.name for metric in registry.metrics(kind).values() if metric.compared]
        figures["ratios"] = {name: _ratio(used, others, app, name) for name in compared}
    return figures


def _means(kind: str, having: Sequence[Document], used: Sequence[Document]) -> Document:
    """Returns the means of all metrics that some of the runs have."""
    return {
        name: spread([metrics.get(name) for metrics in used])
        for name, metric in registry.metrics(kind).items()
        if metric.averaged and any(name in metrics for metrics in having)
    }


def _parts(breakdown: Breakdown, used: Sequence[Document]) -> Document:
    found = [metrics.get(breakdown.metric) or {} for metrics in used]
    names = dict.fromkeys(name for parts in found for name in parts)
    return {
        name: {
            column.metric: spread([parts[name][column.metric] for parts in found if name in parts])
            for column in breakdown.columns
        }
        for name in names
    }


def _baseline(factors: Document, members: Mapping[str, Sequence[Document]]) -> Document | None:
    """Returns the cell to compare with: equal in all other factors, with the smallest value of a numeric
    ``Factor``.
    """
    for path in factors:
        if registry.factor_of(path) is None:
            continue
        alike = [
            other
            for other in (json.loads(key) for key in members)
            if _is_number(other.get(path)) and {**other, path: None} == {**factors, path: None}
        ]
        if len(alike) > 1:
            least: Document = min(alike, key=lambda other: float(other[path]))
            return least
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ratio(runs: Sequence[Document], others: Sequence[Document], app: str, metric: str) -> Document:
    """Returns the mean of ratios (``mean``, ``sd``, ``n``, ``mean_95``) and the ratio of means, of runs with
    the same seed.
    """

    def by_seed(summaries: Sequence[Document]) -> dict[object, float | None]:
        apps = {summary["seed"]: apps_of(summary).get(app, {"metrics": {}}) for summary in summaries}
        return {seed: found["metrics"].get(metric) for seed, found in apps.items()}

    pairs = pairs_by_seed(by_seed(runs), by_seed(others))
    found = compare(pairs)
    return {
        **spread([ours / base for ours, base in pairs if base]),
        "mean_95": ends(found.mean_of_ratios_95),
        "pairs": found.pairs,
        "ratio_of_means": None if found.ratio_of_means is None else round(found.ratio_of_means, 9),
        "ratio_of_means_95": ends(found.ratio_of_means_95),
        **further(found),
    }


def spread(values: Sequence[float | None]) -> Document:
    """Returns mean and sample standard deviation of the values that exist; ``n`` says how many."""
    known = [value for value in values if value is not None]
    return {
        "mean": round(statistics.fmean(known), 9) if known else None,
        "sd": round(statistics.stdev(known), 9) if len(known) > 1 else None,
        "n": len(known),
    }
