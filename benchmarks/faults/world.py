"""Runs one schedule: the agents of all nodes in one loop of virtual time, and the faults."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec import Struct

from benchmarks.faults.accounts import Accounts, Record
from benchmarks.faults.air import FaultyAir, edge
from benchmarks.faults.operators import Given, campaign_kinds
from benchmarks.faults.schedules import COUNT, FAULTS_FOR, RATE, Fault, Schedule, calm
from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig
from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import operator_of
from node_agent.model.telemetry import Event
from node_agent.ports import Address
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.telemetry.segments import read_records
from node_agent.transport.keys import keys_of

DATA_PORT = 7400
KEY = bytes(range(32))
LONGEST = 180.0
"""Seconds of virtual time after which everything that has not arrived counts as lost."""
LOSSES_SHOW_WITHIN = 60.0
"""As long as a best-effort tuple may be retried, plus a margin."""
AFTERWARDS = 8.0
"""Seconds in which tuples might arrive again."""

Key = tuple[str, str, int]


class Outcome(Struct, frozen=True):
    """Counts by sink, stream and position. ``mismatches``: results that differ from the run without faults.

    ``unexplained``: losses or mismatches although nothing may be lost, or without a recorded reason.
    ``repeated``: duplicates that the query allows.
    """

    lost: tuple[Key, ...]
    duplicated: tuple[Key, ...]
    mismatches: tuple[Key, ...]
    failures: tuple[str, ...]
    finished_after: float
    unexplained: tuple[Key, ...]
    repeated: tuple[Key, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.unexplained or self.duplicated or self.failures)


class MortalLog(SegmentLog):
    """A log that can be killed like a process: it loses what it had not written yet."""

    dead = False

    def die(self) -> None:
        self._buffer.clear()
        self.dead = True

    def _write(self, prefix: bytes, event: Event) -> int:
        return 0 if self.dead else super()._write(prefix, event)

    def _sync(self) -> None:
        """Does nothing: the machine that runs the campaign does not crash."""


class World:
    def __init__(self, schedule: Schedule, directory: Path, loop: VirtualLoop) -> None:
        self.failures: list[str] = []
        self._schedule = schedule
        self._directory = directory
        self._loop = loop
        self._air = FaultyAir(schedule.nodes, loop, schedule.lag, schedule.latency, schedule.bps)
        self._boots: Counter[str] = Counter()
        self._hosts: dict[str, VirtualHost] = {}
        self._logs: dict[str, MortalLog] = {}
        self._agents: dict[str, Agent] = {}

    async def run(self, enough: Callable[[], bool]) -> float:
        """Runs until all faults are over and there is ``enough``, or it takes too long; returns how long it
        took.
        """
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
        longest = LOSSES_SHOW_WITHIN if self._schedule.may_lose else LONGEST
        while not enough() and self._loop.time() - began < longest:  # noqa: ASYNC110 - virtual time
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
        log = MortalLog(self._directory / node, "campaign", node, self._loop.now_ns)
        switching = Switching(Rule(schedule.policy), schedule.period, schedule.mode)
        config = AgentConfig(
            "campaign",
            node,
            {other: Address(other, DATA_PORT) for other in schedule.nodes},
            keys_of(KEY, "campaign", node, schedule.nodes),
            (DataflowConfig(schedule.plan, switching, delivery=schedule.limits).as_app(),),
        )
        agent = Agent(config, VirtualPort(host, schedule.seed * 1000 + boot), self._air, log)
        self._hosts[node], self._agents[node], self._logs[node] = host, agent, log
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
        """Kills an agent without notice; everything it knew is lost."""
        agent = self._agents.pop(node, None)
        if agent is None:
            return  # it is down already
        self._hosts[node].close()
        self._air.down(node)
        self._logs[node].die()
        await self._stop(agent)
        await asyncio.sleep(seconds)
        self._air.up(node)
        await self._boot(node)


class Played(NamedTuple):
    given: list[Given]
    failures: list[str]
    took: float
    records: Sequence[Record]


def play(schedule: Schedule, enough: Callable[[list[Given]], bool]) -> Played:
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
        folders = [Path(directory) / node for node in schedule.nodes] if schedule.may_lose else []
        records = [record for folder in folders for record in tuple_by_tuple(read_records(folder))]
    return Played(given, worlds[0].failures, took, records)


_calm: dict[str, dict[Key, tuple[bytes, ...]]] = {}


def expected(schedule: Schedule) -> dict[Key, tuple[bytes, ...]]:
    """Returns what sinks get without faults."""
    if schedule.query not in _calm:
        given, failures, _, _ = play(calm(schedule), bool)
        assert not failures and len({each[:3] for each in given}) == len(given), "the calm run is not calm"
        _calm[schedule.query] = {each[:3]: each.payloads for each in given}
    return _calm[schedule.query]


def outcome(schedule: Schedule) -> Outcome:
    wanted = expected(schedule)
    played = play(schedule, lambda given: len({each[:3] for each in given}) >= len(wanted))
    times = Counter(each[:3] for each in played.given)
    lost = [key for key in wanted if key not in times]
    mismatches = dict.fromkeys(each[:3] for each in played.given if wanted.get(each[:3]) != each.payloads)
    unexplained = [*lost, *mismatches]
    if schedule.may_lose:
        accounts = Accounts(schedule.plan, played.records, schedule.policy)
        promised = schedule.plan.query.reliability != "best_effort"
        unexplained = [
            key
            for key in unexplained
            if not (
                accounts.altered(key[1:]) if promised else accounts.explains(operator_of(key[0]), key[1:])
            )
        ]
    return Outcome(
        tuple(lost),
        tuple(key for key, count in times.items() if count > 1),
        tuple(mismatches),
        tuple(played.failures),
        played.took,
        tuple(unexplained),
    )
