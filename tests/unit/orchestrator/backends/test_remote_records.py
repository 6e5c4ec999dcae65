"""Pieces of a remote node's record: taken only where they follow from what was asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from node_agent.agent.control import AskMetrics, Command, Report, State
from node_agent.supervisor.commands import MOST_PICTURE, MOST_TAIL, AskClock, ReadPicture, ReadSegment
from orchestrator.backends.agent_channel import AgentLost
from orchestrator.backends.agent_settings import _watch
from orchestrator.backends.remote.records import SupervisedRecords
from orchestrator.backends.remote.supervisor import NodeSupervisor
from orchestrator.planning.load import load_experiment
from orchestrator.runs.backend import Cursor, NodeNotSeen
from orchestrator.spec.backends import traits_of
from tests.unit.orchestrator.backends.test_remote_values import site
from tests.unit.rove_process import LINE
from tests.unit.specs import planned


class Supervisor:
    """Answers what a test says."""

    def __init__(self, at: tuple[int, ...] = (), data: bytes = b"", lost: str = "") -> None:
        self.asked: list[Command] = []
        self._report = Report(1, State.RUNNING, True, 5, at=at, data=data)
        self._lost = lost

    async def ask_quietly(self, command: Command, timeout: float) -> Report:
        self.asked.append(command)
        if self._lost:
            raise AgentLost(self._lost)
        return self._report


def records(supervisor: Any) -> SupervisedRecords:
    return SupervisedRecords(planned(load_experiment(LINE)).apps, {"e": supervisor})


@pytest.mark.parametrize(
    ("asked", "at"),
    [
        ((0, 0, 0), (1, 1, 0)),
        ((1, 1, 5), (1, 1, 5)),
        ((1, 1, 5), (1, 2, 0)),
        ((1, 1, 5), (2, 1, 0)),
    ],
)
def test_what_follows_is_taken(asked: tuple[int, int, int], at: tuple[int, ...]) -> None:
    supervisor = Supervisor(at, b"x")
    assert asyncio.run(records(supervisor).tail("e", Cursor(*asked))) == (Cursor(*at), b"x")
    assert supervisor.asked == [ReadSegment(*asked)]


@pytest.mark.parametrize(
    ("at", "data"),
    [
        ((), b"x"),
        ((1, 1), b"x"),
        ((1, 1, 5, 5), b"x"),
        ((1, 1, 4), b"x"),
        ((1, 1, 0), b"x"),
        ((1, 1, -1), b"x"),
        ((1, 2, 7), b"x"),
        ((0, 1, 0), b"x"),
        ((2, 0, 0), b"x"),
        ((1_000_000, 1, 0), b"x"),
        ((2, 10**9, 0), b"x"),
        ((1, 1, 5), bytes(MOST_TAIL + 1)),
    ],
)
def test_what_does_not_follow_is_refused(at: tuple[int, ...], data: bytes) -> None:
    with pytest.raises(NodeNotSeen, match=r"^e answers"):
        asyncio.run(records(Supervisor(at, data)).tail("e", Cursor(1, 1, 5)))


def test_folders_are_those_of_the_plan() -> None:
    found = records(Supervisor())
    assert found.picture_folders("e") == ["screen-0"]
    assert found.picture_folders("a") == []


def test_a_picture_is_taken_or_refused() -> None:
    supervisor = Supervisor((7,), b"jpeg")
    assert asyncio.run(records(supervisor).picture("e", "screen-0", 3)) == (7, b"jpeg")
    assert supervisor.asked == [ReadPicture("screen-0", 3)]
    for at, data in (((), b""), ((-1,), b"x"), ((1, 2), b"x"), ((1,), bytes(MOST_PICTURE + 1))):
        with pytest.raises(NodeNotSeen, match="something else than a picture"):
            asyncio.run(records(Supervisor(at, data)).picture("e", "screen-0", 3))


def test_a_lost_node_is_told_in_one_line() -> None:
    with pytest.raises(NodeNotSeen, match=r"^e cannot be read now: cut\\noff$"):
        asyncio.run(records(Supervisor(lost="cut\noff")).tail("e", Cursor()))
    with pytest.raises(NodeNotSeen, match="z has no supervisor"):
        asyncio.run(records(Supervisor()).tail("z", Cursor()))


@pytest.mark.parametrize("command", [ReadSegment(0, 0, 0), AskMetrics()])
def test_pieces_and_metrics_are_not_asked_for_while_the_clock_is_measured(
    tmp_path: Path, command: Command
) -> None:
    async def trial() -> list[type[Command]]:
        supervisor = NodeSupervisor(site("n1", tmp_path), "r1", 30.0, tmp_path / "log")
        asked: list[type[Command]] = []

        async def ask(command: Command, timeout: float = 0.0) -> Report:
            asked.append(type(command))
            return Report(1, State.RUNNING, True, 5)

        supervisor.ask = ask  # type: ignore[method-assign]
        await supervisor.ask_clock()
        reading = asyncio.create_task(supervisor.ask_quietly(command, 1.0))
        for _ in range(7):
            await asyncio.sleep(0.01)
            await supervisor.ask_clock()
        await reading
        return asked

    assert asyncio.run(trial()) == [AskClock] * 8 + [type(command)]


def test_agents_report_their_links_only_where_the_true_ones_are_unknown() -> None:
    watches = {name: _watch(traits_of(name)) for name in ("sim", "netns", "ssh", "core")}
    assert watches["sim"] is None
    periods = {name: watch.neighbours_period for name, watch in watches.items() if watch is not None}
    assert periods == {"netns": None, "ssh": 2.0, "core": 2.0}
