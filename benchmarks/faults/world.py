"""One schedule, run: the agents of all nodes in one loop of virtual time, and what comes over them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks.faults.air import FaultyAir, edge
from benchmarks.faults.operators import Given, campaign_kinds
from benchmarks.faults.schedules import COUNT, FAULTS_FOR, RATE, Fault, Schedule, calm
from node_agent.agent import Agent
from node_agent.agent_config import AgentConfig, Switching
from node_agent.delivery.limits import DeliveryLimits
from node_agent.model.decision import Rule
from node_agent.ports import Address
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.virtual.host import VirtualHost
from node_agent.virtual.loop import VirtualLoop
from node_agent.virtual.port import VirtualPort

DATA_PORT = 7400
KEY = bytes(range(32))
LONGEST = 180.0
"""Seconds of virtual time after which whatever has not arrived is lost."""
AFTERWARDS = 8.0
"""Seconds in which what arrived might arrive again."""

Key = tuple[str, str, int]


class Outcome(Struct, frozen=True):
    """By sink, stream and position; ``mismatches``: results other than those of the calm run."""

    lost: tuple[Key, ...]
    duplicated: tuple[Key, ...]
    mismatches: tuple[Key, ...]
    failures: tuple[str, ...]
    finished_after: float
    repeated: tuple[Key, ...] = ()
    """Duplicates that the query allows."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.mismatches or self.failures)


class World:
    def __init__(self, schedule: Schedule, directory: Path, loop: VirtualLoop) -> None:
        self.failures: list[str] = []
        self._schedule = schedule
        self._directory = directory
        self._loop = loop
        self._air = FaultyAir(schedule.nodes, loop, schedule.lag, schedule.latency, schedule.bps)
        self._boots: Counter[str] = Counter()
        self._hosts: dict[str, VirtualHost] = {}
        self._agents: dict[str, Agent] = {}

    async def run(self, enough: Callable[[], bool]) -> float:
        """Until all faults are over and there is ``enough``, or it takes too long; says how long it took."""
        for node in self._schedule.nodes:
            await self._boot(node)
        await asyncio.sleep(1.0)
        for agent in self._agents.values():
            agent.open_sources()
        began = self._loop.time()
        async with asyncio.TaskGroup() as faults:
            for fault in self._schedule.faults:
                faults.create_task(self._inflict(fault))
            await asyncio.sleep(max(FAULTS_FOR, COUNT / RATE))
        while not enough() and self._loop.time() - began < LONGEST:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.5)
        took = self._loop.time() - began
        await asyncio.sleep(AFTERWARDS)
        for agent in self._agents.values():
            await self._stop(agent)
        return took

    async def _boot(self, node: str) -> None:
        schedule, boot = self._schedule, self._boots[node]
        self._boots[node] += 1
        host = VirtualHost(node, node, self._loop, self._air, partial(self._air.next_hop, node))
        log = SegmentLog(self._directory / node, "campaign", node, self._loop.now_ns)
        config = AgentConfig(
            "campaign",
            node,
            schedule.plan,
            {other: Address(other, DATA_PORT) for other in schedule.nodes},
            KEY,
            Switching(Rule(schedule.policy), schedule.period),
            delivery=DeliveryLimits(in_flight=64, unacknowledged=schedule.unacknowledged),
        )
        agent = Agent(config, VirtualPort(host, schedule.seed * 1000 + boot), self._air, log)
        self._hosts[node], self._agents[node] = host, agent
        await agent.start()

    async def _stop(self, agent: Agent) -> None:
        await agent.stop("over")
        if agent.failure is not None:
            self.failures.append(str(agent.failure))

    async def _inflict(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        match fault.what:
            case "crash":
                await self._crash(fault.nodes[0], fault.seconds)
            case "partition":
                inside = fault.nodes
                edges = [e for e in self._air.edges if (e[0] in inside) is not (e[1] in inside)]
                self._air.cut(*edges)
                await asyncio.sleep(fault.seconds)
                self._air.mend(*edges)
            case "flap":
                link = edge(*fault.nodes)
                for _ in range(max(1, round(fault.seconds / (2 * fault.value)))):
                    self._air.cut(link)
                    await asyncio.sleep(fault.value)
                    self._air.mend(link)
                    await asyncio.sleep(fault.value)
            case "slow":
                self._air.slow(edge(*fault.nodes), round(fault.value))
                await asyncio.sleep(fault.seconds)
                self._air.slow(edge(*fault.nodes))
            case "price":
                self._air.price(edge(*fault.nodes), fault.value)

    async def _crash(self, node: str, seconds: float) -> None:
        """Without a word to anyone, and with the loss of all it knew."""
        agent = self._agents.pop(node, None)
        if agent is None:
            return  # it is down already
        self._hosts[node].close()
        self._air.down(node)
        await self._stop(agent)
        await asyncio.sleep(seconds)
        self._air.up(node)
        await self._boot(node)


def play(schedule: Schedule, enough: Callable[[list[Given]], bool]) -> tuple[list[Given], list[str], float]:
    given: list[Given] = []
    with TemporaryDirectory() as directory, campaign_kinds(given):
        worlds: list[World] = []

        async def whole() -> float:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            worlds.append(World(schedule, Path(directory), loop))
            return await worlds[0].run(lambda: enough(given))

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            took = runner.run(whole())
    return given, worlds[0].failures, took


_calm: dict[str, dict[Key, tuple[bytes, ...]]] = {}


def expected(schedule: Schedule) -> dict[Key, tuple[bytes, ...]]:
    """What sinks are given if nothing goes wrong."""
    if schedule.query not in _calm:
        given, failures, _ = play(calm(schedule), bool)
        assert not failures and len({each[:3] for each in given}) == len(given), "the calm run is not calm"
        _calm[schedule.query] = {each[:3]: each.payloads for each in given}
    return _calm[schedule.query]


def outcome(schedule: Schedule) -> Outcome:
    wanted = expected(schedule)
    given, failures, took = play(schedule, lambda given: len({each[:3] for each in given}) >= len(wanted))
    times = Counter(each[:3] for each in given)
    return Outcome(
        tuple(key for key in wanted if key not in times),
        tuple(key for key, count in times.items() if count > 1),
        tuple(dict.fromkeys(each[:3] for each in given if wanted.get(each[:3]) != each.payloads)),
        tuple(failures),
        took,
    )
