"""On a standalone cluster cells run on executors, a killed worker changes no byte, and no wait is endless."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.runs.run_directory import RunDirectory
from tests.spark.standalone import Cluster, standalone
from tests.unit.rove_process import command, environment, experiment_file

pytestmark = [pytest.mark.timeout(590), pytest.mark.slow]
PATIENCE_S = 280.0
SEEDS = list(range(1, 5))
OF_THE_HOST = ("events.jsonl", "journal.jsonl", "manifest.json", "verdict.json", "state.json")
"""Files with times, processes and places. All others are the same wherever a run ran."""
OF_THE_PLACE = ("started", "finished", "host", "versions", "command", "reproduce")
"""Keys of a manifest that say where and when; all others are the same, but for folders in paths."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running
    assert running.processes() == []


def start(root: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*arguments),
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return process.returncode, out, err


def contents(sweep: RunDirectory) -> dict[str, bytes]:
    return {
        f"{member.id}/{path.relative_to(member.path)}": path.read_bytes()
        for member in sweep.members()
        for path in sorted(member.path.rglob("*"))
        if path.is_file() and path.name not in OF_THE_HOST
    }


def manifest(sweep: RunDirectory, number: int) -> dict[str, Any]:
    document = json.loads(sweep.members()[number].manifest.read_text())
    return {key: value for key, value in document.items() if key not in OF_THE_PLACE}


def test_a_worker_killed_during_a_sweep_loses_nothing_and_changes_no_byte(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "policy.py").write_text(POLICY)
    switching = {"policy": "policy.py:decide"}
    file = experiment_file(tmp_path, duration="20s", sweep={"seed": SEEDS}, switching=switching)
    options = ("--run-id", "r1", "--no-analyze", "--json")
    code, _, err = ended(start(tmp_path / "here", "sweep", str(file), *options))
    assert code == 0, err
    here = RunDirectory(tmp_path / "here" / "line" / "r1")

    there = RunDirectory(tmp_path / "there" / "line" / "r1")
    process = start(tmp_path / "there", "sweep", str(file), *options, "--on", cluster.url)
    while not there.members() and process.poll() is None:
        time.sleep(0.05)
    cluster.kill_worker(0)
    code, out, err = ended(process)
    assert code == 0, err
    document = json.loads(out)
    assert document["state"]["counts"]["done"] == len(SEEDS)
    assert contents(there) == contents(here)
    assert contents(here)
    assert manifest(there, 0) == manifest(here, 0)
    assert json.loads(there.members()[0].manifest.read_text())["reproduce"][2] == str(there.members()[0].spec)
    names = sorted(path.name for path in there.path.parent.iterdir())
    assert names == ["latest", "r1", *(f"r1.0{number}" for number in SEEDS)]
    assert not there.temporary.exists()
    assert not [*(cluster.folder / "worker-1").rglob("rove-cell-*")]

    # One of the runs, analysed on the cluster: it shares this machine's disk.
    code, out, err = ended(start(tmp_path / "there", "analyze", "r1.01", "--master", cluster.url, "--json"))
    assert code == 0, err
    (summary,) = json.loads(out)["summaries"]
    assert summary["run"] == "r1.01"
    assert not [*(tmp_path / "there").glob(".rove-probe-*")]


POLICY = """
from node_agent.switching import Choice, Hop


def decide(situation, memory):
    costs = situation.costs()
    usable = [candidate.to for candidate in situation.candidates if candidate.to in costs]
    return Choice(Hop(usable[0], costs[usable[0]]) if usable else None)
"""


IMPATIENT = """
import sys
from orchestrator.cli.main import main
from orchestrator.spark import cluster, session
session.START_TIMEOUT_S, cluster.EXECUTOR_TIMEOUT_S = float(sys.argv.pop(1)), 1.0
main()
"""


def impatient(root: Path, start_s: float, *arguments: str) -> tuple[int, str]:
    """Runs `rove` with shorter timeouts. In a process of its own: this one has the shared session."""
    result = subprocess.run(
        [sys.executable, "-c", IMPATIENT, str(start_s), *arguments],
        env=environment(root),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return result.returncode, result.stderr


def test_what_gives_no_executors_is_one_error_in_bounded_time(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, sweep={"seed": SEEDS})
    root = tmp_path / "runs"
    with standalone(tmp_path / "cluster", workers=0) as empty:
        code, err = impatient(root, 120.0, "sweep", str(file), "--no-analyze", "--on", empty.url)
    assert (code, "gave no executor within 1 s: see that workers are there" in err) == (1, True), err
    with socket.socket() as silent:  # something else than a master
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        code, err = impatient(root, 20.0, "sweep", str(file), "--no-analyze", "--on", url)
    assert (code, "could not start with" in err or "did not start" in err) == (1, True), err
    assert "Traceback" not in err
    assert not root.exists()
