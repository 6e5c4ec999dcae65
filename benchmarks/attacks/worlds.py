"""Runs a victim's agent in memory, among nodes of which one is malicious; the siege provides all its input.

Node ``victim`` runs the inner operator; ``mallory``, which holds keys of its own, has one of the two sources,
a second replica of the operator, and the sink; ``honest`` has the other source.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec

from benchmarks.attacks.memory_port import MemoryPort, MemoryStream
from benchmarks.attacks.speaking import RUN, Refused, Session, Speaker, directed_key, key_settings
from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig
from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow, UnitRule
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.dataflow.wire.codec import CODEC, TupleConnection
from node_agent.linkstate.pushed import PushedLinkState
from node_agent.model.cost_graph import CostGraph
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import Event
from node_agent.ports import Address, PortError
from node_agent.transport.authentication import Digests
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Pair

VICTIM, MALLORY, HONEST = NODES = ("victim", "mallory", "honest")
HOSTS = {node: f"127.77.0.{number}" for number, node in enumerate(NODES, 1)}
PORT = 7000
PAIR = Pair("a/0", "op/0")
"""A connection that mallory may open."""
SIBLING = Pair("op/1", "op/0")
OUT = Pair("op/0", "sink/0")
VICTIM_EPOCH = (1).to_bytes(8, "big")
"""The first bytes that its port draws."""
FASTER = 50.0
"""The agent's pauses are shorter by this factor than in a run."""

_TAKES: dict[str, UnitRule] = {
    "best_effort": Each(),
    "best_effort_count": CountWindow(3, 1),
    "exactly_once": Each(),
    "exactly_once_count": CountWindow(4, 2),
    "exactly_once_tau": SameTau(),
    "exactly_once_time": TimeWindow(1_000_000_000, 500_000_000),
    "at_least_once": Each(),
}
VARIANTS = tuple(_TAKES)


def plan_of(variant: str) -> DeploymentPlan:
    levels = ("best_effort", "exactly_once", "at_least_once")
    reliability: Any = next(level for level in levels if variant.startswith(level))
    takes = _TAKES[variant]
    after = ("a",) if isinstance(takes, CountWindow) else ("a", "b")
    operators = (
        OperatorSpec("a", "synthetic_source", params={"rate": 1.0}),
        OperatorSpec("b", "synthetic_source", params={"rate": 1.0}),
        OperatorSpec("op", "union", after, takes=takes),
        OperatorSpec("sink", "sink", ("op",) if len(after) == 2 else ("op", "b")),
    )
    placed = {"a/0": MALLORY, "b/0": HONEST, "op/0": VICTIM, "op/1": MALLORY, "sink/0": MALLORY}
    replicas = (Replica(name[:-2], int(name[-1]), node) for name, node in placed.items())
    return DeploymentPlan(Query("siege", operators, reliability), tuple(replicas))


class NoLog:
    """Counts what an agent records; stores nothing."""

    boot = 1

    def __init__(self) -> None:
        self.directory = Path(mkdtemp(prefix="rove-siege-log-"))
        self.records = 0

    def append(self, event: Event) -> None:
        msgspec.json.encode(event)  # a record that cannot be encoded is a failure
        self.records += 1

    def recorder(self, app: str) -> Callable[[Event], None]:
        return self.append

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class FastPort(MemoryPort):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / FASTER)


class AgentFell(AssertionError):
    """The victim's agent has failed."""


class World:
    """A running agent of the victim, and mallory's end of the connection that it opens to the sink."""

    def __init__(self, variant: str) -> None:
        self._mallory = Speaker(MALLORY, NODES)
        self.port = FastPort(HOSTS[VICTIM], self._answer)
        self.session: tuple[MemoryStream, Session] | None = None
        """The session of the connection that the victim has opened to mallory's sink."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._nonce = 0
        pushed = PushedLinkState()
        costs = {node: {other: 1.0 for other in NODES if other != node} for node in NODES}
        pushed.push(CostGraph(costs, "hops", "ground_truth", 1))
        dataflow = DataflowConfig(
            plan_of(variant),
            Switching(period=0.5, mode=Mode.EXCHANGE),
            delivery=DeliveryLimits(items=256, bytes=1 << 20, in_flight=64),
        )
        config = AgentConfig(
            RUN,
            VICTIM,
            {node: Address(HOSTS[node], PORT) for node in NODES},
            apps=(dataflow.as_app(),),
            **key_settings(VICTIM, NODES),
        )
        self._log = NoLog()
        log: Any = self._log
        self.agent = Agent(config, self.port, pushed, log)

    async def start(self) -> None:
        await self.agent.start()

    def connect(self, node: str = MALLORY) -> MemoryStream:
        """Connects to the victim; returns this end."""
        here, there = MemoryStream.pair(Address(HOSTS[node], 40_000), Address(HOSTS[VICTIM], PORT))
        assert self.port.accept is not None
        self._keep(self.port.accept(there))
        return here

    def check(self) -> None:
        if self.agent.failure is not None:
            raise AgentFell(str(self.agent.failure)) from self.agent.failure.__cause__

    def nonce(self) -> bytes:
        self._nonce += 1
        return self._nonce.to_bytes(16, "big")

    async def close(self) -> None:
        await self.agent.stop("the siege is over")
        for task in list(self._tasks):
            task.cancel()
        shutil.rmtree(self._log.directory, ignore_errors=True)

    def _answer(self, to: Address, stream: MemoryStream) -> None:
        self._keep(self._attend(stream))

    async def _attend(self, stream: MemoryStream) -> None:
        """Welcomes the victim's connections, and reads what it sends."""
        try:
            session = await self._mallory.accept(stream, self.nonce())
            self.session = stream, session
            while True:
                await stream.read_exactly(1)
        except (PortError, Refused):
            if self.session is not None and self.session[0] is stream:
                self.session = None

    def _keep(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def victim_agent(variant: str) -> World:
    world = World(variant)
    await world.start()
    return world


def victim_connection(port: MemoryPort, on_failure: Callable[[BaseException], None]) -> TupleConnection:
    """Returns a connection that the victim opens to mallory."""
    return TupleConnection(
        port,
        Address(HOSTS[MALLORY], PORT),
        directed_key(VICTIM, MALLORY, NODES),
        OUT,
        CODEC,
        ConnectionLimits(),
        Digests(),
        Refusals(),
        on_failure,
    )
