"""The benchmark ``routing_gap``: what its rows claim of few runs."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.routing.handicaps import PARTS, LateRouting, TruthSection
from benchmarks.routing_gap import (
    DEFAULT,
    HANDICAPS,
    NOTHING,
    OURS,
    SPEEDS,
    TRUTH,
    Case,
    Outcome,
    case_of,
    document,
    outcome,
    row,
)
from benchmarks.shared.runs import described
from orchestrator.lifecycle.invocation import FinishedRun
from orchestrator.planning.sweep import cells
from orchestrator.runs.files import write_json
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement, Verdict
from orchestrator.services.virtual import VirtualNetwork

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]

GROUP = (10, 3, "random")


def outcomes(seeds: int, *routings: str) -> dict[Case, Outcome]:
    goodputs = {TRUTH: 10.0, DEFAULT: 5.0, OURS: 9.0}
    return {
        case_of(GROUP, seed, routing): Outcome(goodputs[routing] + seed, 1000.0, True)
        for seed in range(seeds)
        for routing in routings
    }


def test_one_pair_has_no_interval() -> None:
    found = row(GROUP, OURS, outcomes(1, TRUTH, DEFAULT, OURS), range(1))
    assert found is not None
    assert (found["pairs"], found["share_low"], found["share_high"]) == (1, None, None)
    several = row(GROUP, OURS, outcomes(4, TRUTH, DEFAULT, OURS), range(4))
    assert several is not None
    assert several["share_low"] < several["share"] < several["share_high"]


def test_an_overhead_that_nobody_measured_reaches_no_target() -> None:
    found = row(GROUP, OURS, outcomes(4, TRUTH, OURS), range(4))
    assert found is not None and found["share"] > found["target"]
    assert found["overhead"] is None and not found["reached"]
    measured = row(GROUP, OURS, outcomes(4, TRUTH, DEFAULT, OURS), range(4))
    assert measured is not None and measured["reached"]


def test_a_speed_without_a_target_reaches_none() -> None:
    assert SPEEDS == (1, 5, 10)
    slow = {case._replace(speed=1): each for case, each in outcomes(4, TRUTH, DEFAULT, OURS).items()}
    found = row((1, *GROUP[1:]), OURS, slow, range(4))
    assert found is not None and found["overhead"] == 1.0
    assert (found["target"], found["reached"]) == (None, None)


def test_a_run_that_failed_is_left_out_and_leaves_no_files(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "failing")
    directory.nodes.mkdir(parents=True)
    write_json(directory.manifest, {"measure_from_ns": None, "measure_until_ns": None, "apps": {}})
    verdict = Verdict(verdict=Judgement.FAILED, reasons=("routing did not converge",))
    assert outcome(FinishedRun(directory, {}, verdict)) == NOTHING
    assert not directory.path.exists()
    found = outcomes(2, TRUTH, OURS) | {case_of(GROUP, 1, TRUTH): NOTHING}
    paired = row(GROUP, OURS, found, range(2))
    assert paired is not None and paired["pairs"] == 1


@pytest.mark.parametrize("routing", [TRUTH, *HANDICAPS])
def test_every_handicap_plans_and_differs_in_routing_alone(routing: str) -> None:
    base, found = (
        described(document(case_of(GROUP, 1, each), "sim", 1.0, 2.0)).resolved() for each in (OURS, routing)
    )
    assert {key for key in base if base[key] != found[key]} <= {"routing"}
    (cell,) = cells(described(document(case_of(GROUP, 1, routing), "sim", 1.0, 2.0)))
    assert cell.experiment.routing.metric == "etx"


def test_what_the_handicaps_replace_is_there() -> None:
    for replaced in PARTS.values():
        for owner, name, value in replaced:
            assert getattr(owner, name) != value


def test_late_truth_gives_the_links_of_some_seconds_ago() -> None:
    now = [0]
    network = VirtualNetwork({"10.0.0.1": "a", "10.0.0.2": "b"}, 1, lambda: now[0])
    late = LateRouting(TruthSection(protocol="late", age=2.0), network)
    costs = []
    for tenths in range(50):
        now[0] = tenths * 100_000_000
        late.update({"a": {"b": 1.0 + tenths}})
        costs.append(asyncio.run(late._truth.cost_graph()).costs["a"]["b"])
    assert costs[:21] == [1.0] * 21
    assert costs[21:] == [1.0 + tenths for tenths in range(1, 30)]
    assert late.next_hop("a")("10.0.0.2") == "b"
