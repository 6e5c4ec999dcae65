"""How long a phase may take: on the wall clock, without time in which processes wait for a processor."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.host_load.processor_wait import waited_for_processor_s
from orchestrator.lifecycle.bounded import TimeLimit, bounded
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.runs.backend import Outcomes


class Machine:
    def __init__(self) -> None:
        self.now = 100.0
        self.waited = 7.0

    def limit(self, seconds: float) -> TimeLimit:
        return TimeLimit(seconds, lambda: self.waited, lambda: self.now)

    def passes(self, seconds: float, waited: float = 0.0) -> None:
        self.now += seconds
        self.waited += waited


def test_a_process_that_does_not_wait_has_the_time_on_the_wall_clock() -> None:
    machine = Machine()
    limit = machine.limit(60.0)
    machine.passes(59.0)
    assert limit.left() == pytest.approx(1.0)
    machine.passes(1.0)
    assert limit.left() == 0.0
    assert str(limit) == "60 s"


def test_waiting_for_a_processor_does_not_count() -> None:
    machine = Machine()
    limit = machine.limit(60.0)
    machine.passes(300.0, waited=280.0)
    assert limit.left() == pytest.approx(40.0)
    machine.passes(40.0)
    assert limit.left() == 0.0
    assert str(limit) == "60 s, without 280 s of waiting for a processor"


def test_the_wait_of_a_process_that_has_ended_stays_uncounted() -> None:
    machine = Machine()
    limit = machine.limit(60.0)
    machine.passes(100.0, waited=90.0)
    assert limit.left() == pytest.approx(50.0)
    machine.waited = 0.0
    assert limit.left() == pytest.approx(50.0)


def test_there_is_an_end_to_all_waiting() -> None:
    machine = Machine()
    limit = machine.limit(60.0)
    machine.passes(1199.0, waited=1199.0)
    assert limit.left() > 0.0
    machine.passes(1.0, waited=1.0)
    assert limit.left() == 0.0


def test_work_that_hangs_is_given_up() -> None:
    async def hang() -> Outcomes:
        await asyncio.Event().wait()
        return ()

    async def tried() -> None:
        await bounded(hang(), TimeLimit(0.05), Interruption(), None)

    with pytest.raises(TimeoutError):
        asyncio.run(tried())


def test_the_kernels_counter_is_read(tmp_path: Path) -> None:
    for name, text in (("1", "170101357 2964270610 137\n"), ("2", "rubbish\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(text)
    found = [waited_for_processor_s(pid, tmp_path) for pid in (1, 2, 3)]
    assert found == [2.96427061, 0.0, 0.0]
