"""An operator with state moves while tuples flow, in virtual time: nothing is lost, repeated or reordered."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, Operator, OperatorUnusable
from node_agent.apps.dataflow.operators.synthetic import WORK, Work
from node_agent.migration.live.disk import Files
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.runs.backend import Status
from tests.unit.specs import experiment, planned, topology

SECONDS, AT = 24, 3
STATE = 500_000
NODES = {"camera": ["n0"], "detect": ["n1"], "recognise": ["n2"], "screen": ["n4"]}


QUERY: dict[str, Any] = {
    "operators": {
        "camera": {"kind": "synthetic_source", "rate": 10, "payload": "2 kB"},
        "detect": {"kind": "work", "after": "camera", "cpu": "5 ms"},
        "recognise": {"kind": "work", "after": "detect", "cpu": "10 ms", "state": STATE},
        "screen": {"kind": "sink", "after": "recognise"},
    }
}


class Moved:
    """What a run recorded. ``steps``: of its migrations, in order: number, step and detail."""

    def __init__(
        self,
        directory: Path,
        migrations: list[dict[str, Any]],
        operator: str = "recognise",
        **settings: Any,
    ) -> None:
        described = experiment(
            topology=topology(
                nodes=[f"n{i}" for i in range(5)],
                area="100 m x 100 m",
                mobility={"model": "static", "scatter": True},
            ),
            routing="ground_truth",
            query=settings.pop("query", QUERY),
            placement=settings.pop("placement", {"policy": "explicit", "nodes": NODES}),
            migrations=migrations,
            duration=f"{SECONDS}s",
            **settings,
        )
        run = Simulation(planned(described), "run", directory)
        run.up()
        run.converge()
        run.open_sources()
        run.advance(SECONDS * 1_000_000_000)
        assert {outcome.status for outcome in run.stop()} == {Status.OK}
        records = [
            json.loads(line)
            for path in sorted(directory.rglob("segments/*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        records.sort(key=lambda record: record["t_ns"])
        each = list(tuple_by_tuple(records))
        self.emitted = [r["tau"] for r in each if r["kind"] == "tuple_emitted" and r["origin"] == "camera/0"]
        arrived = [r for r in each if r["kind"] == "tuple_delivered"]
        self.delivered = [r["tau"] for r in arrived]
        self.gap_s = max((b["t_ns"] - a["t_ns"]) / 1e9 for a, b in pairwise(arrived))
        self.migration = [r for r in records if r["kind"] == "migration"]
        self.steps = [(r["migration"], r["step"], r["detail"]) for r in self.migration]
        self.processed_at = [
            r["node"] for r in each if r["kind"] == "tuple_processed" and r["replica"] == f"{operator}/0"
        ]

    def check_stream(self) -> None:
        """Every tuple arrived once and in order, but for the few that were under way at the end."""
        assert len(self.emitted) >= SECONDS * 10
        assert self.delivered == list(range(1, len(self.delivered) + 1))
        assert len(self.delivered) >= len(self.emitted) - 3


def move(to: str = "n3", at: float = AT, **more: Any) -> dict[str, Any]:
    return {"at": f"{at}s", "operator": "recognise", "to": to, **more}


def test_there_and_back(tmp_path: Path) -> None:
    back = move("n2", 12, method="stop_and_copy")
    run = Moved(tmp_path, [move(), back])
    run.check_stream()
    assert [(n, d) for n, step, d in run.steps if step == "ordered"] == [(1, "live"), (2, "stop_and_copy")]
    assert (1, "finished", "moved") in run.steps and (2, "finished", "moved") in run.steps
    assert list(dict.fromkeys(run.processed_at)) == ["n2", "n3"] and run.processed_at[-1] == "n2"
    (copied, again) = [r["size"] for r in run.migration if r["step"] == "took_over"]
    assert STATE <= copied < STATE * 1.5 and STATE <= again < STATE * 1.5


def test_live_hardly_stands_still_and_stop_and_copy_does(tmp_path: Path) -> None:
    live = Moved(tmp_path / "live", [move()])
    stopped = Moved(tmp_path / "stop", [move(method="stop_and_copy")])
    live.check_stream()
    stopped.check_stream()
    assert live.gap_s < 0.25 < stopped.gap_s


DURING = AT + 0.15
"""While state is copied, which takes about half a second."""


@pytest.mark.parametrize(
    ("fault", "ends", "at"),
    [
        ({"for": "4s", "crash": {"node": "n3"}}, "moved", "n3"),
        ({"for": "4s", "crash": {"node": "n2"}}, "moved", "n3"),
        ({"crash": {"node": "n3"}}, "target_gone", "n2"),
        ({"crash": {"node": "n2"}}, "moved", "n3"),
        ({"for": "6s", "cut": ["n2", "n3"]}, "moved", "n3"),
        ({"for": "5s", "silence": {"node": "n3"}}, "moved", "n3"),
        ({"for": "15s", "silence": {"node": "n2"}}, "moved", "n3"),
    ],
    ids=[
        "target restarts",
        "source restarts",
        "target gone",
        "source gone",
        "link cut",
        "target silent",
        "source mourned",
    ],
)
def test_faults_lose_nothing(tmp_path: Path, fault: dict[str, Any], ends: str, at: str) -> None:
    run = Moved(tmp_path, [move()], faults=[{"at": f"{DURING}s", **fault}])
    run.check_stream()
    assert run.steps[-1][1] in ("finished", "superseded")
    assert {d for _, step, d in run.steps if step == "finished"} == {ends}
    assert run.processed_at[-1] == at


@pytest.mark.parametrize("to", ["n0", "n1", "n4"], ids=["source", "predecessor", "sink and coordinator"])
def test_a_target_may_have_other_parts(tmp_path: Path, to: str) -> None:
    run = Moved(tmp_path, [move(to)])
    run.check_stream()
    assert run.processed_at[-1] == to


def test_an_operator_without_state_moves_beside_a_source(tmp_path: Path) -> None:
    """Its predecessor is the source itself, its successor an operator."""
    run = Moved(tmp_path, [move() | {"operator": "detect"}], "detect")
    run.check_stream()
    assert run.processed_at[0] == "n1" and run.processed_at[-1] == "n3"


def test_several_sinks_get_everything(tmp_path: Path) -> None:
    operators = QUERY["operators"] | {"archive": {"kind": "sink", "after": "recognise"}}
    nodes = NODES | {"archive": ["n0"]}
    placement = {"policy": "explicit", "nodes": nodes}
    run = Moved(tmp_path, [move()], query={"operators": operators}, placement=placement)
    assert sorted(run.delivered) == sorted(2 * list(range(1, len(run.delivered) // 2 + 1)))


def test_a_saturating_source_and_a_small_buffer(tmp_path: Path) -> None:
    """The source waits for the operator; nothing is dropped while it stops to be copied."""
    camera = QUERY["operators"]["camera"] | {"rate": "saturate", "limit": 400}
    detect = QUERY["operators"]["detect"] | {"state": STATE, "buffers": {"camera": 8}}
    query = {"operators": QUERY["operators"] | {"camera": camera, "detect": detect}}
    run = Moved(
        tmp_path, [move(at=1, method="stop_and_copy") | {"operator": "detect"}], "detect", query=query
    )
    assert run.delivered == list(range(1, 401))
    assert run.processed_at[0] == "n1" and run.processed_at[-1] == "n3"


def test_a_node_that_an_operator_has_left_is_not_needed(tmp_path: Path) -> None:
    """Its routes are no reason for sources to wait."""
    run = Moved(tmp_path, [move()], faults=[{"at": "12s", "silence": {"node": "n2"}}])
    run.check_stream()


def test_who_goes_where_he_is_stays(tmp_path: Path) -> None:
    """The first migration is given up at once, so the second one has nothing to do."""
    run = Moved(tmp_path, [move(give_up="0.1s"), move("n2", 12)])
    run.check_stream()
    assert [d for _, step, d in run.steps if step == "finished" and d != "moved"] == [
        "given_up",
        "given_up",
        "already_there",
    ]


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    runs = [Moved(tmp_path / name, [move()]) for name in ("one", "two")]
    strip = [[{**r, "seq": 0} for r in run.migration] for run in runs]
    assert strip[0] == strip[1] and runs[0].delivered == runs[1].delivered


def test_who_cannot_use_the_state_refuses_and_the_operator_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restored(params: Any, context: Context, state: bytes) -> Operator:
        if context.time() > AT / 2:
            raise OperatorUnusable("its model is of another edition")
        return Work(params, context)

    kind = msgspec.structs.replace(WORK, restore=restored)
    monkeypatch.setitem(OPERATORS._loaded, "work", kind)
    run = Moved(tmp_path, [move(), move("n1", 12)])
    run.check_stream()
    told = [(step, detail) for number, step, detail in run.steps if number == 1]
    assert ("unusable", "its model is of another edition") in told
    assert told[-1] == ("finished", "unusable")
    assert set(run.processed_at) == {"n2"}


def test_a_node_whose_disk_is_full_refuses_and_the_operator_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(files: Files[Any], state: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Files, "store", full)
    run = Moved(tmp_path, [move()])
    run.check_stream()
    assert run.steps[-1][1:] == ("finished", "unusable")
    assert any(step == "unusable" and "No space left" in detail for _, step, detail in run.steps)
    assert set(run.processed_at) == {"n2"}


def some_faults(seed: int) -> list[dict[str, Any]]:
    """One or two that end, at one host or between two roles, while or after state is copied."""
    draw = random.Random(seed)
    links = [["n2", "n3"], ["n1", "n3"], ["n3", "n4"], ["n1", "n2"], ["n2", "n4"]]
    targets: list[Any] = draw.sample([{"node": "n2"}, {"node": "n3"}, *links], draw.choice([1, 2]))
    return [
        {
            "at": f"{draw.uniform(AT - 0.1, AT + 1.2):.3f}s",
            "for": f"{draw.uniform(0.2, 12):.2f}s",
            ("cut" if isinstance(target, list) else draw.choice(["crash", "silence"])): target,
        }
        for target in targets
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_faults_at_random_lose_nothing(tmp_path: Path, seed: int) -> None:
    method = "stop_and_copy" if seed % 3 == 0 else "live"
    run = Moved(tmp_path, [move(method=method), move("n2", 14)], faults=some_faults(seed))
    run.check_stream()
