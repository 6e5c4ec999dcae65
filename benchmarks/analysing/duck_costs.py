"""Compares believed costs of paths with those of the true links: DuckDB finds samples and links, NumPy the
cheapest paths.
"""

from typing import Any

import numpy as np
import pandas as pd
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

NAMES = ("cost_error_ratio", "cost_bias_ratio", "cost_unknown_ratio", "cost_phantom_ratio")
MOST_SECONDS, GOLDEN = 60, 0.618034

SAMPLES = f"""
CREATE TABLE cost_samples AS
SELECT c.run, c.app, c.t_ns, here.node AS src, there.node AS dst, cost, metric
FROM costs c JOIN runs r ON r.run = c.run
JOIN places here ON here.run = c.run AND here.app = c.app AND here.part = c.replica
JOIN places there ON there.run = c.run AND there.app = c.app AND there.part = c.to
WHERE metric IN ('etx', 'hops') AND here.node <> there.node
  AND t_ns >= measure_from_ns AND t_ns < measure_until_ns
  AND ((t_ns - measure_from_ns) // 1000000000) * {GOLDEN} % 1
    < {MOST_SECONDS}e9 / (measure_until_ns - measure_from_ns)
  AND c.run IN (SELECT run FROM truth_files WHERE what = 'links')
"""

NUMBERS = """
CREATE TABLE node_numbers AS
SELECT run, node, row_number() OVER (PARTITION BY run ORDER BY node) - 1 AS number
FROM (SELECT DISTINCT run, node FROM nodes)
"""
NUMBERED = """
SELECT s.* EXCLUDE (src, dst), a.number AS src, b.number AS dst
FROM cost_samples s JOIN node_numbers a ON a.run = s.run AND a.node = src
JOIN node_numbers b ON b.run = s.run AND b.node = dst
ORDER BY s.run, t_ns
"""

# What changed, up to the last sample of a run; nodes by number.
CHANGES = """
SELECT l.run, t_ns, a.number AS src, b.number AS dst,
  CASE WHEN up THEN cost ELSE 'inf'::DOUBLE END AS cost
FROM raw_links l JOIN node_numbers a ON a.run = l.run AND a.node = src
JOIN node_numbers b ON b.run = l.run AND b.node = dst
JOIN (SELECT run, max(t_ns) AS last_ns FROM cost_samples GROUP BY run) s ON s.run = l.run AND t_ns <= last_ns
ORDER BY l.run, t_ns, up
"""

COMPARED = """
SELECT run, app,
  median(abs(cost - true_cost) / true_cost) AS cost_error_ratio,
  exp(avg(ln(cost / true_cost))) AS cost_bias_ratio,
  count(*) FILTER (true_cost IS NOT NULL AND cost IS NULL)
    / nullif(count(true_cost), 0) AS cost_unknown_ratio,
  count(*) FILTER (true_cost IS NULL AND cost IS NOT NULL)
    / nullif(count(*) - count(true_cost), 0) AS cost_phantom_ratio
FROM compared_costs GROUP BY run, app"""


def figures(duck: DuckDBPyConnection) -> dict[tuple[str, ...], dict[str, Any]]:
    """Returns the metrics by run and application."""
    duck.execute(NUMBERS)
    duck.execute(SAMPLES)
    samples = duck.execute(NUMBERED).df()
    samples["true_cost"] = np.inf
    changes = duck.execute(CHANGES).df()
    of_runs = dict(iter(changes.groupby("run", sort=False)))
    for run, of_run in samples.groupby("run", sort=False):
        if run in of_runs:
            samples.loc[of_run.index, "true_cost"] = _true_costs(of_run, of_runs[run])
    samples.loc[np.isinf(samples["true_cost"]), "true_cost"] = np.nan
    duck.register("compared_costs", samples.drop(columns=["src", "dst"]))
    rows = duck.execute(COMPARED).fetchall()
    duck.unregister("compared_costs")
    return {(run, app): dict(zip(NAMES, values, strict=True)) for run, app, *values in rows}


def _true_costs(samples: pd.DataFrame, changes: pd.DataFrame) -> NDArray[np.float64]:
    """Returns the cost of the cheapest path of each sample of a run: infinite if there is none. Both are in
    the order of time.
    """
    src, dst, cost = (changes[name].to_numpy() for name in ("src", "dst", "cost"))
    nodes = 1 + max(src.max(), dst.max(), samples["src"].max(), samples["dst"].max())
    links = np.full((nodes, nodes), np.inf)
    times, at_time = np.unique(samples["t_ns"].to_numpy(), return_inverse=True)
    at = np.empty((len(times), nodes, nodes))
    done = 0
    for place, upto in enumerate(np.searchsorted(changes["t_ns"].to_numpy(), times, side="right")):
        links[src[done:upto], dst[done:upto]] = cost[done:upto]  # of several for one link, the last stays
        at[place], done = links, upto
    at = at[at_time]
    at[(samples["metric"] == "hops").to_numpy()] = np.where(
        np.isfinite(at[(samples["metric"] == "hops").to_numpy()]), 1.0, np.inf
    )
    everyone = np.arange(len(samples))
    costs = np.full((len(samples), nodes), np.inf)
    costs[everyone, samples["src"].to_numpy()] = 0.0
    for _ in range(nodes):  # Bellman and Ford, for all samples at once
        better = np.minimum(costs, (costs[:, :, None] + at).min(axis=1))
        if np.array_equal(better, costs):
            break
        costs = better
    found: NDArray[np.float64] = costs[everyone, samples["dst"].to_numpy()]
    return found
