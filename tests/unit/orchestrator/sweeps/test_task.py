"""What an executor does, without Spark: it plans as the driver does, runs, and leaves nothing behind."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.lifecycle.invocation import CellLost
from orchestrator.lifecycle.run import RunOrder
from orchestrator.planning.bundle import bundle
from orchestrator.planning.load import load_checked, load_planned
from orchestrator.planning.semantics import plan_run
from orchestrator.planning.sweep import Cell
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement
from orchestrator.sweeps.driver import accept, order_for
from orchestrator.sweeps.task import CellOrder, perform, plan_digest
from tests.unit.rove_process import experiment_file

EXPERIMENTS = Path(__file__).parents[4] / "experiments"


@pytest.mark.parametrize("name", ["line", "checkpoint", "flows-olsr", "background-load"])
def test_an_executor_plans_as_the_driver_does(tmp_path: Path, name: str) -> None:
    for cell in load_planned(EXPERIMENTS / f"{name}.yaml").cells[:2]:
        folder = tmp_path / str(cell.number)
        for file, content in bundle(cell.experiment).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        run, findings = plan_run(load_checked(folder / "spec.yaml"))
        assert run is not None and not findings
        assert plan_digest(run) == plan_digest(cell.run)


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return load_planned(experiment_file(tmp_path, duration="2s", sweep={"seed": [5]})).cells[0]


def ordered(cell: Cell, directory: RunDirectory) -> CellOrder:
    return order_for(cell, RunOrder(cell.run, dict(cell.factors), "r1", ["rove", "sweep"]), directory)


def test_a_cell_runs_and_comes_back_whole(
    tmp_path: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # which the task changes
    directory = RunDirectory(tmp_path / "runs" / "line" / "r1.01")
    directory.path.parent.mkdir(parents=True)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pieces = list(perform(ordered(cell, directory), scratch))
    assert list(scratch.iterdir()) == []
    assert accept(pieces, directory, tmp_path / "tmp").verdict is Judgement.VALID
    manifest = json.loads(directory.manifest.read_text())
    assert (manifest["run"], manifest["factors"], manifest["invocation"]) == ("r1.01", {"seed": 5}, "r1")
    assert manifest["reproduce"] == ["rove", "run", str(directory.spec)]
    assert str(scratch) not in directory.manifest.read_text()
    assert any(name.startswith("nodes/") for name in manifest["files"])


def test_an_executor_that_plans_in_another_way_says_so(
    tmp_path: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    directory = RunDirectory(tmp_path / "runs" / "line" / "r1.01")
    pieces = list(perform(replace(ordered(cell, directory), plan="another"), tmp_path))
    with pytest.raises(CellLost, match="plans it in another way than this machine"):
        accept(pieces, directory, tmp_path / "tmp")
    assert not directory.path.exists()
