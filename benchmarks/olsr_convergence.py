"""Measures how soon a grid of our daemons has all routes, how it handles losses and moves, and what a daemon
costs.

``seconds``: from the start of the daemons until every node has a route to every other. In namespaces (netns)
each daemon is a process and the routes are the kernel's, over the 802.11b radio in real time; in virtual time
it is the worst of several seeds. ``cpu_share_per_daemon``: of one core in steady state; in virtual time it
includes the radio model. ``rerouted_s``: a corner node jumps to the opposite corner; until all nodes reach it
and it reaches them over its new neighbours. ``routes_gone_s``: a node in the middle falls silent; until no
route leads over it. Figures of netns on a busy machine mean little: see ``load_average``.
"""

import argparse
from contextlib import AbstractContextManager, closing
from typing import NamedTuple

from benchmarks.olsr.namespaces import daemons_in_namespaces
from benchmarks.olsr.tables import complete, reached, users
from benchmarks.olsr.virtual import Roaming, VirtualNetwork
from benchmarks.olsr.watching import Network, seconds_until
from benchmarks.radio.report import Row, show
from benchmarks.radio.tap import lacking, load_average
from node_agent.olsr.config import OlsrConfig
from orchestrator.mobility.static import grid_paths
from orchestrator.model.trace import Trace, Waypoint
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac

SPACING_M = 300.0
LIMIT_S = 90.0
CPU_SAMPLE_S = 20.0
SETTLING_S = 10.0
MOVE_AT_S = 55.0
CPU_TARGET = 0.02
REROUTED_TARGET_S = 5.0
MOVED, MOVED_TO, NEW_NEIGHBOURS = "n01", (1050.0, 1050.0), ("n19", "n20", "n24", "n25")
SILENCED = "n13"
SEEDS = 5


class Case(NamedTuple):
    timers: str
    config: OlsrConfig
    nodes: int
    target_s: float | None
    disturbed: bool = False


FAST = OlsrConfig(hello_interval=1.0, hello_validity=4.0, tc_interval=1.0, tc_validity=15.0)
CASES = (
    Case("1 s / 1 s", FAST, 25, 12.0, disturbed=True),
    Case("2 s / 5 s", OlsrConfig(), 25, 25.0),
    Case("1 s / 1 s", FAST, 50, None),
    Case("2 s / 5 s", OlsrConfig(), 50, None),
)


def trace_of(case: Case) -> Trace:
    paths = grid_paths([f"n{number:02d}" for number in range(1, case.nodes + 1)], SPACING_M)
    if case.disturbed:
        start = paths[MOVED][0]
        paths[MOVED] = (
            start,
            Waypoint(MOVE_AT_S, start.x, start.y),
            Waypoint(MOVE_AT_S + 0.001, *MOVED_TO),
        )
    return Trace(paths)


def in_namespaces(case: Case) -> AbstractContextManager[Network]:
    return daemons_in_namespaces(trace_of(case), RadioChoice(), case.config)


def in_virtual_time(case: Case, seed: int) -> AbstractContextManager[Network]:
    air = Roaming(trace_of(case), RadioChoice().radio(), Mac(), seed)
    return closing(VirtualNetwork(list(trace_of(case).paths), air, case.config, seed))


class Watched(NamedTuple):
    seconds: float | None
    cpu_share: float
    rerouted_s: float | None
    routes_gone_s: float | None


def watch(case: Case, built: AbstractContextManager[Network]) -> Watched:
    with built as network:
        starting_s = network.now_s() - network.started_s
        converged = seconds_until(network, complete, LIMIT_S)
        network.run_until(network.now_s() + SETTLING_S)
        start, before = network.now_s(), network.cpu_seconds()
        network.run_until(start + CPU_SAMPLE_S)
        spent = network.cpu_seconds() - before
        share = spent / (network.now_s() - start) / case.nodes
        if converged is None:
            return Watched(None, share, None, None)
        if not case.disturbed:
            return Watched(starting_s + converged, share, None, None)
        network.run_until(MOVE_AT_S)
        rerouted = seconds_until(network, lambda tables: reached(tables, MOVED, NEW_NEIGHBOURS), LIMIT_S)
        network.run_until(network.now_s() + SETTLING_S)
        network.silence(SILENCED)
        gone = seconds_until(network, lambda tables: users(tables, SILENCED) == 0, LIMIT_S)
        return Watched(starting_s + converged, share, rerouted, gone)


def row(clock: str, case: Case, runs: list[Watched]) -> Row:
    return {
        "clock": clock,
        "nodes": case.nodes,
        "hello_tc": case.timers,
        "seconds": _worst([run.seconds for run in runs]),
        "target_s": case.target_s,
        "cpu_share_per_daemon": max(run.cpu_share for run in runs),
        "rerouted_s": _worst([run.rerouted_s for run in runs]) if case.disturbed else None,
        "rerouted_target_s": REROUTED_TARGET_S if case.disturbed else None,
        "routes_gone_s": _worst([run.routes_gone_s for run in runs]) if case.disturbed else None,
        "hello_validity_s": case.config.hello_validity,
    }


def _worst(seconds: list[float | None]) -> float | None:
    """Returns the worst of the runs; None if one did not finish within the limit."""
    known = [second for second in seconds if second is not None]
    return max(known) if len(known) == len(seconds) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--short", action="store_true", help="25 nodes and one seed only")
    parser.add_argument("--clock", choices=("netns", "virtual"), help="one of both only")
    options = parser.parse_args()
    cases = [case for case in CASES if case.nodes == 25 or not options.short]
    seeds = range(1, 2 if options.short else SEEDS + 1)
    before = load_average()
    rows = []
    reason = lacking()
    if options.clock != "virtual" and not reason:
        rows += [row("netns", case, [watch(case, in_namespaces(case))]) for case in cases]
    if options.clock != "netns":
        rows += [
            row(
                "virtual",
                case,
                [watch(case, in_virtual_time(case, seed)) for seed in seeds],
            )
            for case in cases
        ]
    figures = {
        "benchmark": "olsr_convergence",
        "nodes": rows[0]["nodes"],
        "seconds": rows[0]["seconds"],
        "cpu_share_per_daemon": rows[0]["cpu_share_per_daemon"],
        "cpu_target": CPU_TARGET,
        "netns_skipped": reason,
        "load_average_before": before,
        "load_average_after": load_average(),
    }
    show("Convergence of OLSR on a grid", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
