"""Faults that an experiment asks for: checked beforehand, carried out in time, and none of the run's own."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import Completeness, inspect, read_records
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.planning.semantics import plan_run
from orchestrator.runs.backend import Status
from orchestrator.runs.phases import Ending, Phase, PhaseResult
from orchestrator.runs.verdict import Judgement, judge_run
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import chain, experiment, planned, topology

NS = 1_000_000_000
PLACES = {"camera": ["s"], "op1": ["a", "b"], "screen": ["z"]}
POSITIONS = {"s": [0, 0], "a": [100, 0], "b": [100, 90], "z": [200, 0]}


def faulty(*faults: dict[str, Any], duration: str = "30s", **changes: Any) -> Experiment:
    mobility = {"model": "static", "positions": POSITIONS}
    return experiment(
        # The second replica is the dearer one, so that it is used only while the first cannot be.
        topology=topology(nodes=list(POSITIONS), area="300 m x 300 m", mobility=mobility, costs={"b": 1}),
        routing="ground_truth",
        query=chain(1) | {"reliability": "exactly_once"},
        replicas=2,
        placement={"policy": "explicit", "nodes": PLACES},
        duration=duration,
        faults=list(faults),
        **changes,
    )


def problems(*faults: dict[str, Any]) -> list[tuple[str, str]]:
    found = plan_run(faulty(*faults)).findings
    return [(".".join(map(str, finding.at)), finding.message) for finding in found]


FIRST = {"operator": "op1", "replica": 0}


def test_a_node_that_dies_falls_silent_before_its_agent_is_killed() -> None:
    dies = [{"at": "5s", "for": "8s", kind: FIRST} for kind in ("crash", "silence")]
    steps = planned(faulty(*dies, {"at": "1s", "silence": {"node": "z"}})).faults
    assert [(step.at, step.action, step.fault.subject) for step in steps] == [
        (1.0, "silence", "z"),
        (5.0, "silence", "a"),
        (5.0, "crash", "a"),
        (13.0, "unsilence", "a"),
        (13.0, "restart", "a"),
    ]
    assert planned(faulty()).faults == ()


def test_what_cannot_happen_is_said_beforehand() -> None:
    assert problems({"at": "40s", "crash": FIRST}) == [
        ("faults.0.at", "40 s is not within the 30 s of the measurement")
    ]
    assert problems({"at": 1, "crash": {"operator": "op2"}}) == [
        ("faults.0.crash.operator", 'the query has no operator "op2"')
    ]
    assert problems({"at": 1, "crash": {"operator": "op1", "replica": 2}}) == [
        ("faults.0.crash.replica", "op1 has 2 replicas, numbered from 0: there is no 2")
    ]
    assert problems({"at": 1, "silence": {"node": "q"}}) == [
        ("faults.0.silence.node", 'there is no node "q"')
    ]
    [(at, text)] = problems({"at": 1, "crash": {"node": "z"}})
    assert at == "faults.0.crash" and text.startswith("z has the screen")


def test_a_node_can_only_fall_silent_again_when_it_is_back() -> None:
    again = {"at": "9s", "silence": {"node": "a"}}
    assert problems(again, {"at": "2s", "for": "7s", "silence": FIRST}) == []
    assert problems(again, {"at": "2s", "for": "8s", "silence": FIRST}) == [
        ("faults.0.at", "a is down already then: a silence of it has not ended yet")
    ]


@pytest.mark.parametrize(
    "fault",
    [{"at": 1}, {"at": 1, "crash": FIRST, "silence": FIRST}, {"at": 1, "crash": {}}, {"crash": FIRST}],
)
def test_a_fault_is_one_thing_that_happens_to_one_node(fault: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        faulty(fault)


def test_faults_survive_the_run_directory() -> None:
    described = faulty({"at": "5s", "for": "8s", "crash": FIRST})
    assert Experiment.model_validate(described.resolved()) == described
    assert described.resolved()["faults"][0]["for"] == 8.0


def simulated(described: Experiment, directory: Path) -> Simulation:
    run = Simulation(planned(described), "run", directory)
    run.up()
    run.converge()
    run.open_sources()
    run.advance(round((described.warmup + described.duration) * NS))
    assert {outcome.status for outcome in run.stop()} == {Status.OK}
    return run


def test_a_crash_of_the_replica_in_use_is_bridged_by_one_that_was_dead_itself(tmp_path: Path) -> None:
    """The second replica was used while the first was away, and dies later. Its new agent starts when the
    first one is killed.
    """
    faults: list[dict[str, Any]] = [
        {"at": "2s", "for": "3s", "crash": FIRST},
        {"at": "9s", "for": "8s", "crash": {"operator": "op1", "replica": 1}},
        {"at": "17s", "crash": {"operator": "op1", "in_use": True}},
    ]
    simulated(faulty(*faults, duration="22s"), tmp_path)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    (died,) = [event for event in events if "in_use" in event]
    assert died["in_use"] == "op1/0"
    records = tuple_by_tuple(read_records(tmp_path / "nodes" / "b" / "segments"))
    since = [r["t_ns"] - died["t_ns"] for r in records if r["kind"] == "tuple_processed"]
    assert min(t_ns for t_ns in since if t_ns > 0) < 0.5 * NS


@pytest.mark.parametrize("kinds", [("crash",), ("silence",), ("crash", "silence")])
def test_the_stream_outlives_what_is_done_to_a_replica(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    faults = [{"at": "3s", "for": "5s", kind: FIRST} for kind in kinds]
    simulated(faulty(*faults, warmup="1s", duration="14s"), tmp_path)
    records = list(tuple_by_tuple(read_records(tmp_path / "nodes" / "z" / "segments")))
    times = [r["t_ns"] for r in records if r["kind"] == "tuple_delivered"]
    taus = [r["tau"] for r in records if r["kind"] == "tuple_delivered"]
    assert sorted(taus) == list(range(1, len(taus) + 1)) and len(taus) >= 140
    longest = max(after - before for before, after in pairwise(times)) / NS
    assert longest < (2.5 if "silence" in kinds else 1.0)
    boots = inspect(tmp_path / "nodes" / "a" / "segments").boots
    assert boots == (2 if "crash" in kinds else 1)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    since = [(event["t_ns"] - events[0]["t_ns"]) / NS for event in events]
    assert since == [0.0] * len(kinds) + [5.0] * len(kinds)
    assert {event["kind"] for event in events} == {"fault"}
    used = [r for r in read_records(tmp_path / "nodes" / "a" / "segments") if r["kind"] == "tuple_processed"]
    after_ns = events[-1]["t_ns"]
    assert any(r["t_ns"] > after_ns for r in used), "it is used again when it is back"


def test_the_same_faults_give_the_same_run(tmp_path: Path) -> None:
    described = faulty({"at": "2s", "for": "3s", "crash": FIRST}, duration="8s")
    for name in ("one", "two"):
        simulated(described, tmp_path / name)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "nodes").rglob("*.jsonl")}
        for name in ("one", "two")
    )
    assert one == two


HISTORY = [PhaseResult(phase, Ending.OK) for phase in Phase if phase is not Phase.VERDICT]


def found(**flaws: int) -> Completeness:
    whole = dict.fromkeys(("missing", "duplicates", "torn", "corrupt", "unclosed_boots"), 0)
    return Completeness(**{"records": 10, "boots": 2, **whole, **flaws})  # type: ignore[arg-type]


def test_who_was_killed_on_purpose_does_not_spoil_the_run() -> None:
    killed = found(torn=1, unclosed_boots=1)
    assert judge_run(HISTORY, {"a": killed}, crashes={"a": 1}).verdict is Judgement.VALID
    assert judge_run(HISTORY, {"a": killed}).verdict is Judgement.INVALID
    assert judge_run(HISTORY, {"a": killed}, crashes={"b": 1}).verdict is Judgement.INVALID
    assert judge_run(HISTORY, {"a": found(unclosed_boots=2)}, crashes={"a": 1}).verdict is Judgement.INVALID
    assert judge_run(HISTORY, {"a": found(missing=1)}, crashes={"a": 1}).verdict is Judgement.INVALID
