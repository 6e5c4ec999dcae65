"""Operators that move, from an experiment file to a whole run in virtual time."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.test_interest_runs import delivered, records, rehearsed
from tests.unit.orchestrator.apps.mcep.test_interest_section import misplanned, misread, query
from tests.unit.orchestrator.apps.mcep.town import QUERY, document, planned
from tests.unit.rove_process import RUN_ID, rove, run_under_test, verdict

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

MOVES = [
    {"at": "6s", "operator": "averaging", "to": "b2"},
    {"at": "12s", "operator": "averaging", "to": "b1"},
    {"at": "18s", "operator": "averaging", "to": "b2"},
]


def moving(**migrate: Any) -> dict[str, Any]:
    return {**query(suppression=False, home="b1"), "migrate": migrate}


def shown(**migrate: Any) -> str:
    return "\n".join(map(str, planned(document(moving(**migrate))).shown()))


def test_rove_plan_shows_how_operators_move() -> None:
    text = shown(moves=MOVES, state="3 kB")
    assert "averaging moves to b2 at 6 s, live" in text and "averaging 3,000 B" in text
    text = shown(plan={"mobiles": "navigation"}, limit="35 ms")
    assert "follow plans (weighted sum) of 25 steps of 4 s, the object on its known drive" in text
    assert "within 35 ms" in text
    text = shown(greedy=True, method="stop_and_copy")
    assert "where it is cheapest each 5 s, stopped and copied" in text
    assert "stay where they are" in shown()


def test_a_query_says_for_itself_how_its_operators_move() -> None:
    own = {**QUERY, "suppression": False, "migrate": {"moves": MOVES}}
    both = {"queries": {"near": own, "other": {**QUERY, "migrate": False}}, "migrate": {"greedy": {}}}
    first, other = planned(document(both)).recorded.settings.queries
    assert first.migrate is not None and len(first.migrate.moves) == 3 and first.migrate.greedy is None
    assert other.migrate is None


def test_brokers_are_as_far_from_each_other_as_their_links_say() -> None:
    between = planned(document(moving())).recorded.settings.between
    assert between is not None and between.latency[0][0] == 0.0 and between.latency[0][1] < 0.1
    assert planned(document()).recorded.settings.between is None


@pytest.mark.parametrize(
    "migrate, place, message",
    [
        ({"state": {"sum": "1 kB"}}, "interest.migrate.state.sum", "has no operator"),
        ({"moves": [{**MOVES[0], "to": "car1"}]}, "interest.migrate.moves.0.to", "is no broker"),
        ({"moves": [{**MOVES[0], "operator": "x"}]}, "interest.migrate.moves.0.operator", "has no operator"),
        ({"plan": True, "room": {"b7": 1}}, "interest.migrate.room.b7", "is no broker"),
        ({"moves": [{**MOVES[0], "at": "30s"}]}, "interest.migrate.moves.0.at", "clients leave after 30 s"),
        (
            {"moves": [*MOVES, {**MOVES[1], "to": "b2"}]},
            "interest.migrate.moves.3.at",
            "already moves at this time",
        ),
    ],
)
def test_what_does_not_fit_is_told_at_its_place(migrate: dict[str, Any], place: str, message: str) -> None:
    ((at, text),) = misplanned(moving(**migrate))
    assert at == place and message in text


def test_queries_whose_operators_cannot_move_are_refused() -> None:
    (found,) = misplanned({**query(), "migrate": {}})
    assert found[0] == "interest.queries.near.suppression" and "does not move" in found[1]
    hurried = query(suppression=False, completeness="best_effort")
    (found,) = misplanned({**hurried, "migrate": {}})
    assert found[0] == "interest.queries.near.completeness"
    (found,) = misplanned({**query(suppression=False, predict={"ahead": "2s"}), "migrate": {}})
    assert found[0] == "interest.queries.near.predict"


@pytest.mark.parametrize(
    "migrate, message",
    [
        ({"plan": True, "greedy": True}, "plan and greedy are given"),
        ({"method": "teleport"}, "is no method"),
        ({"limit": "5 ms"}, "only plans know limits"),
        ({"room": {"b1": 1}}, "only plans ask brokers for room"),
        ({"plan": {"step": "50s", "horizon": "60s"}}, "has 1 steps"),
        ({"plan": {"mobiles": "psychic"}}, "psychic"),
    ],
)
def test_what_makes_no_sense_is_refused(migrate: dict[str, Any], message: str) -> None:
    assert message in misread(moving(**migrate))[0]


def _run(folder: Path, whole: dict[str, Any], *more: str) -> None:
    file = folder / "town.yaml"
    file.write_text(to_yaml(whole))
    ended = rove(folder / "runs", "run", str(file), "--run-id", RUN_ID, *more, timeout=250)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_operators_move_in_a_run_and_results_are_those_of_the_rehearsal(tmp_path: Path) -> None:
    whole = document(moving(moves=MOVES, state="100 kB"))
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole, "--no-analyze")
        assert verdict(run)["verdict"] == "valid"
        found = delivered(run)
        assert len(found) > 20 and found == rehearsed(planned(whole).recorded)
        placed = [each for each in records(run, "operator_placed") if each["migration"]]
        assert [(each["target"], each["outcome"]) for each in placed] == [
            ("b2", "moved"),
            ("b1", "moved"),
            ("b2", "moved"),
        ]
        copied = max(each["state_copied"] for each in records(run, "operator_traffic"))
        assert copied == 200_000, "b1 sent its state twice"
        listed = rove(tmp_path / "runs", "explain", RUN_ID, "--json", timeout=100)
        moves = json.loads(listed.stdout)["moves"]
        assert [each["target"] for each in moves] == ["b2", "b1", "b2"]
        assert all(each["why"] == "the experiment says so" for each in moves)
        told = rove(tmp_path / "runs", "explain", RUN_ID, timeout=100).stdout.splitlines()
        times = [float(line.split()[0]) for line in told if " s  near" in line]
        assert len(times) > len(moves) and times == sorted(times), "switches and moves in one order"
        few = rove(tmp_path / "runs", "explain", RUN_ID, "--most", "1", timeout=100).stdout
        assert "the newest 1 of 3 moves" in few
        at = rove(tmp_path / "runs", "explain", RUN_ID, "--at", "10s", "--json", timeout=100)
        assert json.loads(at.stdout)["queries"][0]["operators"] == {"averaging": "b2"}


def test_a_killed_broker_stalls_operators_that_move_and_spoils_nothing(tmp_path: Path) -> None:
    faults = [{"at": "12.3s", "for": "3s", "crash": {"node": "b2"}}]
    whole = document(moving(moves=MOVES, state="1 MB"), faults=faults)
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole, "--no-analyze")
        found, wanted = delivered(run), rehearsed(planned(whole).recorded)
        assert 0 < len(found) < len(wanted) and found == wanted[: len(found)]


def test_operators_that_follow_plans_change_no_result(tmp_path: Path) -> None:
    plan = {"mobiles": "linear", "step": "2s", "horizon": "20s", "refresh": "4s"}
    whole = document(moving(plan=plan))
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole, "--no-analyze")
        recorded = planned(whole).recorded
        assert delivered(run) == rehearsed(recorded) == [e[:4] for e in Rehearsal(recorded).play()["near"]]
        assert sum(each["planning"] for each in records(run, "operator_traffic")) > 0
