"""Whole runs in virtual time, with links that are cut and a broker that is killed, against an observer."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.mcep.oracle import Oracle
from node_agent.apps.mcep.application import RESTARTED
from node_agent.apps.mcep.config import query_of, readings_of
from node_agent.apps.mcep.model import Event, atomic
from node_agent.telemetry.segments import read_records
from orchestrator.apps.mcep.plan import Recorded
from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.unit.orchestrator.apps.mcep.town import BROKERS, CARS, QUERY, document, planned
from tests.unit.rove_process import RUN_ID, rove, run_under_test, verdict

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

Result = tuple[int, str, int, tuple[str, ...]]
"""Epoch, type, time and ancestors."""


def records(run: RunDirectory, kind: str) -> list[dict[str, Any]]:
    every = (record for node in (*BROKERS, *CARS) for record in read_records(run.segments(node)))
    return [record for record in every if record["kind"] == kind]


def delivered(run: RunDirectory) -> list[Result]:
    found = sorted(records(run, "situation_found"), key=lambda record: record["number"])
    return [(each["epoch"], each["type"], each["at_ns"], tuple(each["ancestors"])) for each in found]


def rehearsed(recorded: Recorded) -> list[Result]:
    return [each[:4] for each in Rehearsal(recorded).play()["near"]]


def observed(recorded: Recorded) -> list[Result]:
    """By the oracle, which shares no code with brokers and clients, except for when interests switch."""
    settings = recorded.settings
    events: list[Event] = []
    for name in settings.clients:
        events += [
            atomic(each.type, each.t, each.place, number, name, each.attributes)
            for number, each in enumerate(readings_of(recorded.config(name)))
        ]
    rehearsal = Rehearsal(recorded)
    rehearsal.play()
    (config,) = settings.queries
    markers = rehearsal.brokers[config.home].markers(config.name)
    world: Any = SimpleNamespace(query=query_of(config), events=sorted(events, key=lambda event: event.key))
    oracle = Oracle(world, markers)
    return [
        (
            epoch,
            event.type,
            round(event.t * 1e9),
            tuple(f"{source}#{seq}" for source, seq in sorted(event.provenance)),
        )
        for epoch in range(1, len(markers))
        for event in oracle.expected(epoch)
    ]


def _run(folder: Path, whole: dict[str, Any]) -> None:
    file = folder / "town.yaml"
    file.write_text(to_yaml(whole))
    ended = rove(folder / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_cut_links_delay_results_and_change_none(tmp_path: Path) -> None:
    cuts = {BROKERS: [["0s", "6s"], ["14s", "100s"]], ("car2", "b2"): [["0s", "12s"], ["22s", "100s"]]}
    whole = document(cuts=cuts)
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole)
        assert verdict(run)["verdict"] == "valid"
        found = delivered(run)
        recorded = planned(whole).recorded
        assert len(found) > 20 and found == rehearsed(recorded) == observed(recorded)
        reasons = [each["reason"] for each in records(run, "interest_stalled")]
        assert any("waits for" in each for each in reasons) and reasons[-1] == ""
        explained = rove(tmp_path / "runs", "explain", RUN_ID, "--event", "near#3", "--json", timeout=100)
        assert explained.returncode == 0, explained.stderr
        told = json.loads(explained.stdout)
        assert len(told["ancestors"]) == 3 and all(
            "from the middle of the region" in each["text"] for each in told["ancestors"]
        )
        listed = rove(tmp_path / "runs", "explain", RUN_ID, "--json", timeout=100)
        switches = json.loads(listed.stdout)["switches"]
        assert json.loads(listed.stdout)["queries"]["near"]["situations"] == len(found)
        few = rove(tmp_path / "runs", "explain", RUN_ID, "--query", "near", "--most", "1", timeout=100)
        assert "the newest 1 of" in few.stdout and f"near: {len(switches)} switches" in few.stdout
        nobody = rove(tmp_path / "runs", "explain", RUN_ID, "--query", "far", timeout=100)
        assert nobody.returncode != 0 and "far is no query of interest" in nobody.stderr
        late = rove(tmp_path / "runs", "explain", RUN_ID, "--at", "44s", "--replica", "b1", timeout=100)
        assert "b1: all arrived, and all clients have left; keeps" in late.stdout and "b2:" not in late.stdout
        assert "more than 20 m" in switches[2]["why"] and "left" in switches[-1]["why"]


def test_a_killed_broker_stalls_and_spoils_nothing(tmp_path: Path) -> None:
    whole = document(faults=[{"at": "12s", "for": "3s", "crash": {"node": "b2"}}])
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole)
        found, wanted = delivered(run), rehearsed(planned(whole).recorded)
        assert 0 < len(found) < len(wanted) and found == wanted[: len(found)]
        told = {each["node"]: each["reason"] for each in records(run, "interest_stalled")}
        assert told["b2"] == RESTARTED and "waits for" in told["b1"]


def test_best_effort_goes_on_without_those_who_are_gone(tmp_path: Path) -> None:
    hasty = {
        **QUERY,
        "suppression": False,
        "completeness": "best_effort",
        "switch": {"after": "3s"},
        "home": "b1",
    }
    faults = [{"at": "8s", "crash": {"node": "car4"}}, {"at": "12s", "for": "9s", "crash": {"node": "b2"}}]
    interest = {"queries": {"near": {**hasty, "radius": "400 m"}}}
    whole = document(interest, faults=faults)
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole)
        found = sorted(records(run, "situation_found"), key=lambda record: record["number"])
        order = [(each["epoch"], each["at_ns"]) for each in found]
        assert order == sorted(order) and order[-1][1] > 25e9
        late = {
            name.partition("#")[0] for each in found if each["at_ns"] > 20e9 for name in each["ancestors"]
        }
        assert late and "car4" not in late


def test_a_broker_without_room_takes_nothing_from_clients_for_a_while(tmp_path: Path) -> None:
    areas = {
        "b1": {"x": [0, 200], "y": [0, 200]},
        "b2": {"x": [200, 399], "y": [0, 200]},
        "b3": {"x": [399, 400], "y": [0, 200]},
    }
    interest = {"brokers": areas, "read": "0.2s", "room": {"waiting": 100}}
    interest["queries"] = {"near": {**QUERY, "radius": "250 m", "home": "b1", "switch": {"distance": "9 km"}}}
    whole = document(interest, {("b1", "b3"): [["0s", "5s"], ["25s", "100s"]]})
    with run_under_test(tmp_path / "runs") as run:
        _run(tmp_path, whole)
        found, wanted = delivered(run), rehearsed(planned(whole).recorded)
        assert len(found) > 20 and found == wanted
        waited = max(each["waiting"] for each in records(run, "interest_broker"))
        assert 50 <= waited <= 110
