"""A node that is killed: what its journal has as done is in its records, too."""

import asyncio
from pathlib import Path

import pytest

from node_agent.apps.base import Surroundings
from node_agent.apps.comet.application import Detect
from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, Stream, TaskPlan
from node_agent.apps.comet.telemetry import EventDetected, EventOccurred
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import Event
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.transport.authentication import Credentials
from node_agent.transport.limits import ConnectionLimits
from tests.unit.networks import RadioNetwork

pytestmark = pytest.mark.unit

SMOKE = Stream(0, 0, ("smoke",), ("base",))
PLAN = NodePlan("base", (TaskPlan(0, "fire", "smoke", "base"),), (SMOKE,), (JunctionPlan(0, ((0,),)),))
CONFIG = DetectConfig(PLAN, (OwnEvent("smoke", 1.0, times=((1.0, 1.0), (2.0, 2.0))),))


class Killed:
    """A node whose records are buffered, as an agent's are. Those that were not flushed are lost."""

    def __init__(self, network: RadioNetwork, folder: Path, written: list[Event]) -> None:
        self._buffer: list[Event] = []
        self._written = written
        self.app = Detect(
            CONFIG,
            Surroundings(
                app="detect",
                run="run",
                node="base",
                boot=0,
                port=network.port("base"),
                record=self._buffer.append,
                link_state=network,
                addresses={"base": network.address("base")},
                credentials=Credentials("run", "base", {}),
                links=ConnectionLimits(),
                refusals=Refusals(),
                directory=folder,
                scratch=folder,
                core=asyncio.Semaphore(),
                fail=lambda where, error: pytest.fail(f"{where}: {error}"),
                flush=self._flush,
            ),
        )

    def _flush(self) -> None:
        self._written += self._buffer
        self._buffer.clear()


def test_what_happened_right_before_a_node_is_killed_is_recorded_once(tmp_path: Path) -> None:
    written: list[Event] = []

    async def two_lives() -> None:
        network = RadioNetwork(["base"])
        for life_s in (1.5, 2.0):
            node = Killed(network, tmp_path, written)
            await node.app.start()
            node.app.open()
            await asyncio.sleep(life_s)
            await node.app.stop()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(two_lives())
    occurred = [each.number for each in written if isinstance(each, EventOccurred)]
    found = [each.constituents for each in written if isinstance(each, EventDetected)]
    assert occurred == [0, 1] and found == [("smoke#0",), ("smoke#1",)]
