"""Faults that change the air, and faults on the replica in use: checked beforehand, carried out, recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import read_records
from orchestrator.lifecycle.examination import agent_crashes
from orchestrator.planning.semantics import plan_run
from orchestrator.runs.events import describe
from orchestrator.runs.outages import outages
from orchestrator.spec.experiment import Experiment
from tests.unit.orchestrator.planning.test_faults import NS, POSITIONS, faulty, simulated
from tests.unit.specs import experiment, topology

WIFI = {"model": "80211b", "preset": "seed-80211b"}


def problems(described: Experiment) -> list[tuple[str, str]]:
    found = plan_run(described).findings
    return [(".".join(map(str, finding.at)), finding.message) for finding in found]


def problems_of(fault: dict[str, Any]) -> list[tuple[str, str]]:
    return problems(faulty({"at": 1, **fault}))


@pytest.mark.parametrize(
    ("fault", "place", "message"),
    [
        ({"partition": {"west": ["s", "q"], "east": ["z"]}}, "partition.west.1", 'there is no node "q"'),
        ({"partition": ["q"]}, "partition.0", 'there is no node "q"'),
        ({"partition": list(POSITIONS)}, "partition", "nobody is left on the other side"),
        ({"partition": {"west": [*POSITIONS]}}, "partition", "nobody is left on the other side"),
        ({"partition": {"west": ["s"], "east": []}}, "partition.east", "nobody is on this side"),
        (
            {"partition": {"west": ["s", "a"], "east": ["a", "z"]}},
            "partition.east",
            "a is in west as well: a node can be on one side only",
        ),
        ({"cut": ["s", "q"]}, "cut.1", 'there is no node "q"'),
        ({"move": {"node": "q", "to": [0, 0]}}, "move.node", 'there is no node "q"'),
        (
            {"move": {"node": "a", "to": [500, 0]}},
            "move.to",
            "(500, 0) m is outside the area of 300 m x 300 m",
        ),
        (
            {"degrade": {"link": ["s", "a"], "by": "10 dB"}},
            "degrade",
            "within its range a disc receives everything, however weak the signal",
        ),
        (
            {"crash": {"operator": "op1", "replica": 0, "in_use": True}},
            "crash.in_use",
            "it is either the replica in use or op1/0",
        ),
    ],
)
def test_what_cannot_be_done_to_the_air_is_said_beforehand(
    fault: dict[str, Any], place: str, message: str
) -> None:
    assert problems_of(fault) == [(f"faults.0.{place}", message)]


def test_a_source_is_not_crashed_because_it_is_in_use() -> None:
    [(at, text)] = problems_of({"crash": {"operator": "camera", "in_use": True}})
    assert at == "faults.0.crash" and text.startswith("s has the camera")
    assert problems_of({"silence": {"operator": "camera", "in_use": True}}) == []


@pytest.mark.parametrize("kind", ["partition", "cut", "move"])
def test_only_an_emulated_air_can_be_changed(kind: str) -> None:
    values: dict[str, Any] = {
        "partition": ["n01"],
        "cut": ["n01", "n02"],
        "move": {"node": "n01", "to": [0, 0]},
    }
    described = experiment(backend="core", faults=[{"at": 1, kind: values[kind]}])
    assert any(
        at == f"faults.0.{kind}" and text.endswith("with backend core") for at, text in problems(described)
    )


def test_a_link_that_is_cut_can_be_cut_again_when_it_is_mended() -> None:
    twice = [{"at": 1, "for": "5s", "cut": ["s", "a"]}, {"at": 3, "for": "5s", "cut": ["s", "a"]}]
    [(at, text)] = problems(faulty(*twice))
    assert at == "faults.1.at" and "has not ended yet" in text
    twice[1]["at"] = 6
    assert problems(faulty(*twice)) == []


def delivered_s(directory: Path) -> list[float]:
    """When tuples were delivered, since the first fault."""
    zero = events(directory)[0]["t_ns"]
    records = tuple_by_tuple(read_records(directory / "nodes" / "z" / "segments"))
    return [(r["t_ns"] - zero) / NS for r in records if r["kind"] == "tuple_delivered"]


def events(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ({"west": ["s", "a", "b"], "east": ["z"]}, "west (s, a, b) | east (z)"),
        ("z", "z | the other 3"),
        (["s", "a", "b"], "s, a, b | z"),
    ],
)
@pytest.mark.parametrize("radio", ["disc", "802.11b"])
def test_nothing_passes_between_the_sides_of_a_partition(
    tmp_path: Path, partition: Any, words: str, radio: str
) -> None:
    described = faulty({"at": "3s", "for": "4s", "partition": partition}, duration="12s")
    if radio != "disc":
        described = Experiment.model_validate(
            described.resolved() | {"topology": described.resolved()["topology"] | {"radio": WIFI}}
        )
    simulated(described, tmp_path)
    assert [(e["action"], e["node"]) for e in events(tmp_path)] == [("partition", words), ("heal", words)]
    times = delivered_s(tmp_path)
    assert sum(t < 0 for t in times) > 20
    assert [t for t in times if 0.05 < t < 4.0] == [], "no frame passes"
    assert sum(t > 4.0 for t in times) > 30, "exactly once: everything arrives after all"
    (outage,) = outages(events(tmp_path))
    assert (outage.what, outage.node) == ("partition", words)
    assert outage.until_ns is not None and outage.until_ns - outage.from_ns == 4 * NS


def test_a_link_that_is_cut_sends_the_stream_another_way(tmp_path: Path) -> None:
    simulated(faulty({"at": "3s", "for": "4s", "cut": ["s", "a"]}, duration="12s"), tmp_path)
    assert [e["action"] for e in events(tmp_path)] == ["cut", "mend"]
    links = [json.loads(line) for line in (tmp_path / "radio" / "links.jsonl").read_text().splitlines()]
    lost = [(each["src"], each["dst"]) for each in links if not each["up"]]
    assert sorted(lost) == [("a", "s"), ("s", "a")]
    assert len([t for t in delivered_s(tmp_path) if 0 < t < 4.0]) > 10, "over b, or over a by way of b"


def test_a_weakened_link_costs_more_and_recovers(tmp_path: Path) -> None:
    described = experiment(
        topology=topology(
            nodes=["s", "a", "z"],
            area="900 m x 300 m",
            mobility={"model": "static", "positions": {"s": [0, 0], "a": [100, 0], "z": [200, 0]}},
            radio=WIFI,
        ),
        routing="ground_truth",
        query={"name": "synthetic_chain", "operators": 1},
        placement={"policy": "explicit", "nodes": {"camera": ["s"], "op1": ["a"], "screen": ["z"]}},
        duration="4s",
        faults=[{"at": "1s", "for": "2s", "degrade": {"link": ["s", "z"], "by": "90 dB"}}],
    )
    simulated(described, tmp_path)
    links = [json.loads(line) for line in (tmp_path / "radio" / "links.jsonl").read_text().splitlines()]
    changed = [
        (each["src"], each["dst"], each["up"]) for each in links if each["t_ns"] > 0 and each["dst"] == "z"
    ]
    assert ("s", "z", False) in changed and changed[-1] == ("s", "z", True)
    assert [e["node"] for e in events(tmp_path)] == ["s – z by 90 dB"] * 2


def test_a_moved_node_is_elsewhere_and_comes_back(tmp_path: Path) -> None:
    fault = {"at": "2s", "for": "4s", "move": {"node": "z", "to": ["300 m", "300 m"]}}
    simulated(faulty(fault, duration="9s"), tmp_path)
    positions = [
        json.loads(line) for line in (tmp_path / "radio" / "positions.jsonl").read_text().splitlines()
    ]
    zero = events(tmp_path)[0]["t_ns"]
    places = [((p["t_ns"] - zero) / NS, (p["x"], p["y"])) for p in positions if p["node"] == "z"]
    assert {place for t, place in places if 0.2 < t < 4.0} == {(300.0, 300.0)}
    assert {place for t, place in places if t < 0 or t > 4.2} == {(200.0, 0.0)}
    assert [e["node"] for e in events(tmp_path)] == ["z to (300, 300) m"] * 2


@pytest.mark.parametrize("kind", ["crash", "silence"])
def test_the_replica_in_use_is_hit_wherever_the_stream_goes(tmp_path: Path, kind: str) -> None:
    target = {"operator": "op1", "in_use": True}
    faults = [{"at": "3s", "for": "20s", kind: target}, {"at": "8s", "for": "2s", kind: target}]
    described = faulty(*faults, duration="16s")
    simulated(described, tmp_path)
    hit = [(e["action"], e["node"], e["in_use"]) for e in events(tmp_path) if "in_use" in e]
    assert hit == [(kind, "a", "op1/0"), (kind, "b", "op1/1")], "b has taken over by then"
    assert describe(events(tmp_path)[0]) == f"fault: {kind} a (op1/0 was in use)"
    if kind == "crash":
        assert agent_crashes(events(tmp_path)) == {"a": 1, "b": 1}


def test_two_crashes_of_one_node_at_once_are_one_kill(tmp_path: Path) -> None:
    """Otherwise the verdict would tolerate one more agent that died by itself."""
    faults: list[dict[str, Any]] = [
        {"at": "3s", "for": "6s", "crash": {"operator": "op1", "in_use": True}},
        {"at": "4s", "for": "2s", "crash": {"node": "a"}},
        {"at": "11s", "for": "2s", "crash": {"node": "a"}},
    ]
    simulated(faulty(*faults, duration="16s"), tmp_path)
    done = [(each["action"], each["node"]) for each in events(tmp_path)]
    assert done == [("crash", "a"), ("crash", "a"), ("restart", "a"), ("crash", "a"), ("restart", "a")]
    assert agent_crashes(events(tmp_path)) == {"a": 2}


def test_a_fault_that_finds_nothing_in_use_says_so(tmp_path: Path) -> None:
    faults: list[dict[str, Any]] = [
        {"at": "1s", "partition": ["s"]},
        {"at": "8s", "crash": {"operator": "op1", "in_use": True}},
    ]
    simulated(faulty(*faults, duration="10s"), tmp_path)
    (_, missed) = events(tmp_path)
    assert missed["kind"] == "fault_missed" and missed["reason"] == "no replica of op1 was in use"


def test_the_same_faults_on_what_is_in_use_give_the_same_run(tmp_path: Path) -> None:
    described = faulty({"at": "2s", "for": "3s", "crash": {"operator": "op1", "in_use": True}}, duration="6s")
    for name in ("one", "two"):
        simulated(described, tmp_path / name)
    one, two = (
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name / "nodes").rglob("*.jsonl")
        }
        for name in ("one", "two")
    )
    assert one == two
