"""Queries that share selections: what files may say of it, where managers run, and whole runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.mcep.config import settings_problems
from node_agent.telemetry.segments import read_records
from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.test_interest_section import misplanned, misread
from tests.unit.orchestrator.apps.mcep.town import BROKERS, CARS, QUERY, document, planned
from tests.unit.rove_process import RUN_ID, rove, run_under_test, verdict

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

Look = Callable[[Path, list[dict[str, Any]]], None]
OWN = {**QUERY, "suppression": False, "home": "b1"}


def shared(reuse: Any = None, near: dict[str, Any] | None = None, **others: dict[str, Any]) -> dict[str, Any]:
    """Two queries of two cars, on two brokers."""
    queries = {"near": {**OWN, **(near or {})}, "also": {**OWN, "focal": "car2", "home": "b2"}}
    return {"reuse": {} if reuse is None else reuse, "queries": queries | others}


def test_the_plan_says_who_can_share_and_where_that_is_decided() -> None:
    third = {**OWN, "focal": "car3", "parameters": {"readings": 4}}
    fourth = {**OWN, "focal": "car4", "reuse": False}
    low = {"reuse": {"precision": "30%", "recall": "20%"}}
    plan = planned(document(shared({"batch": {"time": "5s"}}, low, third=third, fourth=fourth)))
    shown = "\n".join(map(str, plan.shown()))
    assert "maximum neighbour, exact similarity, batches of 5 s, each 1 s" in shown
    assert "near wants precision above 0.3 and recall above 0.2" in shown
    assert "selection manager average_speed (readings 3, within 5): averaging on b1: also, near\n" in shown
    assert "averaging on b1: third (it has nobody to share with)" in shown
    reuse = plan.recorded.settings.reuse
    assert reuse is not None and plan.document()["reuse"]["seconds"] == 5.0
    assert {key for each in reuse.managers for key in each.operators} == {
        "near/averaging",
        "also/averaging",
        "third/averaging",
    }


def test_one_query_can_be_that_of_each_of_some_clients() -> None:
    every = {key: value for key, value in OWN.items() if key != "focal"}
    plan = planned(document({"reuse": {}, "queries": {"near": {**every, "each": ["car1..car3", "car4"]}}}))
    settings = plan.recorded.settings
    names = [f"near-car{number}" for number in (1, 2, 3, 4)]
    assert [(each.name, each.focal) for each in settings.queries] == [(n, n[5:]) for n in names]
    assert settings.reuse is not None and len(settings.reuse.managers[0].operators) == 4
    ((at, message),) = misplanned({"queries": {"near": {**every, "each": ["car1", "car9"]}}})
    assert at == "interest.queries.near-car9.focal" and "no client" in message
    for wrong, words in (
        ({"each": ["car1", "car1"]}, "listed twice"),
        ({"each": []}, "whom does the interest follow"),
        ({"each": "car1"}, "no list of clients"),
        ({}, "whom does the interest follow"),
        ({"each": ["car1"], "focal": "car2"}, "of one client or of each of some"),
    ):
        (message,) = misread({"queries": {"near": {**every, **wrong}}})
        assert words in message


def test_many_operators_are_split_by_place() -> None:
    others = {f"q{n}": {**OWN, "focal": f"car{n}"} for n in (3, 4)}
    plan = planned(document(shared({"group": 2}, **others)))
    reuse = plan.recorded.settings.reuse
    assert reuse is not None and sorted(len(each.operators) for each in reuse.managers) == [2, 2]


@pytest.mark.parametrize(
    ("interest", "place", "words"),
    [
        (shared(near={"suppression": True}), "queries.near", "suppression finds its own old results"),
        (
            shared(near={"completeness": "strong", "cells": "50 m"}),
            "queries.near",
            "asks for strong completeness",
        ),
        (shared(near={"predict": {"ahead": "2s"}}), "queries.near", "it prepares graphs"),
        (shared(near={"migrate": {}}), "queries.near", "their selection managers do not follow"),
        (shared({"operators": ["mean"]}), "reuse.operators.0", "no query that shares has an operator mean"),
        (
            {"reuse": {}, "queries": {"near": {**QUERY, "reuse": False}}},
            "reuse",
            "all say reuse: false",
        ),
        (
            {"queries": {"near": {**QUERY, "reuse": {"recall": "90%"}}}},
            "queries.near.reuse",
            "nothing is shared",
        ),
    ],
)
def test_what_cannot_share_is_one_clear_error(interest: dict[str, Any], place: str, words: str) -> None:
    ((at, message),) = misplanned(interest)
    assert at == f"interest.{place}" and words in message


@pytest.mark.parametrize(
    ("reuse", "words"),
    [
        ({"algorithm": "msm"}, '"msm" is not known'),
        ({"similarity": "roughly"}, '"roughly" is not known'),
        ({"quality": {"precision": "120%"}}, "120%"),
        ({"batch": {"count": 5, "time": "5s"}}, "a batch is by one of them"),
        ({"batch": {}}, "a batch is by one of them"),
        ({"batch": {"count": 0}}, "0"),
        ({"period": "0s"}, "0s"),
        ({"neighbours": {"k": 0}}, "0"),
        ({"cell": {"size": "0 m"}}, "0 m"),
        ({"group": True}, "expected a whole number"),
        ({"operators": []}, "no operator shares"),
        ({"sometimes": True}, "unknown key"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(reuse: dict[str, Any], words: str) -> None:
    (message,) = misread(shared(reuse))
    assert words in message


def test_agents_refuse_managers_that_cannot_be() -> None:
    settings = planned(document(shared())).recorded.settings
    reuse = settings.reuse
    assert reuse is not None and settings_problems(settings) == []
    (manager,) = reuse.managers
    changed = msgspec.structs.replace
    other = changed(settings.queries[1], parameters={"readings": 9, "within": 5})
    queries = (settings.queries[0], other)

    def problem(**changes: Any) -> str:
        wrong = changed(reuse, managers=(changed(manager, **changes),))
        (text,) = settings_problems(changed(settings, reuse=wrong))
        return text

    assert "car1 is no broker" in problem(broker="car1")
    assert "there is no operator near/x" in problem(operators=("near/x",))
    assert "is there twice" in problem(operators=("near/averaging", "near/averaging"))
    assert "do not do the same" in settings_problems(changed(settings, queries=queries))[0]
    both = changed(reuse, selections=2, seconds=2.0)
    assert "not by both" in settings_problems(changed(settings, reuse=both))[0]
    stranger = changed(reuse, by_query={"far": (0.5, 0.5)})
    assert "far shares nothing" in settings_problems(changed(settings, reuse=stranger))[0]


def _facts(found: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    keys = ("query", "number", "epoch", "type", "at_ns", "facts", "x", "y")
    return sorted((*(each[key] for key in keys), tuple(each["ancestors"])) for each in found)


def situations(run: RunDirectory) -> list[dict[str, Any]]:
    every = (record for node in (*BROKERS, *CARS) for record in read_records(run.segments(node)))
    return [record for record in every if record["kind"] == "situation_found"]


def _run(
    folder: Path, interest: dict[str, Any], cuts: Any = None, look: Look = lambda runs, found: None
) -> list[dict[str, Any]]:
    """``look``: sees the runs' directory and situations before all is gone."""
    folder.mkdir()
    file = folder / "town.yaml"
    file.write_text(to_yaml(document(interest, cuts)))
    with run_under_test(folder / "runs") as run:
        ended = rove(folder / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert verdict(run)["verdict"] == "valid"
        found = situations(run)
        look(folder / "runs", found)
        return found


def test_who_shares_equal_selections_delivers_what_it_would_alone(tmp_path: Path) -> None:
    """Over links that are cut for a while, and with managers on another broker."""
    cuts = {BROKERS: [["0s", "6s"], ["14s", "100s"]]}
    all_of_it = shared({"quality": {"precision": "100%", "recall": "100%"}}, {"radius": "900 m"})
    all_of_it["queries"]["also"]["radius"] = "900 m"
    alone = {"queries": all_of_it["queries"]}
    found = _run(tmp_path / "shared", all_of_it, cuts)
    assert len(found) > 100 and _facts(found) == _facts(_run(tmp_path / "alone", alone))


def _explains(runs: Path, found: list[dict[str, Any]]) -> None:
    """Why a result came from another query's selection, and what managers had decided."""
    assert {each["by"] for each in found} == {None, "near", "also"}
    other = next(each for each in found if each["by"] is not None)
    assert other["by"] != other["query"] and 0.3 < other["precision"] <= 1
    own = next(each for each in found if each["by"] is None)
    name = f"{other['query']}#{other['number']}"
    told = rove(runs, "explain", RUN_ID, "--event", name, timeout=100)
    words = " ".join(told.stdout.split())
    assert f"it is the result of a selection of {other['by']}, which was processed for both" in words
    told = rove(runs, "explain", RUN_ID, "--event", f"{own['query']}#{own['number']}", timeout=100)
    assert "its own selection was processed" in " ".join(told.stdout.split())
    told = rove(runs, "explain", RUN_ID, "--at", "25s", timeout=100)
    assert "averaging decided about" in " ".join(told.stdout.split()), told.stdout


def test_similar_selections_give_what_the_rehearsal_gives(tmp_path: Path) -> None:
    """What is shared does not depend on delays, so the rehearsal without a network says what must come."""
    interest = shared({"algorithm": "msh", "quality": {"precision": "30%", "recall": "30%"}})
    cuts = {BROKERS: [["0s", "6s"], ["14s", "100s"]]}
    found = _run(tmp_path / "shared", interest, cuts, _explains)
    rehearsal = Rehearsal(planned(document(interest)).recorded)
    played = rehearsal.play()
    for query in ("near", "also"):
        own = sorted((each for each in found if each["query"] == query), key=lambda each: each["number"])
        assert [(e["epoch"], e["type"], e["at_ns"], tuple(e["ancestors"])) for e in own] == [
            each[:4] for each in played[query]
        ]
    (work,) = [each.work for broker in rehearsal.brokers.values() for each in broker.managers.values()]
    assert 0 < work.processed < work.offered
