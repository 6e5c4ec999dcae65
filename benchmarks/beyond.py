"""Compares the best that Rove offers with the paper's policy and placement: goodput of a saturated stream.

25 nodes at 10 m/s, camera → two operators → screen, three replicas of each operator: a cell of Figure 5
(``experiments/paper/fig5.yaml``). *paper*: shortest path, random placement, OLSR's defaults. *ours*:
operators near source and sink, links rated fast. *apart*: ours with operators only on nodes that are neither
the source's nor the sink's, so that no hop of the stream stays off the radio. Replicas of *ours* that
are on neither end's node are placed by how nodes will move, which nobody in the field would know; those of
*apart* are not. The same seed has the same
movements, source and sink in all of them. ``ratio`` is that of the means over paired seeds, ``ci_low`` the
lower end of its 95 % interval; ``busiest_cpu`` the cores that the operators of one node need at most,
by the goodput and the plan of each seed.

``--parts`` also shows what routing and placement gain alone. Finished runs are kept, as by
``benchmarks.paper_figures``; ``commits``: which code ran them.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.paper.campaign import ROOT, Bar, missing, run_all, tasks_of
from benchmarks.paper.cells import Kept, KeptCell, key_of
from benchmarks.paper.commits import since
from benchmarks.paper.figures import FIGURES, OFFERED, SEED, Changes, cells_in
from benchmarks.radio.report import Row, show
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.paper import GOODPUT, LATENCY, REPLICAS, SPEED
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.errors import BadInput
from orchestrator.planning.sweep import Cell
from orchestrator.planning.sweep import cells as cells_of
from orchestrator.results.comparison import compare, pairs_by_seed

PAPER, OURS, APART = "paper", "ours", "apart"
TARGET, LEAST = 2.0, 1.7
CELL: Changes = {SPEED: "10 m/s", REPLICAS: 3, SEED: 1}
_FAST: Changes = {"routing": {"protocol": "olsr", "metric": "etx", "quality": "fast"}}
WAYS: Mapping[str, Changes] = {
    PAPER: {},
    OURS: {**_FAST, "placement.policy": "near"},
    APART: {**_FAST, "placement.policy": "colocate"},
}
PARTS: Mapping[str, Changes] = {"routing alone": _FAST, "placement alone": {"placement.policy": "near"}}


def cell_of(changes: Changes, backend: str, also: Changes) -> Cell:
    (cell,) = cells_in(FIGURES[5].file, {**CELL, **changes, **also, "backend": backend})
    return cell


def ends(plan: DeploymentPlan) -> tuple[str, ...]:
    """Returns the nodes of source and sink."""
    outer = (*plan.query.sources(), *plan.query.sinks())
    return tuple(replica.node for name in outer for replica in plan.of(name))


def cpu_of(plan: DeploymentPlan) -> float:
    """Returns the processor seconds for one tuple on the node that needs most."""
    needs: dict[str, float] = {}
    for replica in plan.replicas:
        params = plan.query.operator(replica.operator).params
        needs[replica.node] = needs.get(replica.node, 0.0) + float(params.get("cpu", 0.0))
    return max(needs.values())


def plan_of(cell: Cell, seed: int) -> DeploymentPlan:
    (task,) = tasks_of(cell, "", [seed])
    (planned,) = cells_of(task.experiment)
    (app,) = planned.run.apps.values()
    plan = deployment_in(app.record())
    assert plan is not None
    return plan


def row(way: str, cell: Cell, runs: Sequence[KeptCell], base: Sequence[KeptCell]) -> Row:
    ours, others = _by_seed(runs), _by_seed(base)
    found = compare(pairs_by_seed(ours, others))
    interval = found.ratio_of_means_95
    routing, (app,) = cell.experiment.resolved()["routing"], cell.experiment.apps.values()
    settings = app.model_dump(mode="json")
    return {
        "way": way,
        "routing": f"{routing['protocol']} {routing.get('quality') or 'etx_ff'}",
        "placement": settings["placement"]["policy"],
        "switching": settings["switching"]["policy"],
        "runs": len(runs),
        "goodput": _mean(runs, GOODPUT) or 0.0,
        "offered": _mean(runs, OFFERED),
        "latency_p95_s": _mean(runs, LATENCY),
        "busiest_cpu": max((run.figures[GOODPUT] or 0.0) * cpu_of(plan_of(cell, run.seed)) for run in runs),
        "pairs": found.pairs,
        "ratio": found.ratio_of_means,
        "ci_low": None if interval is None else interval.low,
        "ci_high": None if interval is None else interval.high,
        "seeds_that_gain": sum(ours > other for ours, other in pairs_by_seed(ours, others)),
        "per_seed": {str(seed): value for seed, value in ours.items()},
    }


def _mean(runs: Sequence[KeptCell], name: str) -> float | None:
    """Returns None if no run has it: one that delivers nothing has no latency."""
    values = [value for run in runs if (value := run.figures.get(name)) is not None]
    return fmean(values) if values else None


def _by_seed(runs: Sequence[KeptCell]) -> dict[object, float | None]:
    return {run.seed: run.figures[GOODPUT] for run in runs}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, with the goodput of each seed"
    )
    parser.add_argument("--seeds", type=int, default=30, help="runs of each way (default: 30)")
    parser.add_argument("--parts", action="store_true", help="also routing alone and placement alone")
    parser.add_argument("--backend", choices=["sim", "netns"], default="sim")
    parser.add_argument("--jobs", type=int, help="runs at the same time (default: 2 in sim, 1 in netns)")
    parser.add_argument(
        "--cells", type=Path, default=Path("runs", "paper", "cells.jsonl"), help="finished runs"
    )
    parser.add_argument(
        "--since",
        metavar="COMMIT",
        help="run again what was not run by this commit or a descendant of it",
    )
    parser.add_argument("--warmup", type=float, help="seconds, in place of the file's")
    parser.add_argument("--duration", type=float, help="seconds that count, in place of the file's")
    options = parser.parse_args()
    also = {name: value for name in ("warmup", "duration") if (value := getattr(options, name)) is not None}
    ways = {**WAYS, **(PARTS if options.parts else {})}
    cells = {way: cell_of(changes, options.backend, also) for way, changes in ways.items()}
    kept, seeds = Kept(options.cells), range(1, options.seeds + 1)
    counts = since(options.since, ROOT) if options.since else lambda commit: True
    tasks = [
        task for way, cell in cells.items() for task in tasks_of(cell, f"{way} {options.backend}", seeds)
    ]
    jobs = options.jobs or (2 if options.backend == "sim" else 1)
    with Bar(jobs) as bar:
        run_all(missing(tasks, kept, counts), jobs, kept, bar)
    kept = Kept(options.cells)  # with what another process has added meanwhile
    runs = {
        way: [run for run in kept.of(key_of(cell.experiment)) if run.is_valid and run.seed in seeds]
        for way, cell in cells.items()
    }
    if not all(runs.values()):
        raise BadInput("a way has no valid run: use a quieter machine, or --backend sim")
    rows = {way: row(way, cell, runs[way], runs[PAPER]) for way, cell in cells.items()}
    topology = next(iter(cells.values())).experiment.topology
    figures = {
        "benchmark": "beyond",
        "backend": options.backend,
        "ratio": rows[OURS]["ratio"],
        "ci_low": rows[OURS]["ci_low"],
        "ratio_apart": rows[APART]["ratio"],
        "ci_low_apart": rows[APART]["ci_low"],
        "pairs": rows[OURS]["pairs"],
        "valid_runs": sum(map(len, runs.values())),
        "commits": sorted({(run.commit or "unknown")[:12] for way in runs.values() for run in way}),
        "cpu_per_node": topology.capacity,
        "target_ratio": TARGET,
        "target_ci_low": LEAST,
    }
    shown = list(rows.values())
    if not options.json:
        shown = [{name: value for name, value in each.items() if name != "per_seed"} for each in shown]
    show(
        "Our best beside the paper's policy and placement, k=3, 10 m/s", figures, shown, as_json=options.json
    )


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
