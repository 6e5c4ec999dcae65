"""Recomputes how far the costs that replicas believed were from those of the true links."""

from math import exp, inf, log
from typing import Any

import numpy as np

from tests.independent.plan import Query
from tests.independent.reading import Run
from tests.independent.world import S

MOST_SECONDS = 60
NAMES = ("cost_error_ratio", "cost_bias_ratio", "cost_unknown_ratio", "cost_phantom_ratio")


def metrics_of(run: Run, app: str, query: Query) -> dict[str, Any]:
    links = run.truth("links")
    if links is None:
        return dict.fromkeys(NAMES)
    links = sorted(links, key=lambda each: each["t_ns"])
    pairs: list[tuple[float | None, float | None]] = []
    for each in run.records("link_cost", app=app):
        here, there = query.replicas[each["replica"]], query.replicas[each["to"]]
        if each["metric"] in ("etx", "hops") and _is_looked_at(run, each["t_ns"]) and here != there:
            pairs.append((each["cost"], _true_cost(links, each["t_ns"], here, there, each["metric"])))
    known = [(believed, true) for believed, true in pairs if believed is not None and true is not None]
    there_is = [believed for believed, true in pairs if true is not None]
    there_is_none = [believed for believed, true in pairs if true is None]
    errors = [abs(believed - true) / true for believed, true in known]
    ratios = [log(believed / true) for believed, true in known]
    return {
        "cost_error_ratio": float(np.median(errors)) if known else None,
        "cost_bias_ratio": exp(sum(ratios) / len(ratios)) if known else None,
        "cost_unknown_ratio": there_is.count(None) / len(there_is) if there_is else None,
        "cost_phantom_ratio": 1 - there_is_none.count(None) / len(there_is_none) if there_is_none else None,
    }


def _is_looked_at(run: Run, t_ns: int) -> bool:
    """Of a long window, only some seconds are."""
    second = (t_ns - run.from_ns) // S
    return run.inside(t_ns) and second * 0.618034 % 1 < MOST_SECONDS / run.window_s


def _true_cost(links: list[dict[str, Any]], t_ns: int, here: str, there: str, metric: str) -> float | None:
    """Returns the cost of the cheapest path from node to node, by Bellman and Ford; None without a path."""
    up: dict[tuple[str, str], float] = {}
    for each in links:
        if each["t_ns"] > t_ns:
            break
        if each["up"]:
            up[each["src"], each["dst"]] = 1.0 if metric == "hops" else each["cost"]
        else:
            up.pop((each["src"], each["dst"]), None)
    costs = {here: 0.0}
    for _ in range(len(up)):
        before = dict(costs)
        for (src, dst), cost in up.items():
            if src in costs:
                costs[dst] = min(costs.get(dst, inf), costs[src] + cost)
        if costs == before:
            break
    return costs.get(there)
