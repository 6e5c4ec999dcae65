"""The real `rove sweep`: whatever stops it, the same command completes it; bad input is one clear error."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.cli.performing import without_secrets
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import (
    RUN_ID,
    command,
    environment,
    experiment_file,
    finish,
    marked,
    rove,
    run_under_test,
    verdict,
    wait_for_phase,
    wait_until,
)

SEEDS = {"seed": [1, 2, 3]}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with run_under_test(tmp_path / "runs") as directory:
        yield directory


def start(root: Path, file: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("sweep", str(file), "--no-analyze", "--jobs", "1", *options),
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def telemetry(sweep: RunDirectory) -> dict[str, bytes]:
    return {
        str(path.relative_to(sweep.path.parent)): path.read_bytes()
        for member in sweep.members()
        for part in ("nodes", "radio")
        for path in sorted((member.path / part).rglob("*"))
        if path.is_file()
    }


@pytest.mark.timeout(240)
def test_killed_at_any_moment_it_ends_as_if_it_had_not_been(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, duration="20s", sweep=SEEDS)
    root = run.path.parent.parent
    sound = rove(tmp_path / "sound", "sweep", str(file), "--no-analyze", "--run-id", RUN_ID, "--json")
    assert sound.returncode == 0, sound.stderr
    assert json.loads(sound.stdout)["state"]["counts"]["done"] == 3
    second = RunDirectory(run.path.parent / f"{RUN_ID}.02")
    for moment in ("up", "measure"):
        killed = start(root, file, "--run-id", RUN_ID)
        wait_for_phase(second, moment)
        killed.kill()
        finish(killed)
        wait_until(lambda: not marked(second), "the simulator dies with its orchestrator")
        assert not run.verdict.exists()
    code, out, err = finish(start(root, file, "--json"))  # the newest sweep of this experiment
    assert code == 0, err
    assert "Going on: 1 of 3 runs are done, 0 failed, 2 are to be run" in err
    document = json.loads(out)
    assert (document["invocation"], document["verdict"]) == (RUN_ID, "valid")
    assert telemetry(run) == telemetry(RunDirectory(tmp_path / "sound" / "line" / RUN_ID))
    assert len([*(run.path / "earlier").iterdir()]) == 2
    again = rove(root, "sweep", str(file), "--no-analyze")
    assert again.returncode == 0 and "Going on: 3 of 3 runs are done" in again.stderr


def test_ctrl_c_stops_in_order_and_says_how_to_go_on(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, duration="100000s", sweep=SEEDS)
    stopped = start(run.path.parent.parent, file, "--run-id", RUN_ID)
    wait_for_phase(RunDirectory(run.path.parent / f"{RUN_ID}.01"), "measure")
    stopped.send_signal(signal.SIGINT)
    code, _, err = finish(stopped)
    assert code == 130
    assert f"3 runs are still to be done. Go on: rove sweep {file}" in err
    assert verdict(run)["verdict"] == "invalid"


def test_a_file_that_changed_is_refused_and_new_starts_anew(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    file = experiment_file(tmp_path, duration="1s", sweep={"seed": [1]})
    assert rove(root, "sweep", str(file), "--no-analyze").returncode == 0
    experiment_file(tmp_path, duration="2s", sweep={"seed": [1]})
    changed = rove(tmp_path, "sweep", str(file), "--no-analyze", "--runs-dir", str(root))
    assert changed.returncode == 2
    assert "duration: was 1.0, is 2.0" in changed.stderr
    assert f"start anew: rove sweep {file} --runs-dir {root} --new" in changed.stderr
    anew = rove(root, "sweep", str(file), "--no-analyze", "--new")
    assert anew.returncode == 0, anew.stderr
    sweeps = [path for path in (root / "line").glob("2*") if (path / "sweep.json").exists()]
    assert len(sweeps) == 2


def test_bad_input_is_one_clear_error_and_creates_nothing(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    (tmp_path / "real").mkdir()
    plain = str(experiment_file(tmp_path))
    real = str(experiment_file(tmp_path / "real", sweep=SEEDS, backend="netns"))
    (tmp_path / "swept").mkdir()
    good = str(experiment_file(tmp_path / "swept", sweep=SEEDS))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        silent = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        for code, text, arguments in (
            (2, "has no sweep: rove run", [plain]),
            (2, "is no Spark master: write local[2]", [good, "--on", "head:7077"]),
            (2, "--on takes runs in virtual time only", [real, "--on", "local[2]"]),
            (2, "leave out --retry", [good, "--retry", "failed"]),
            (2, "add --on", [good, "--spark-conf", "spark.x=1"]),
            (2, "is no setting of Spark", [good, "--on", "local[2]", "--spark-conf", "x"]),
            (2, "with --on, the executors' cores decide", [good, "--on", "local[2]", "--jobs", "2"]),
            (1, f"no Spark master answers at {silent} (Connection refused)", [good, "--on", silent]),
        ):
            ended = CliRunner().invoke(app, ["sweep", *arguments, "--no-analyze", "--runs-dir", str(root)])
            assert isinstance(ended.exception, RoveError), ended.output
            assert (ended.exception.exit_code, text in str(ended.exception)) == (code, True), ended.exception
    assert not root.exists()


@pytest.mark.parametrize("run_id", [".", "..", "../..", "mine/..", "", "latest", "mine"])
def test_no_id_of_a_sweep_leads_elsewhere_or_removes_what_is_there(tmp_path: Path, run_id: str) -> None:
    file = experiment_file(tmp_path, sweep=SEEDS)
    mine = tmp_path / "runs" / "line" / "mine" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    arguments = ["sweep", str(file), "--no-analyze", "--run-id", run_id, "--runs-dir", str(tmp_path / "runs")]
    ended = CliRunner().invoke(app, arguments)
    assert isinstance(ended.exception, BadInput), ended.output
    assert ("is no sweep" if run_id == "mine" else "cannot be used") in str(ended.exception)
    assert mine.read_text() == "precious"


def test_no_run_keeps_the_secrets_of_a_command_line() -> None:
    given = [
        "sweep",
        "f.yaml",
        "--spark-conf",
        "spark.authenticate.secret=a=b",
        "--spark-conf=spark.x.password=c",
    ]
    kept = [
        "sweep",
        "f.yaml",
        "--spark-conf",
        "spark.authenticate.secret=…",
        "--spark-conf=spark.x.password=…",
    ]
    assert without_secrets(given) == kept
    plain = ["sweep", "secret=1.yaml", "--spark-conf", "spark.executor.memory=4g"]
    assert without_secrets(plain) == plain
