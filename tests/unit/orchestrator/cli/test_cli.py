"""The command line as people and their shells meet it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli import doctor
from orchestrator.cli.app import app
from orchestrator.cli.progress import RunProgress, fraction_done
from orchestrator.cli.references import complete_experiment_file
from orchestrator.cli.results import cells_of, notes, results_table
from orchestrator.errors import RoveError
from orchestrator.results import registry
from orchestrator.results.cells import cells
from orchestrator.runs import run_directory
from orchestrator.runs.files import write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Phase
from orchestrator.services import program
from orchestrator.services.olsrd import Olsrd, OlsrdService
from tests.unit.rove_process import experiment_file, rove

VERBS = [
    "validate",
    "plan",
    "doctor",
    "enroll",
    "run",
    "sweep",
    "up",
    "exec",
    "set",
    "collect",
    "down",
    "status",
    "top",
    "events",
    "serve",
    "analyze",
    "report",
    "compare",
    "explain",
    "replay",
    "export",
]


def finished_run(root: Path, experiment: str, run_id: str) -> run_directory.RunDirectory:
    directory = run_directory.create(root, experiment, run_id)
    Journal.create(directory.journal).close()
    write_json(directory.verdict, {"verdict": "valid", "reasons": [], "phases": []})
    return directory


def test_help_names_every_verb_of_this_stage_and_none_else() -> None:
    commands = [(command.name, command.callback) for command in app.registered_commands]
    assert [name or callback.__name__ for name, callback in commands if callback] == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_with_examples_and_speaks_json(verb: str) -> None:
    shown = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "160", "TERM": "dumb"})
    assert shown.exit_code == 0
    assert "Examples" in shown.stdout
    assert f"rove {verb}" in shown.stdout
    assert "--json" in shown.stdout or verb == "exec"  # which prints nothing but what the command does


def test_help_does_not_wait_for_heavy_imports() -> None:
    program = (
        "import sys, orchestrator.cli.app\n"
        "heavy = {'pyspark', 'pandas', 'matplotlib', 'pydantic', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert shown.stdout == "[]\n", shown.stderr


def test_version_bad_verbs_and_bad_options(tmp_path: Path) -> None:
    assert rove(tmp_path, "--version").stdout.startswith("rove 0.")
    assert rove(tmp_path, "frobnicate").returncode == 2
    assert rove(tmp_path, "run", "x.yaml", "--jobs", "0").returncode == 2


def test_a_bad_reference_is_one_clear_error(tmp_path: Path) -> None:
    finished_run(tmp_path, "quickstart", "one")
    for verb in ("status", "events", "down"):
        ended = rove(tmp_path, verb, "quikstart")
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr == f"no run 'quikstart' under {tmp_path}: did you mean quickstart?\n"


def test_a_bad_experiment_file_creates_nothing(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("nme: x\n")
    ended = rove(tmp_path / "runs", "run", str(file))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "nme" in ended.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("run_id", ["Z.07", "latest", "a/b"])
def test_a_bad_run_id_creates_nothing(tmp_path: Path, run_id: str) -> None:
    file = experiment_file(tmp_path, sweep={"seed": [1, 2]})
    ended = rove(tmp_path / "runs", "run", str(file), "--run-id", run_id, "--no-analyze")
    assert ended.returncode == 2 and "cannot be used" in ended.stderr
    assert not (tmp_path / "runs").exists()


def test_with_json_failures_are_documents_too(tmp_path: Path) -> None:
    for verb in ("status", "events", "down", "analyze", "report"):
        ended = rove(tmp_path, verb, "nothing", "--json")
        error = json.loads(ended.stdout)["error"]
        assert (ended.returncode, error["exit_code"]) == (2, 2)
        assert error["message"] == ended.stderr.strip()
    (tmp_path / "bad.yaml").write_text("nme: x\n")
    for verb in ("run", "plan", "up"):
        error = json.loads(rove(tmp_path, verb, str(tmp_path / "bad.yaml"), "--json").stdout)["error"]
        assert "nme" in [problem["path"] for problem in error["problems"]]
    (checked,) = json.loads(rove(tmp_path, "validate", str(tmp_path / "bad.yaml"), "--json").stdout)["files"]
    assert not checked["ok"]


def test_what_the_system_refuses_is_one_line(tmp_path: Path) -> None:
    run = finished_run(tmp_path, "quick", "r1")
    run.events.mkdir()
    ended = rove(tmp_path, "events", "r1", "--json")
    assert (ended.returncode, ended.stderr) == (1, f"not a regular file: {run.events}\n")
    assert json.loads(ended.stdout)["error"]["exit_code"] == 1


def test_ctrl_c_during_imports_leaves_without_a_word() -> None:
    program = (
        "import sys\n"
        "class Impatience:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatience())\n"
        "from orchestrator.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_ctrl_c_while_the_process_exits_changes_nothing() -> None:
    program = (
        "import atexit, os, signal, sys\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "from orchestrator.cli.main import main\n"
        "sys.argv = ['rove', '--version']\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_swept_seed_cannot_be_set_as_well(tmp_path: Path) -> None:

    ended = rove(
        tmp_path / "runs", "run", str(experiment_file(tmp_path, sweep={"seed": [1, 2]})), "--seed", "3"
    )
    assert ended.returncode == 2
    assert "already varies the seed" in ended.stderr
    assert not (tmp_path / "runs").exists()


def test_status_of_an_empty_and_of_a_filled_root(tmp_path: Path) -> None:
    assert "Start one: rove run" in rove(tmp_path, "status").stdout
    assert json.loads(rove(tmp_path, "status", "--json").stdout) == {"runs": []}
    finished_run(tmp_path, "quickstart", "one")
    (row,) = json.loads(rove(tmp_path, "status", "--json").stdout)["runs"]
    assert (row["run"], row["state"], row["verdict"]) == ("one", "finished", "valid")
    assert "finished" in rove(tmp_path, "status").stdout
    assert json.loads(rove(tmp_path, "status", "one", "--json").stdout)["judgement"]["verdict"] == "valid"


def test_one_odd_run_hides_no_other_and_no_pipe_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(tmp_path, "quick", "sound")
    write_json(finished_run(tmp_path, "quick", "odd").verdict, {"verdict": [], "reasons": 5})
    piped = finished_run(tmp_path, "quick", "piped")
    os.mkfifo(piped.events)
    finished_run(tmp_path, "quick", "broken")

    def reads(directory: run_directory.RunDirectory) -> None:
        if directory.id == "broken":
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("orchestrator.cli.status.last_phase", reads)
    shown = CliRunner().invoke(app, ["status", "--runs-dir", str(tmp_path)], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.exception
    assert all(name in shown.stdout for name in ("sound", "odd", "piped", "unreadable"))
    assert "broken: cannot be read: [Errno 13] Permission denied" in shown.stdout
    told = rove(tmp_path, "events", "piped")
    assert (told.returncode, told.stderr) == (1, f"not a regular file: {piped.events}\n")


def test_the_shell_completes_verbs_runs_and_files(tmp_path: Path) -> None:
    finished_run(tmp_path, "quickstart", "20260101-000000-abcd")

    def completions(*words: str) -> list[str]:
        line = " ".join(["rove", *words])
        environment = {
            **os.environ,
            "ROVE_RUNS_DIR": str(tmp_path),
            "_ROVE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words)),
        }
        program = "import sys; sys.argv[0] = 'rove'; from orchestrator.cli.main import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
        )
        return ended.stdout.split()

    assert completions("st") == ["status"]
    assert completions("status", "2026") == ["20260101-000000-abcd"]
    assert completions("down", "q") == ["quickstart"]
    assert completions("events", "l") == ["latest"]


def test_files_are_completed_to_yaml_and_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exp").mkdir()
    for name in ("a.yaml", "b.yml", "notes.txt"):
        (tmp_path / "exp" / name).touch()
    monkeypatch.chdir(tmp_path)
    assert complete_experiment_file("e") == ["exp/"]
    assert complete_experiment_file("exp/") == ["exp/a.yaml", "exp/b.yml"]
    assert complete_experiment_file("exp/b") == ["exp/b.yml"]
    assert complete_experiment_file("none/x") == []


def test_doctor_tells_ok_from_warnings_from_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = rove(tmp_path, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(ended.stdout)["checks"]}
    assert checks["Python"]["health"] == checks["runs directory"]["health"] == "ok"
    assert ended.returncode == int(any(check["health"] == "missing" for check in checks.values()))

    def no_java() -> None:
        raise RoveError("install one")

    monkeypatch.setattr("orchestrator.spark.java.find_java", no_java)
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    found = {check.name: check for check in doctor.examine(tmp_path)}
    assert (found["Java"].health, found["Java"].advice) == ("missing", "install one")
    assert found["Chromium"].health == "warn"
    daemons = {name: check for name, check in found.items() if name.startswith("routing: ")}
    assert list(daemons) == ["routing: olsrd", "routing: olsrd2", "routing: babel"]
    assert all(check.health == "warn" and "only for protocol" in check.advice for check in daemons.values())
    (tmp_path / "file").touch()
    found = {check.name: check for check in doctor.examine(tmp_path / "file")}
    assert found["runs directory"].health == "missing"
    assert all(check.health != "missing" for name, check in found.items() if name.startswith("netns"))


def test_doctor_does_not_call_olsrd_ok_without_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> doctor.Check:
        (found,) = (check for check in doctor.examine(tmp_path) if check.name == "routing: olsrd")
        return found

    plugin = "olsrd_jsoninfo.so.1.1"
    daemon = tmp_path / "olsrd"
    daemon.touch(mode=0o755)
    monkeypatch.setattr(program, "LIBRARY_FOLDERS", (str(tmp_path / "li*"),))
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    lacking = check()
    assert (lacking.health, lacking.found) == ("warn", f"{daemon}, but {plugin} not found")
    assert "jsoninfo" in lacking.advice
    with pytest.raises(RoveError, match=f"routing protocol olsrd needs {plugin}, which this machine"):
        OlsrdService(Olsrd(protocol="olsrd")).require()
    for folder in ("lib", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / plugin).touch()
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "elsewhere") if folder == "elsewhere" else "")
        assert (check().health, check().found) == ("ok", str(daemon))
        OlsrdService(Olsrd(protocol="olsrd")).require()
        (tmp_path / folder / plugin).unlink()


def test_exec_needs_a_network_that_is_up(tmp_path: Path) -> None:
    finished_run(tmp_path, "quick", "r1")
    refused = rove(tmp_path, "exec", "n01", "--", "true")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no network is up" in refused.stderr


def test_doctor_finds_dead_runs(tmp_path: Path) -> None:
    dead = run_directory.create(tmp_path, "quick", "dead")
    dead.journal.write_text('{"entry": "opened", "pid": 1, "started": 0}\n')
    (leftovers,) = [check for check in doctor.examine(tmp_path) if check.name == "leftovers"]
    assert (leftovers.health, leftovers.found, leftovers.advice) == ("warn", "dead: dead", "rove down")


def rendered(table: object, width: int) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def summary_of(k: int, seed: int, metrics: dict[str, float | None], verdict: str = "valid") -> dict[str, Any]:
    averaged = [metric.name for metric in registry.ANALYTICS["query"].metrics if metric.averaged]
    known = dict.fromkeys(averaged, 1.0) | {"network_loss_ratio": 0.5123, "shed_ratio": 0.25} | metrics
    known["offered_fps"] = 30.0
    factors = {"replicas": k, "seed": seed}
    return {"run": f"s.{k}{seed}", "factors": factors, "seed": seed, "verdict": verdict, "metrics": known}


def test_a_sweep_is_a_row_a_cell_within_80_columns() -> None:
    figures = {"throughput_fps": 5.22, "goodput_fps": 4.87, "latency_p50_s": 1.337, "latency_p95_s": 3.6}
    runs = [
        summary_of(k, seed, {name: value * k * seed for name, value in figures.items()})
        for k in (1, 2, 3)
        for seed in (1, 2, 3)
    ]
    shown = cells(runs, [run["run"] != "s.13" for run in runs])
    assert rendered(results_table(shown), width=80) == [
        "goodput offered shed lost latency latency through-",
        "k runs /s /s % % p50 s p95 s put /s",
        "1 2 of 3 7.3±3.4 30.0±0.0 25.0±0.0 51.2±0.0 2.01±0.95 5.4±2.5 7.8±3.7",
        "2 3 19.5±9.7 30.0±0.0 25.0±0.0 51.2±0.0 5.35±2.67 14.4±7.2 20.9±10.4",
        "3 3 29.2±14.6 30.0±0.0 25.0±0.0 51.2±0.0 8.02±4.01 21.6±10.8 31.3±15.7",
    ]


def test_a_single_run_is_one_row_in_milliseconds_if_that_is_what_it_took() -> None:
    run = summary_of(2, 1, {"latency_p50_s": 0.0123, "latency_p95_s": None}, verdict="invalid")
    assert rendered(results_table(cells_of(run)), width=80) == [
        "goodput offered shed lost latency latency through-",
        "k runs /s /s % % p50 ms p95 ms put /s",
        "2 1 1.00 30.0 25.0 51.2 12.3 – 1.00",
    ]


def test_what_operators_passed_over_is_said_if_there_was_any() -> None:
    assert notes({"operator_faults": {"bad_image": 1200, "camera_lost": 1}}) == [
        "Operators passed over what they could not use: bad image 1,200 ×, camera lost 1 ×."
    ]
    assert notes({"operator_faults": {}}) == []


def test_progress_only_grows_and_ends_at_one() -> None:
    shown = [fraction_done(phase, within, 20, 120) for phase in Phase for within in (0.0, 0.5, 1.0)]
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0.0, 1.0)
    assert fraction_done(Phase.MEASURE, 1.0, 0, 0) <= 1.0


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(Console(stderr=True), ["k=1", "k=2"], 1, 10)
    with progress.shown():
        for within in (0.0, 0.5, 1.0):
            progress.observe(2, Phase.MEASURE, within)
        progress.observe(2, Phase.VERDICT, 1.0)
    assert capsys.readouterr().err == "[2/2] k=2: measure\n[2/2] k=2: verdict\n"
