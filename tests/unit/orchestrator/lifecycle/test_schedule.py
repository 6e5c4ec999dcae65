"""Cells in virtual time run side by side, the longest first; cells in real time run beside no others."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import Invocation, default_jobs
from orchestrator.lifecycle.schedule import Standing
from orchestrator.planning.sweep import cells
from orchestrator.runs.journal import read
from tests.unit.orchestrator.lifecycle.test_run import COMMAND, experiment, perform
from tests.unit.scripted_backend import ScriptedBackend, Stage


def started(root: Path) -> list[str]:
    entries = read(root / "line" / "r1" / "journal.jsonl")
    return [entry["run"] for entry in entries if entry["entry"] == "intent" and entry["kind"] == "run"]


def test_the_longest_cells_go_first(tmp_path: Path) -> None:
    finished = perform(tmp_path, Stage(), experiment(sweep={"duration": ["1s", "300s", "60s"]}))
    assert started(tmp_path) == ["r1.02", "r1.03", "r1.01"]
    assert [run.directory.id for run in finished.runs] == ["r1.01", "r1.02", "r1.03"]


def test_real_time_goes_last_and_alone(tmp_path: Path) -> None:
    beside: dict[int, int] = {}
    busy = 0

    async def count(backend: ScriptedBackend) -> None:
        nonlocal busy
        busy += 1
        beside[len(beside)] = busy
        await asyncio.sleep(0.05)
        busy -= 1

    swept = experiment(sweep={"backend": ["netns", "sim"], "seed": [1, 2]})
    assert default_jobs(cells(swept)) >= 1
    perform(tmp_path, Stage(converge=count), swept, jobs=2)
    assert started(tmp_path)[:2] == ["r1.03", "r1.04"]
    assert [*beside.values()] == [1, 2, 1, 1]


def test_who_asks_is_told_how_far_it_is(tmp_path: Path) -> None:
    told: list[Standing] = []
    of = experiment(sweep={"seed": [1, 2, 3]})
    with Invocation.create(of, cells(of), tmp_path, "r1") as invocation:
        asyncio.run(invocation.run(1, Stage(), Interruption(), lambda *fact: None, COMMAND, tell=told.append))
    assert told[0] == Standing(running=1, waiting=2, ended=0, failed=0, left_s=None)
    assert told[-1].ended == 3
    assert told[-1].left_s == pytest.approx(0.0)
    assert all(standing.left_s is not None for standing in told if standing.ended)
