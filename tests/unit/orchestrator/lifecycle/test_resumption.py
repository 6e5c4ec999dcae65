"""A sweep goes on where it was stopped: what is done stays, what was cut off is run again, and once only."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import BadInput
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.invocation import CellLost, Finished, Invocation
from orchestrator.lifecycle.resumption import (
    EARLIER,
    differences,
    latest_sweep,
    remaining,
    remove_unborn,
    require_unchanged,
    take_up,
)
from orchestrator.lifecycle.run import RunOrder
from orchestrator.lifecycle.schedule import Standing
from orchestrator.planning.sweep import Cell, cells
from orchestrator.runs import journal as journals
from orchestrator.runs.run_directory import RunDirectory, create, create_member
from orchestrator.runs.verdict import Judgement, Verdict, read_verdict
from orchestrator.spec.experiment import Experiment
from tests.unit.orchestrator.lifecycle.test_run import COMMAND, experiment, perform
from tests.unit.scripted_backend import ScriptedBackend, Stage, broken

FAILED = frozenset({"failed"})
NONE: frozenset[str] = frozenset()


def swept(**changes: Any) -> Experiment:
    return experiment(sweep={"seed": [1, 2, 3]}, **changes)


def go_on(
    root: Path, stage: Stage, again: frozenset[str] = NONE, of: Experiment | None = None, **options: Any
) -> Finished:
    of = of or swept()
    directory = latest_sweep(root, of.name)
    assert directory is not None

    async def run() -> Finished:
        earlier = take_up(directory, cells(of), again)
        with Invocation(of, cells(of), directory, earlier) as invocation:
            return await invocation.run(
                1, stage, Interruption(), lambda *fact: None, ["rove", "sweep"], **options
            )

    return asyncio.run(run())


def states(root: Path) -> list[str]:
    document = json.loads((root / "line" / "r1" / "state.json").read_text())
    assert sum(document["counts"].values()) == len(document["cells"])
    return list(document["cells"].values())


def interrupting(wish: Interruption) -> Any:
    async def interrupt(backend: ScriptedBackend) -> None:
        wish.request()

    return interrupt


def test_what_was_stopped_goes_on(tmp_path: Path) -> None:
    wish = Interruption()
    perform(tmp_path, Stage(advance=interrupting(wish)), swept(), interruption=wish)
    directory = RunDirectory(tmp_path / "line" / "r1")
    assert states(tmp_path) == ["skipped"] * 3
    assert remaining(directory, cells(swept()), NONE) == 3
    stage = Stage()
    finished = go_on(tmp_path, stage)
    assert [run.directory.id for run in finished.runs] == ["r1.01", "r1.02", "r1.03"]
    assert finished.verdict.verdict is Judgement.VALID
    assert len(stage.made) == 3
    assert states(tmp_path) == ["done"] * 3
    assert [path.name for path in (directory.path / EARLIER).iterdir()] == ["r1.01-1"]
    assert remaining(directory, cells(swept()), NONE) == 0
    entries = journals.read(directory.journal)
    assert journals.is_closed(entries)
    assert len([entry for entry in entries if entry["entry"] == "opened"]) == 2


def test_what_is_done_is_not_run_again(tmp_path: Path) -> None:
    perform(tmp_path, Stage(), swept())
    stage = Stage()
    finished = go_on(tmp_path, stage)
    assert (len(finished.runs), stage.made) == (3, [])
    assert finished.verdict.verdict is Judgement.VALID


def test_failed_cells_stay_unless_they_are_retried(tmp_path: Path) -> None:
    async def break_the_second(backend: ScriptedBackend) -> None:
        if len(first.made) == 2:
            raise ValueError("out of luck")

    first = Stage(up=break_the_second)
    perform(tmp_path, first, swept())
    assert states(tmp_path) == ["done", "failed", "done"]
    stage = Stage()
    assert go_on(tmp_path, stage).verdict.verdict is Judgement.FAILED
    assert stage.made == []
    assert go_on(tmp_path, stage, FAILED).verdict.verdict is Judgement.VALID
    assert len(stage.made) == 1
    assert states(tmp_path) == ["done"] * 3
    kept = RunDirectory(tmp_path / "line" / "r1" / EARLIER / "r1.02-1")
    verdict = read_verdict(kept)
    assert verdict is not None and "out of luck" in verdict.reasons[0]


def test_runs_that_were_retried_stay_whatever_a_user_removed_of_them(tmp_path: Path) -> None:
    perform(tmp_path, Stage(up=broken), swept())
    earlier = tmp_path / "line" / "r1" / EARLIER
    for _ in range(2):
        go_on(tmp_path, Stage(up=broken), FAILED)
    shutil.rmtree(earlier / "r1.01-1")
    assert go_on(tmp_path, Stage(), FAILED).verdict.verdict is Judgement.VALID
    assert sorted(path.name for path in earlier.glob("r1.01-*")) == ["r1.01-1", "r1.01-2"]
    assert sorted(path.name for path in earlier.glob("r1.02-*")) == ["r1.02-1", "r1.02-2", "r1.02-3"]


def test_a_crash_at_any_moment_of_a_cell_is_made_good(tmp_path: Path) -> None:
    """The directory made and nothing else, a journal without an end, a verdict that nobody noted."""
    of = swept()
    planned = cells(of)
    invocation = Invocation.create(of, planned, tmp_path, "r1")
    create_member(invocation.directory, 1)
    second = create_member(invocation.directory, 2)
    journals.Journal.create(second.journal).abandon()
    invocation.journal.abandon()  # as kill -9 does
    stage = Stage()
    finished = go_on(tmp_path, stage)
    assert [run.directory.id for run in finished.runs] == ["r1.01", "r1.02", "r1.03"]
    assert finished.verdict.verdict is Judgement.VALID
    assert len(stage.made) == 3
    (tmp_path / "line" / "r1" / "state.json").unlink()
    (tmp_path / "line" / "r1" / "verdict.json").unlink()
    assert go_on(tmp_path, stage).verdict.verdict is Judgement.VALID
    assert len(stage.made) == 3


def test_a_command_that_died_before_its_sweep_was_written_leaves_its_name_free(tmp_path: Path) -> None:
    directory = create(tmp_path, "line", "r1")
    journals.Journal.create(directory.journal).abandon()
    assert latest_sweep(tmp_path, "line") is None
    assert remove_unborn(directory)
    perform(tmp_path, Stage(), swept())
    assert not remove_unborn(directory)
    assert directory.verdict.exists()


def test_a_sweep_that_goes_on_elsewhere_is_left_alone(tmp_path: Path) -> None:
    of = swept()
    with (
        Invocation.create(of, cells(of), tmp_path, "r1") as invocation,
        pytest.raises(BadInput, match="goes on already"),
    ):
        take_up(invocation.directory, cells(of), NONE)


def test_no_further_run_starts_after_too_many_failures(tmp_path: Path) -> None:
    of = swept()
    with Invocation.create(of, cells(of), tmp_path, "r1") as invocation:
        stage = Stage(up=broken)
        asyncio.run(invocation.run(1, stage, Interruption(), lambda *fact: None, COMMAND, most_failures=2))
    assert len(stage.made) == 2
    assert states(tmp_path) == ["failed", "failed", "skipped"]


def test_a_changed_file_is_one_error_that_says_what_differs(tmp_path: Path) -> None:
    perform(tmp_path, Stage(), swept())
    directory = latest_sweep(tmp_path, "line")
    assert directory is not None
    require_unchanged(swept(), directory, "--new")
    with pytest.raises(BadInput) as error:
        require_unchanged(swept(duration="77s", warmup="1s"), directory, "rove sweep line.yaml --new")
    text = str(error.value)
    assert "duration: was 10.0, is 77.0" in text
    assert "warmup: was" in text
    assert "start anew: rove sweep line.yaml --new" in text
    with pytest.raises(BadInput, match=r"sweep.seed: was \[1, 2, 3\], is \[1, 2\]"):
        require_unchanged(experiment(sweep={"seed": [1, 2]}), directory, "--new")


@pytest.mark.parametrize("damaged", [b"name: [line", b"\xff\xfe\x00", b""])
def test_a_sweep_whose_own_file_is_damaged_is_one_error(tmp_path: Path, damaged: bytes) -> None:
    perform(tmp_path, Stage(), swept())
    directory = RunDirectory(tmp_path / "line" / "r1")
    directory.spec.write_bytes(damaged)
    with pytest.raises(BadInput, match=r"spec\.yaml: was another content, is changed"):
        require_unchanged(swept(), directory, "--new")


def test_differences_are_found_at_any_depth() -> None:
    found = list(differences({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"b": 2, "c": [1]}, "e": 1}))
    assert [str(each) for each in found] == [
        "a.b: was 1, is 2",
        "d: was 1, is not there",
        "e: was not there, is 1",
    ]


class Far:
    """Executors that do as they are told; ``lose``: the seeds whose cells do not come back."""

    def __init__(self, lose: Sequence[int] = (), wish: Interruption | None = None) -> None:
        self.lose = lose
        self.wish = wish
        self.under_way = 0
        self.most = 0
        self.cancelled = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def slots(self) -> int:
        return 2

    def places(self) -> int:
        return 2

    async def run(self, cell: Cell, order: RunOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.01)
        self.under_way -= 1
        if self.wish is not None:
            self.wish.request()
            await self.cancelled.wait()
            raise CellLost("cancelled")
        if cell.experiment.seed in self.lose:
            raise CellLost("no executor could run it")
        directory.path.mkdir()
        directory.verdict.write_text('{"verdict": "valid"}')
        return Verdict(Judgement.VALID)

    def cancel(self) -> None:
        self.loop.call_soon_threadsafe(self.cancelled.set)


def elsewhere(
    root: Path, lose: Sequence[int] = (), leave: bool = False
) -> tuple[Finished, Far, list[Standing]]:
    told: list[Standing] = []
    of = swept()

    async def run() -> tuple[Finished, Far]:
        wish = Interruption()
        far = Far(lose, wish if leave else None)
        with Invocation.create(of, cells(of), root, "r1") as invocation:
            finished = await invocation.run(
                1, Stage(), wish, lambda *fact: None, COMMAND, elsewhere=far, tell=told.append
            )
        return finished, far

    finished, far = asyncio.run(run())
    return finished, far, told


def test_a_cell_that_does_not_come_back_is_a_failed_run_with_its_reason(tmp_path: Path) -> None:
    finished, far, told = elsewhere(tmp_path, lose=[2])
    assert [run.verdict.verdict for run in finished.runs] == ["valid", "failed", "valid"]
    assert finished.runs[1].verdict.reasons == ("no executor could run it",)
    assert states(tmp_path) == ["done", "failed", "done"]
    assert far.most == 2
    assert (told[-1].ended, told[-1].failed, told[-1].waiting) == (3, 1, 0)
    assert go_on(tmp_path, Stage(), FAILED).verdict.verdict is Judgement.VALID


def test_who_leaves_takes_the_cells_back(tmp_path: Path) -> None:
    finished, _, _ = elsewhere(tmp_path, leave=True)
    assert (finished.runs, finished.interrupted) == ((), True)
    assert states(tmp_path) == ["skipped"] * 3
    assert not (tmp_path / "line" / "r1.01").exists()
    assert go_on(tmp_path, Stage()).verdict.verdict is Judgement.VALID
