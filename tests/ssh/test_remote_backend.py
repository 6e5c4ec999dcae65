"""The backend itself on the laboratory, phase by phase, where a run's own pace would hide what matters."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from node_agent.telemetry.segments import read_records
from orchestrator.backends.remote.backend import RemoteBackend
from orchestrator.backends.ssh.backend import ssh_backend
from orchestrator.errors import EXIT_FAILED
from orchestrator.planning.load import load_experiment
from orchestrator.runs.backend import Outcomes, Status
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab
from tests.unit.specs import planned

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]
UNTIL_END_S = 3.0
"""A supervisor that hangs is asked for its time for less long than that, and then to end."""


@pytest.fixture(autouse=True)
def user(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The laboratory's."""
    for key in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(key, lab.environment[key])
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@asynccontextmanager
async def converged(lab: Lab, directory: Path, **changes: Any) -> AsyncIterator[RemoteBackend]:
    """Taken down at the end; everything is removed then."""
    experiment = load_experiment(lab.experiment(directory / "experiment.yaml", **changes))
    run = run_in(directory)
    run.temporary.mkdir(parents=True)
    with Journal.create(run.journal) as journal:
        backend = ssh_backend(planned(experiment), run.id, run.path, journal)
        try:
            assert all_well(await backend.up(lambda fraction: None))
            assert all_well(await backend.converge())
            yield backend
            await backend.stop()
            await backend.collect(run.path)
        finally:
            await backend.down()


def all_well(outcomes: Outcomes) -> bool:
    return all(outcome.status is Status.OK for outcome in outcomes)


def emitted(directory: Path) -> int:
    records = read_records(run_in(directory).segments("n01"))
    return sum(record["kind"] == "tuple_emitted" for record in records)


def run_in(directory: Path) -> RunDirectory:
    return RunDirectory(directory / f"r{os.getpid()}")


def test_a_node_where_another_run_goes_on_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    async def trial() -> tuple[list[str], list[str], int]:
        async with converged(lab, tmp_path):
            before = lab.node("n02").processes()
            second = await asyncio.to_thread(finished, lab)
            told = [outcome.reason for outcome in (second.outcome("up", node) for node in lab.nodes)]
            after = [line for line in before if line not in lab.node("n02").processes()]
            return told, after, second.exit_code

    reasons, gone, exit_code = asyncio.run(trial())
    assert exit_code == EXIT_FAILED
    assert all(f"run r{os.getpid()} is going on there" in reason for reason in reasons), reasons
    assert gone == []


def finished(lab: Lab) -> Drill:
    with Drill(lab, "second") as drill:
        drill.finish()
    return drill


def test_sources_that_stayed_shut_are_told_even_if_the_node_is_back_by_the_end(
    lab: Lab, tmp_path: Path
) -> None:
    async def trial() -> Outcomes:
        async with converged(lab, tmp_path) as backend:
            with lab.node("n01").hanging():
                lab.node("n01").cut()
                passing = asyncio.create_task(backend.advance(16.0, lambda share: None))
                await asyncio.sleep(11.5)
            return await passing

    troubled = [outcome for outcome in asyncio.run(trial()) if outcome.status is not Status.OK]
    assert [outcome.node for outcome in troubled] == ["n01"]
    assert "its sources were not opened" in troubled[0].reason
    assert emitted(tmp_path) == 0


def test_a_connection_that_breaks_when_sources_are_to_open_is_waited_for(lab: Lab, tmp_path: Path) -> None:
    async def trial() -> Outcomes:
        async with converged(lab, tmp_path) as backend:
            with lab.node("n01").hanging():
                passing = asyncio.create_task(backend.advance(8.0, lambda share: None))
                await asyncio.sleep(0.5)
                lab.node("n01").cut()
            return await passing

    assert all_well(asyncio.run(trial()))
    assert emitted(tmp_path) > 0


def test_a_connection_that_breaks_when_the_run_ends_is_waited_for(lab: Lab, tmp_path: Path) -> None:
    async def trial() -> Outcomes:
        async with converged(lab, tmp_path) as backend:
            await backend.advance(1.0, lambda share: None)
            node = lab.node("n01")
            node.kill("node_agent.supervisor", "run", number=signal.SIGSTOP)
            stopping = asyncio.create_task(backend.stop())
            await asyncio.sleep(UNTIL_END_S)
            node.kill("node_agent.supervisor", "attach")
            node.kill("node_agent.supervisor", "run", number=signal.SIGCONT)
            return await stopping

    assert all_well(asyncio.run(trial()))


def test_trouble_of_this_machine_does_not_end_the_attempts_to_attach(lab: Lab, tmp_path: Path) -> None:
    async def trial() -> tuple[Outcomes, Outcomes]:
        async with converged(lab, tmp_path) as backend:
            temporary = run_in(tmp_path).temporary
            aside = temporary.rename(temporary.with_name("aside"))
            lab.node("n01").cut()
            await asyncio.sleep(2.0)
            meanwhile = await backend.advance(0.1, lambda share: None)
            aside.rename(temporary)
            return meanwhile, await backend.advance(3.0, lambda share: None)

    meanwhile, afterwards = asyncio.run(trial())
    assert [outcome.node for outcome in meanwhile if outcome.status is Status.UNREACHABLE] == ["n01"]
    assert all_well(afterwards)
