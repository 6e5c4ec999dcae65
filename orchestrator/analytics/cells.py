"""A sweep's runs by cell: mean and standard deviation over seeds, and gain over the fewest replicas.

The gain is paired: runs of one seed share their mobility, so their ratio is taken first and averaged then.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.spec.expectations import OF_FACES

SEED = "seed"
REPLICAS = "replicas"

AVERAGED = (
    "emitted",
    "delivered",
    "loss_ratio",
    "throughput_fps",
    "throughput_kbps",
    "goodput_fps",
    "latency_mean_s",
    "latency_p50_s",
    "latency_p95_s",
    "latency_p99_s",
    "latency_max_s",
    "switches",
    "no_route_s",
    "source_sink_connected_ratio",
    "routing_overhead_bps",
)
OF_SOME = OF_FACES
"""Averaged where runs have them."""
AT_SINKS = ("owed", "delivered", "loss_ratio", "goodput_fps", "latency_p50_s", "latency_p95_s")
COMPARED = ("throughput_fps", "throughput_kbps", "goodput_fps", "latency_p50_s", "latency_p95_s")

Document = dict[str, Any]


def cells(summaries: Sequence[Document], usable: Sequence[bool]) -> list[Document]:
    """One cell for each combination of factors other than the seed; means are over the usable runs."""
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
    averaged = (*AVERAGED, *(name for name in OF_SOME if any(name in s["metrics"] for s, _ in group)))
    cell = {
        "factors": factors,
        "n": len(used),
        "seeds": [summary["seed"] for summary in used],
        "runs": [summary["run"] for summary in used],
        "excluded": [
            {"run": summary["run"], "verdict": summary["verdict"]} for summary, counts in group if not counts
        ],
        "metrics": {name: spread([summary["metrics"].get(name) for summary in used]) for name in averaged},
    }
    if sinks := _sinks(used):
        cell["sinks"] = sinks
    baseline = _baseline(factors, members)
    if baseline is not None:
        others = members[_key(baseline)]
        ratios = {name: spread(_paired_ratios(used, others, name)) for name in COMPARED}
        cell["versus"] = {"factors": baseline, "ratios": ratios}
    return cell


def _sinks(used: Sequence[Document]) -> Document:
    """The figures of each sink, of queries with several."""
    found = [summary["metrics"].get("sinks") or {} for summary in used]
    names = dict.fromkeys(name for sinks in found for name in sinks)
    return {
        name: {
            metric: spread([sinks[name][metric] for sinks in found if name in sinks]) for metric in AT_SINKS
        }
        for name in names
    }


def _baseline(factors: Document, members: Mapping[str, Sequence[Document]]) -> Document | None:
    """The cell with the fewest replicas that is equal in all other factors, if k is a number that varies."""
    alike = [
        other
        for other in (json.loads(key) for key in members)
        if _is_number(other.get(REPLICAS)) and {**other, REPLICAS: None} == {**factors, REPLICAS: None}
    ]
    return min(alike, key=lambda other: other[REPLICAS]) if len(alike) > 1 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _paired_ratios(runs: Sequence[Document], others: Sequence[Document], metric: str) -> list[float]:
    by_seed = {other["seed"]: other["metrics"][metric] for other in others}
    pairs = [(run["metrics"][metric], by_seed.get(run["seed"])) for run in runs]
    return [value / base for value, base in pairs if value is not None and base]


def spread(values: Sequence[float | None]) -> Document:
    """Mean and sample standard deviation of the values that there are; ``n`` says how many those were."""
    known = [value for value in values if value is not None]
    return {
        "mean": round(statistics.fmean(known), 9) if known else None,
        "sd": round(statistics.stdev(known), 9) if len(known) > 1 else None,
        "n": len(known),
    }
