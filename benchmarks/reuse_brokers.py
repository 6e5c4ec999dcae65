"""Measures what brokers save by sharing selections, and what that costs, by setting, on one core.

Plays ``experiments/mcep/shared.yaml`` (or another file with ``reuse:``) as the analysis rehearses it: its
brokers and clients, with messages that take no time. ``seconds``: processor time of all of them.
``precision``: the mean of selections that got results of another one, by atomic events.
"""

import argparse
import time
from pathlib import Path

from msgspec.structs import replace

from benchmarks.radio.report import Row, show
from node_agent.apps.mcep.reusing.config import ReuseConfig
from orchestrator.apps.mcep.plan import InterestPlan, Recorded
from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.planning.load import load_checked
from orchestrator.planning.semantics import plan_run

FILE = Path(__file__).parents[1] / "experiments" / "mcep" / "shared.yaml"


def settings(given: ReuseConfig) -> dict[str, ReuseConfig | None]:
    return {
        "without reuse": None,
        "algorithm none": replace(given, algorithm="none"),
        "as it is": given,
        "times any": replace(given, times="any"),
        "msh": replace(given, algorithm="msh"),
        "msh, times any": replace(given, algorithm="msh", times="any"),
        "spatial": replace(given, similarity="spatial"),
        "neighbour": replace(given, similarity="neighbour"),
        "grid": replace(given, similarity="grid"),
        "recent": replace(given, similarity="recent"),
    }


def played(recorded: Recorded, reuse: ReuseConfig | None) -> Row:
    rehearsal = Rehearsal(replace(recorded, settings=replace(recorded.settings, reuse=reuse)))
    started = time.process_time()
    rehearsal.play()
    seconds = time.process_time() - started
    brokers = rehearsal.brokers.values()
    managers = [each for broker in brokers for each in broker.managers.values()]
    decided = sum(each.work.offered for each in managers)
    pairs = [pair for each in managers for pair in each.pairs.values()]
    shared = sum(each.count for each in pairs)
    return {
        "processed": sum(each.done().processed for each in brokers),
        "saved": shared / decided if decided else None,
        "comparisons": sum(each.work.comparisons for each in managers),
        "precision": sum(each.precision for each in pairs) / shared if shared else None,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--file", type=Path, default=FILE, help="(default: experiments/mcep/shared.yaml)")
    options = parser.parse_args()
    run, findings = plan_run(load_checked(options.file))
    plan = next((each for each in run.apps.values() if isinstance(each, InterestPlan)), None) if run else None
    if plan is None or plan.recorded.settings.reuse is None:
        parser.error(f"{options.file} has no queries that share: {findings or 'add reuse:'}")
    ways = settings(plan.recorded.settings.reuse)
    rows: list[Row] = [{"setting": name, **played(plan.recorded, each)} for name, each in ways.items()]
    by = {str(row["setting"]): row for row in rows}
    figures: Row = {
        "benchmark": "reuse_brokers",
        "saved": by["as it is"]["saved"],
        "saved_by_msh": by["msh"]["saved"],
        "times_fewer_comparisons": by["msh, times any"]["comparisons"] / by["as it is"]["comparisons"],
    }
    show("Selections shared on brokers", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
