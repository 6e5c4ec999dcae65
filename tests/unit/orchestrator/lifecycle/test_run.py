"""A run is driven through its phases, whatever the backend does, and leaves a complete directory."""

import asyncio
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import Finished, Invocation
from orchestrator.lifecycle.teardown import State, state_of, tear_down
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.load import load_experiment
from orchestrator.planning.sweep import cells
from orchestrator.runs import journal as journals
from orchestrator.runs.backend import Outcomes
from orchestrator.runs.phases import Phase
from orchestrator.runs.run_directory import RunDirectory, all_runs
from orchestrator.runs.verdict import Judgement
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from tests.unit.scripted_backend import ScriptedBackend, Stage, broken, forever, without_the_last

LINE = Path(__file__).parents[4] / "experiments" / "line.yaml"
COMMAND = ["rove", "run", "line.yaml"]


def experiment(**changes: Any) -> Experiment:
    document = {**load_experiment(LINE).resolved(), **changes}
    return Experiment.model_validate(document)


def perform(
    root: Path,
    stage: Stage,
    of: Experiment | None = None,
    jobs: int = 1,
    interruption: Interruption | None = None,
    seen: list[tuple[int, Phase, float]] | None = None,
) -> Finished:
    of = of or experiment()
    observed = seen if seen is not None else []

    async def run() -> Finished:
        wish = interruption or Interruption()
        with Invocation.create(of, cells(of), root, "r1") as invocation:
            return await invocation.run(jobs, stage, wish, lambda *fact: observed.append(fact), COMMAND)

    return asyncio.run(run())


def documents(run: RunDirectory) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    events = [json.loads(line) for line in run.events.read_text().splitlines()]
    return json.loads(run.manifest.read_text()), json.loads(run.verdict.read_text()), events


def phases(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["phase"] for event in events if event["kind"] == "phase" and event["state"] == "finished"]


def test_a_sound_run_leaves_everything_the_contract_names(tmp_path: Path) -> None:
    seen: list[tuple[int, Phase, float]] = []
    finished = perform(tmp_path, Stage(), seen=seen)
    (run,) = finished.runs
    assert run.verdict.verdict is Judgement.VALID
    manifest, verdict, events = documents(run.directory)
    assert sorted(path.name for path in run.directory.path.iterdir()) == [
        "events.jsonl",
        "journal.jsonl",
        "manifest.json",
        "nodes",
        "spec.yaml",
        "verdict.json",
    ]
    assert load_experiment(run.directory.spec) == experiment()
    assert (manifest["run"], manifest["experiment"], manifest["invocation"]) == ("r1", "line", "r1")
    assert (manifest["seed"], manifest["clock"], manifest["factors"]) == (1, "virtual", {})
    # Converging took the first second of the run, then 2 s of warm-up and 10 s of measurement.
    assert manifest["measure_from_ns"] == 3_000_000_000
    assert manifest["measure_until_ns"] == 13_000_000_000
    assert manifest["started"] < manifest["finished"]
    assert manifest["command"] == COMMAND
    assert {"rove", "python", "pyspark", "platform"} == set(manifest["versions"])
    assert [replica["node"] for replica in manifest["apps"]["query"]["plan"]["replicas"]] == [
        "a",
        "b",
        "d",
        "e",
    ]
    assert len(manifest["files"]) == 5
    for name, checksum in manifest["files"].items():
        assert hashlib.sha256((run.directory.path / name).read_bytes()).hexdigest() == checksum
    assert phases(events) == [phase for phase in Phase if phase is not Phase.VERDICT]
    assert [phase["phase"] for phase in verdict["phases"]] == phases(events)
    assert verdict["completeness"]["a"]["records"] == 4
    assert seen[-1] == (1, Phase.VERDICT, 1.0)
    assert (1, Phase.MEASURE, 1.0) in seen


def test_what_the_backend_found_out_is_in_the_manifest(tmp_path: Path) -> None:
    async def find_out(backend: ScriptedBackend) -> None:
        backend.found["clocks"] = {"a": {}}

    (run,) = perform(tmp_path, Stage(down=find_out)).runs
    manifest, _, _ = documents(run.directory)
    assert manifest["clocks"] == {"a": {}}
    assert manifest["files"]


def test_a_run_whose_directory_is_replaced_under_it_is_not_valid(tmp_path: Path) -> None:
    async def replace(backend: ScriptedBackend) -> None:
        journal = RunDirectory(tmp_path / "line" / "r1").journal
        content = journal.read_bytes()
        journal.unlink()
        journal.write_bytes(content)

    (run,) = perform(tmp_path, Stage(stop=replace)).runs
    assert run.verdict.verdict is Judgement.INVALID
    assert run.verdict.reasons == ("the run's directory was removed or replaced while it ran",)


def test_the_run_is_locked_while_it_lasts_and_its_temporary_directory_journalled(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "line" / "r1")
    found: list[bool] = []

    async def look(backend: ScriptedBackend) -> None:
        entries = journals.read(directory.journal)
        intended = any(entry.get("kind") == "directory" for entry in entries)
        found.extend([journals.is_locked(directory.journal), intended, directory.temporary.is_dir()])

    perform(tmp_path, Stage(up=look))
    assert found == [True, True, True]
    assert not journals.is_locked(directory.journal)
    assert journals.is_closed(journals.read(directory.journal))
    assert not directory.temporary.exists()
    assert (tmp_path / "line" / "latest").resolve() == directory.path


@pytest.mark.parametrize(
    ("call", "step", "judgement", "reason", "calls"),
    [
        (
            "up",
            broken,
            Judgement.FAILED,
            "up broke: ValueError: out",
            ["up", "stop", "collect", "down"],
        ),
        ("up", without_the_last, Judgement.FAILED, "(e: no power)", ["up", "stop", "collect", "down"]),
        (
            "converge",
            without_the_last,
            Judgement.INVALID,
            "converge failed: 1 of 5 nodes",
            ["up", "converge", "stop", "collect", "down"],
        ),
        (
            "collect",
            broken,
            Judgement.INVALID,
            "collect broke",
            ["up", "converge", "advance", "advance", "stop", "collect", "down"],
        ),
        (
            "down",
            broken,
            Judgement.FAILED,
            "down broke",
            ["up", "converge", "advance", "advance", "stop", "collect", "down"],
        ),
    ],
)
def test_a_failing_phase_leads_to_the_end_in_order(
    tmp_path: Path, call: str, step: Any, judgement: Judgement, reason: str, calls: list[str]
) -> None:
    stage = Stage(**{call: step})
    (run,) = perform(tmp_path, stage).runs
    assert run.verdict.verdict is judgement
    assert any(reason in text for text in run.verdict.reasons), run.verdict.reasons
    assert stage.made[0].calls == calls
    assert not run.directory.temporary.exists()


def test_each_nodes_outcome_is_on_record(tmp_path: Path) -> None:
    (run,) = perform(tmp_path, Stage(up=without_the_last)).runs
    _, _, events = documents(run.directory)
    (up,) = [event for event in events if event["kind"] == "nodes" and event["phase"] == "up"]
    assert (up["ok"], up["failed"], up["unreachable"]) == (["a", "b", "c", "d"], {"e": "no power"}, {})


def test_an_unexpected_error_leaves_its_trace_in_the_events(tmp_path: Path) -> None:
    (run,) = perform(tmp_path, Stage(converge=broken)).runs
    _, _, events = documents(run.directory)
    (error,) = [event for event in events if event["kind"] == "error"]
    assert "ValueError: out of luck" in error["trace"]


def test_a_phase_that_hangs_is_given_up_after_its_timeout(tmp_path: Path) -> None:
    impatient = experiment(timeouts={"converge": 0.05})
    (run,) = perform(tmp_path, Stage(converge=forever), impatient).runs
    assert run.verdict.verdict is Judgement.INVALID
    assert (
        run.verdict.reasons[0] == "converge timed out: not done within 1 s"
    )  # twenty times, in virtual time


def test_time_in_which_a_simulator_waits_for_a_processor_does_not_count(tmp_path: Path) -> None:
    async def slow(backend: ScriptedBackend) -> None:
        begun = time.monotonic()
        backend.waited_s = lambda: time.monotonic() - begun  # type: ignore[attr-defined]
        await asyncio.sleep(1.5)

    (run,) = perform(tmp_path, Stage(up=slow), experiment(timeouts={"up": 0.5})).runs
    assert run.verdict.verdict is Judgement.VALID


def test_agents_that_were_not_stopped_make_the_run_invalid(tmp_path: Path) -> None:
    impatient = experiment(timeouts={"stop": 0.05})
    (run,) = perform(tmp_path, Stage(stop=forever), impatient).runs
    assert run.verdict.verdict is Judgement.INVALID
    assert any("5 × agents not stopped in order" in reason for reason in run.verdict.reasons)


def interrupting(interruption: Interruption, times: int) -> Any:
    async def step(backend: ScriptedBackend) -> Outcomes | None:
        for _ in range(times):
            interruption.request()
        await asyncio.Event().wait()
        return None

    return step


def test_the_first_request_stops_in_order_and_keeps_data(tmp_path: Path) -> None:
    wish = Interruption()
    stage = Stage(advance=interrupting(wish, 1))
    finished = perform(tmp_path, stage, interruption=wish)
    assert finished.interrupted
    assert stage.made[0].calls == ["up", "converge", "advance", "stop", "collect", "down"]
    assert finished.verdict.verdict is Judgement.INVALID
    assert finished.verdict.reasons == ("interrupted by user",)
    assert finished.verdict.completeness["a"].complete


def test_the_second_request_tears_down_at_once(tmp_path: Path) -> None:
    wish = Interruption()
    stage = Stage(advance=interrupting(wish, 1), stop=interrupting(wish, 1))
    finished = perform(tmp_path, stage, interruption=wish)
    assert stage.made[0].calls == ["up", "converge", "advance", "stop", "down"]
    assert finished.verdict.reasons[0] == "interrupted by user"


def test_a_sweep_makes_member_runs_beside_its_own_directory(tmp_path: Path) -> None:
    swept = experiment(sweep={"seed": [1, 2, 3]})
    finished = perform(tmp_path, Stage(), swept, jobs=2)
    directory = RunDirectory(tmp_path / "line" / "r1")
    assert [run.directory.id for run in finished.runs] == ["r1.01", "r1.02", "r1.03"]
    assert json.loads(directory.sweep.read_text()) == {
        "id": "r1",
        "experiment": "line",
        "members": ["r1.01", "r1.02", "r1.03"],
        "factors": ["seed"],
        "cells": [{"seed": 1}, {"seed": 2}, {"seed": 3}],
    }
    assert load_experiment(directory.spec) == swept
    assert load_experiment(finished.runs[1].directory.spec).seed == 2
    manifest, verdict, _ = documents(finished.runs[1].directory)
    assert (manifest["invocation"], manifest["factors"], verdict["verdict"]) == ("r1", {"seed": 2}, "valid")
    assert set(json.loads(directory.verdict.read_text())["members"].values()) == {"valid"}
    for run in (directory, *directory.members()):
        assert journals.is_closed(journals.read(run.journal))


def test_a_run_takes_its_trace_along(tmp_path: Path) -> None:
    trace = tmp_path / "walk.movements"
    trace.write_text("0 0 0 10 100 0\n" + "0 100 50\n" * 4)
    (tmp_path / "walk.params").write_text("nn=5\n")
    file = tmp_path / "walk.yaml"
    topology = load_experiment(LINE).resolved()["topology"]
    mobility = {"model": "trace", "file": "walk.movements"}
    document = {**load_experiment(LINE).resolved(), "topology": {**topology, "mobility": mobility}}
    file.write_text(to_yaml({**document, "sweep": {"seed": [1, 2]}}))
    original = load_experiment(file)
    second = cells(original)[1].experiment
    finished = perform(tmp_path / "runs", Stage(), original)
    for gone in (trace, tmp_path / "walk.params"):
        gone.unlink()
    assert load_experiment(tmp_path / "runs/line/r1/spec.yaml") == original
    run = finished.runs[1].directory
    again = load_experiment(run.spec)
    assert again == second
    assert generate_trace(again.topology, 1, 10.0).position("a", 5.0) == (50.0, 0.0)
    assert "mobility/walk.movements" in json.loads(run.manifest.read_text())["files"]
    (run.path / "mobility/walk.movements").write_text("0 7 7\n" * 5)
    assert load_experiment(run.spec) != again


def test_no_more_runs_at_a_time_than_jobs(tmp_path: Path) -> None:
    busy = [0, 0]

    async def count(backend: ScriptedBackend) -> None:
        busy[0] += 1
        busy[1] = max(busy)
        await asyncio.sleep(0.02)
        busy[0] -= 1

    perform(tmp_path, Stage(converge=count), experiment(sweep={"seed": [1, 2, 3, 4, 5]}), jobs=2)
    assert busy == [0, 2]


def test_an_interrupted_sweep_starts_no_further_runs(tmp_path: Path) -> None:
    wish = Interruption()
    stage = Stage(advance=interrupting(wish, 1))
    finished = perform(tmp_path, stage, experiment(sweep={"seed": [1, 2, 3]}), interruption=wish)
    assert [run.directory.id for run in finished.runs] == ["r1.01"]
    assert "2 of 3 runs were not started" in finished.verdict.reasons
    assert not (tmp_path / "line" / "r1.02").exists()


def test_who_leaves_when_every_run_is_done_spoils_nothing(tmp_path: Path) -> None:
    wish = Interruption()

    async def leave_in_the_last(backend: ScriptedBackend) -> None:
        if len(stage.made) == 2:
            wish.request()

    stage = Stage(collect=leave_in_the_last)
    finished = perform(tmp_path, stage, experiment(sweep={"seed": [1, 2]}), interruption=wish)
    assert finished.interrupted
    assert (finished.verdict.verdict, finished.verdict.reasons) == (Judgement.VALID, ())


def test_who_leaves_before_the_first_phase_gets_a_verdict(tmp_path: Path) -> None:
    wish = Interruption()
    wish.request()
    stage = Stage()
    finished = perform(tmp_path, stage, interruption=wish)
    assert (finished.interrupted, stage.made) == (True, [])
    assert finished.verdict.reasons == ("interrupted by user",)
    assert json.loads(finished.runs[0].directory.verdict.read_text())["verdict"] == "invalid"


def test_who_leaves_while_nodes_come_up_is_told_of_nothing_broken(tmp_path: Path) -> None:
    wish = Interruption()
    stage = Stage(up=interrupting(wish, 1), stop=broken, collect=broken)
    finished = perform(tmp_path, stage, interruption=wish)
    assert finished.verdict.reasons == ("interrupted by user",)
    assert stage.made[0].calls == ["up", "down"]


@pytest.mark.parametrize("swept", [False, True])
def test_a_run_that_breaks_off_unjudged_is_dead_until_torn_down(tmp_path: Path, swept: bool) -> None:
    directory = RunDirectory(tmp_path / "line" / ("r1.01" if swept else "r1"))

    async def spoil_the_manifest(backend: ScriptedBackend) -> None:
        directory.manifest.unlink()
        directory.manifest.mkdir()

    with pytest.raises(IsADirectoryError):
        perform(tmp_path, Stage(collect=spoil_the_manifest), experiment(sweep={"seed": [1]} if swept else {}))
    runs = all_runs(tmp_path)
    assert [state_of(run) for run in runs] == [State.DEAD] * (2 if swept else 1)
    for run in runs:
        assert tear_down(run).judged
        assert state_of(run) is State.FINISHED
        assert json.loads(run.verdict.read_text())["verdict"] == "failed"


def test_a_run_that_was_judged_is_finished_whatever_comes_after(tmp_path: Path) -> None:
    of = experiment()
    with (
        pytest.raises(KeyboardInterrupt),
        Invocation.create(of, cells(of), tmp_path, "r1") as invocation,
    ):
        asyncio.run(invocation.run(1, Stage(), Interruption(), lambda *fact: None, COMMAND))
        raise KeyboardInterrupt
    assert state_of(invocation.directory) is State.FINISHED


def test_one_broken_member_does_not_stop_the_others(tmp_path: Path) -> None:
    async def break_the_second(backend: ScriptedBackend) -> None:
        if len(stage.made) == 2:
            raise ValueError("out of luck")

    stage = Stage(up=break_the_second)
    finished = perform(tmp_path, stage, experiment(sweep={"seed": [1, 2, 3]}))
    assert [run.verdict.verdict for run in finished.runs] == ["valid", "failed", "valid"]
    assert finished.verdict.verdict is Judgement.FAILED
