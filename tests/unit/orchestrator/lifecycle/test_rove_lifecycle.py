"""The real command under real signals: whatever happens, data is kept and nothing else is left."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect
from orchestrator.runs import journal as journals
from orchestrator.runs import processes
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import (
    LINE,
    RUN_ID,
    experiment_file,
    finish,
    marked,
    phases,
    rove,
    run_under_test,
    start,
    verdict,
    wait_for_phase,
    wait_until,
)

ENDLESS = "100000s"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with run_under_test(tmp_path / "runs") as directory:
        yield directory


def root_of(run: RunDirectory) -> Path:
    return run.path.parent.parent


def assert_nothing_is_left(run: RunDirectory) -> None:
    assert marked(run) == []
    assert run.temporary_paths() == []
    assert not journals.is_locked(run.journal)
    assert journals.is_closed(journals.read(run.journal))


def test_a_run_from_file_to_verdict(run: RunDirectory) -> None:
    ended = rove(root_of(run), "run", str(LINE), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["invocation"], document["verdict"], document["report"]) == (RUN_ID, "valid", None)
    assert [member["run"] for member in document["runs"]] == [RUN_ID]
    assert "[1/1] line: measure" in ended.stderr and "\x1b" not in ended.stderr
    assert all(inspect(run.segments(node)).complete for node in "abcde")
    assert_nothing_is_left(run)
    again = rove(root_of(run), "run", str(LINE), "--run-id", RUN_ID, "--no-analyze")
    assert again.returncode == 2 and "already exists" in again.stderr


def test_same_seed_same_telemetry_and_another_seed_is_recorded(run: RunDirectory) -> None:
    for run_id, seed in (("a", "7"), ("b", "7")):
        options = ("--run-id", run_id, "--seed", seed, "--no-analyze")
        assert rove(root_of(run), "run", str(LINE), *options).returncode == 0
    first, second = (RunDirectory(root_of(run) / "line" / run_id) for run_id in ("a", "b"))
    assert json.loads(first.manifest.read_text())["seed"] == 7
    for node in "abcde":
        (ours,), (theirs,) = (list(each.segments(node).iterdir()) for each in (first, second))
        assert ours.read_text().replace('"run":"a"', '"run":"b"') == theirs.read_text()


@pytest.mark.parametrize("phase", ["up", "warm-up", "measure"])
def test_the_first_signal_stops_in_order(tmp_path: Path, run: RunDirectory, phase: str) -> None:
    endless = {"warmup": ENDLESS} if phase == "warm-up" else {"duration": ENDLESS}
    process = start(root_of(run), experiment_file(tmp_path, **endless), "--json", "--no-analyze")
    wait_for_phase(run, phase)
    process.send_signal(signal.SIGTERM if phase == "warm-up" else signal.SIGINT)
    code, out, err = finish(process)
    assert code == 130, err
    assert json.loads(out)["verdict"] == "invalid"
    assert verdict(run)["reasons"] == ["interrupted by user"]
    assert phases(run)[-1] == "down"
    if phase != "up":
        assert phases(run)[-3:] == ["stop", "collect", "down"]
    if phase == "measure":
        assert all(inspect(run.segments(node)).complete for node in "abcde")
    assert_nothing_is_left(run)


def test_the_second_signal_tears_down_at_once(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze")
    wait_for_phase(run, "measure")
    (simulator,) = marked(run)
    os.kill(simulator, signal.SIGSTOP)  # so that it cannot stop in order
    process.send_signal(signal.SIGINT)
    wait_for_phase(run, "stop")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "Tearing down at once" in err
    assert phases(run)[-2:] == ["stop", "down"]
    assert verdict(run)["reasons"][0] == "interrupted by user"
    assert_nothing_is_left(run)


@pytest.mark.parametrize("phase", ["plan", "up", "measure"])
def test_after_kill_9_down_leaves_nothing_but_data(tmp_path: Path, run: RunDirectory, phase: str) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze")
    wait_for_phase(run, phase)
    process.kill()
    finish(process)
    status = json.loads(rove(root_of(run), "status", "--json").stdout)
    assert [(row["run"], row["state"]) for row in status["runs"]] == [(RUN_ID, "dead")]
    down = rove(root_of(run), "down")
    assert down.returncode == 0, down.stderr
    assert "nothing is left" in down.stdout
    assert verdict(run)["verdict"] == "failed"
    assert verdict(run)["reasons"][0].startswith("orchestrator died")
    assert_nothing_is_left(run)
    if phase == "measure":
        assert any(run.nodes.glob("*/segments/*.jsonl"))
    again = rove(root_of(run), "down")
    assert (again.returncode, again.stdout) == (0, "Nothing to do: no run has left anything behind.\n")


def test_a_simulator_dies_with_its_orchestrator(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze")
    wait_for_phase(run, "measure")
    (simulator,) = marked(run)
    os.kill(simulator, signal.SIGSTOP)  # it cannot notice by itself
    process.kill()
    finish(process)
    until = time.monotonic() + 10
    while marked(run) and time.monotonic() < until:
        time.sleep(0.05)
    assert marked(run) == []
    assert rove(root_of(run), "down").returncode == 0
    assert_nothing_is_left(run)


def test_a_sweep_that_was_killed_is_cleaned_up_with_its_members(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, duration=ENDLESS, sweep={"seed": [1, 2, 3]})
    process = start(root_of(run), file, "--no-analyze", "--jobs", "2")
    members = [RunDirectory(run.path.with_name(f"{RUN_ID}.0{number}")) for number in (1, 2)]
    for member in members:
        wait_for_phase(member, "measure")
    process.kill()
    finish(process)
    assert rove(root_of(run), "down").returncode == 0
    for directory in (run, *members):
        assert_nothing_is_left(directory)
        assert verdict(directory)["verdict"] == "failed"


def test_down_stops_a_living_run_in_order(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze")
    wait_for_phase(run, "measure")
    assert "Nothing to do" in rove(root_of(run), "down").stdout  # it lives, and was not named
    assert process.poll() is None
    down = rove(root_of(run), "down", RUN_ID)
    assert (down.returncode, down.stdout) == (0, f"{RUN_ID}: stopped; nothing is left; data kept\n")
    code, _, _ = finish(process)
    assert code == 130
    assert verdict(run)["reasons"] == ["interrupted by user"]
    assert_nothing_is_left(run)


def test_status_and_events_of_a_living_run(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze")
    wait_for_phase(run, "measure")
    (row,) = json.loads(rove(root_of(run), "status", "--json").stdout)["runs"]
    assert (row["state"], row["phase"], row["verdict"]) == ("alive", "measure", None)
    events = json.loads(rove(root_of(run), "events", "latest", "--kind", "nodes", "--json").stdout)["events"]
    assert [event["phase"] for event in events] == ["up", "converge", "warm-up"]
    process.send_signal(signal.SIGINT)
    followed = rove(root_of(run), "events", RUN_ID, "--follow")
    assert followed.returncode == 0
    assert followed.stdout.splitlines()[-1].endswith("verdict: invalid: interrupted by user")
    finish(process)
    assert "invalid" in rove(root_of(run), "status", "line").stdout


def test_ctrl_c_at_the_first_word_is_heeded(run: RunDirectory) -> None:
    process = start(root_of(run), LINE, "--no-analyze")
    assert process.stderr is not None and process.stderr.readline().startswith(f"Run {RUN_ID}")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130 and "Traceback" not in err
    assert verdict(run)["reasons"] == ["interrupted by user"]
    assert_nothing_is_left(run)


def test_a_run_whose_directory_goes_ends_with_one_error(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration="300s"), "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    (simulator,) = marked(run)
    shutil.rmtree(run.path)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 1 and "Traceback" not in err
    assert err.splitlines()[-1] == json.loads(out)["error"]["message"]
    assert f"No such file or directory: {run.path}" in err
    wait_until(lambda: processes.identify(simulator) is None, "the simulator ends")


def test_a_simulator_that_dies_fails_the_run(tmp_path: Path, run: RunDirectory) -> None:
    process = start(root_of(run), experiment_file(tmp_path, duration=ENDLESS), "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    wait_until(lambda: len(marked(run)) == 1, "the simulator runs")
    os.kill(marked(run)[0], signal.SIGKILL)
    code, out, _ = finish(process)
    assert code == 1
    assert json.loads(out)["verdict"] == "failed"
    assert any("measure broke" in reason for reason in verdict(run)["reasons"])
    assert_nothing_is_left(run)
