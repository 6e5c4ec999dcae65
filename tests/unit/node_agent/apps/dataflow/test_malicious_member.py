"""A node of the run that is taken over: it holds its own keys, and says whatever they let it say.

It may spoil the streams that pass through its replicas. It must not end another agent, keep it busy, or be
taken for another node.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.delivery.runtime import DeliveryRuntime
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query, Reliability
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow, UnitRule
from node_agent.apps.dataflow.wire.codec import CODEC
from node_agent.apps.dataflow.wire.messages import (
    PROTOCOL_VERSION,
    Acknowledgement,
    Ask,
    Batch,
    Data,
    Header,
    Message,
    PassedOn,
    Settled,
)
from node_agent.model.refusals import Refusals
from node_agent.ports import Listener, PortError, Stream
from node_agent.transport.authentication import NONCE_SIZE, Credentials, Digests, session_seals
from node_agent.transport.connection import Connection
from node_agent.transport.errors import FrameError
from node_agent.transport.greeting import hello_frame, read_hello, read_welcome, welcome_frame
from node_agent.transport.messages import Alive, Hello, Pair, Welcome
from tests.unit.networks import DATA_PORT, RadioNetwork
from tests.unit.node_agent.agent.test_agent import KEY, Testbed, run
from tests.unit.query_agents import query_keys, replica_of

TupleWire = Connection[Data, Message]

EVIL = "n1"
LEVELS: tuple[Reliability, ...] = ("best_effort", "at_least_once", "exactly_once")
RULES: dict[str, UnitRule] = {
    "each": Each(),
    "join": SameTau(),
    "count": CountWindow(3, 2),
    "gaps": CountWindow(2, 5),
    "time": TimeWindow(3_000_000_000, 1_000_000_000),
}
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 20, 63, 64, 65, 4096, 10**9, 2**31, 2**53, 2**62 - 1, 2**62)


def deployment(rule: str, level: Reliability) -> DeploymentPlan:
    """The member that was taken over has a source, a replica of the operator, and a sink."""
    inputs = ("left", "right") if rule in ("each", "join") else ("left",)
    kind = "union" if rule == "each" else "work"
    query = Query(
        rule,
        (
            OperatorSpec("left", "synthetic_source", params={"rate": 20.0, "payload": 64}),
            OperatorSpec("right", "synthetic_source", params={"rate": 20.0, "payload": 64}),
            OperatorSpec("op", kind, inputs, {} if kind == "union" else {"cpu": 0.001}, RULES[rule]),
            OperatorSpec("screen", "sink", ("op",)),
            OperatorSpec("log", "sink", ("op", "right")),
            OperatorSpec("other", "sink", ("right",)),
        ),
        level,
    )
    places = {"left": (EVIL,), "right": ("n2",), "op": ("n2", EVIL), "screen": ("n3",), "log": (EVIL,)}
    places["other"] = ("n3",)
    replicas = tuple(
        Replica(operator, index, node)
        for operator, nodes in places.items()
        for index, node in enumerate(nodes)
    )
    return DeploymentPlan(query, replicas)


class Liar:
    """Makes up what may be said, as far as the types go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self) -> int:
        some = self.random
        return some.choice(NUMBERS) if some.random() < 0.5 else some.randrange(1, 40)

    def item(self, origin: str) -> StreamTuple:
        some = self.random
        prev, tau = sorted((self.number(), self.number()))
        if some.random() < 0.7:
            prev = tau - 1
        last = some.random() < 0.05
        many = 0 if last or some.random() < 0.2 else some.choice((1, 1, 1, 1, 3))
        payloads = (some.randbytes(some.randrange(20)),) * many
        born, before = some.choice(NUMBERS), some.choice(NUMBERS)
        return StreamTuple(origin, max(tau, 1), max(min(prev, tau - 1), 0), born, before, payloads, last)

    def ranges(self) -> list[tuple[int, int]]:
        return [tuple(sorted((self.number(), self.number()))) for _ in range(self.random.randrange(4))]  # type: ignore[misc]

    def streams(self) -> dict[str, list[tuple[int, int]]]:
        return {origin: self.ranges() for origin in ("left/0", "right/0", "op", "nobody", "")}

    def floors(self) -> dict[str, int]:
        return {o: self.number() for o in ("left/0", "right/0", "op", "nobody") if self.random.random() < 0.2}

    def message(self) -> Message:
        kind = self.random.randrange(8)
        if kind == 0:
            return Ask()
        if kind == 1:
            return Acknowledgement(self.streams(), self.streams())
        return Settled(self.floors(), [self.item(o) for o in ("left/0", "op") if self.random.random() < 0.1])

    def upstream(self, *origins: str) -> Callable[[], Header]:
        def make() -> Header:
            if self.random.random() < 0.1:
                return self.message()
            many = self.random.randrange(1, 5)
            return Data([self.item(self.random.choice(origins)) for _ in range(many)], (), self.floors())

        return make

    def sibling(self, *senders: str) -> Callable[[], Header]:
        def make() -> Header:
            sender = self.random.choice(senders)
            items = [self.item(sender) for _ in range(self.random.randrange(1, 4))]
            floors = self.floors() if self.random.random() < 0.1 else {}
            return Data(items, (), floors, PassedOn(sender, self.ranges()))

        return make

    def downstream(self) -> Header:
        kind = self.random.randrange(10)
        if kind == 0:
            return Alive(self.number())
        if kind < 3:
            return Ask()
        return Acknowledgement(self.streams(), self.streams())


async def connect(network: RadioNetwork, plan: DeploymentPlan, pair: Pair) -> tuple[Stream, TupleWire]:
    """As the replica ``pair.sender``, which is on ``EVIL``."""
    nodes = tuple(dict.fromkeys(replica.node for replica in plan.replicas))
    node, port = plan.replica(pair.receiver).node, network.port(EVIL)
    key = Credentials("run", EVIL, query_keys(KEY, EVIL, nodes)).to(node, "connection")
    hello = hello_frame(key, Hello(PROTOCOL_VERSION, *pair), port.fresh_bytes(NONCE_SIZE))
    stream = await port.connect(network.address(node), 1.0)
    stream.put(hello)
    _, sending, receiving = await read_welcome(stream, key, hello)
    connection = Connection(stream, sending, receiving, CODEC, Digests())
    connection.post(Alive())
    return stream, connection


class Member(Liar):
    """Whoever has taken ``EVIL`` over."""

    def __init__(self, network: RadioNetwork, plan: DeploymentPlan, seed: int) -> None:
        super().__init__(seed)
        self._port = network.port(EVIL)
        nodes = tuple(dict.fromkeys(replica.node for replica in plan.replicas))
        self._credentials = Credentials("run", EVIL, query_keys(KEY, EVIL, nodes))
        self._network = network
        self._plan = plan
        self._listener: Listener | None = None
        self.said = 0

    async def attack(self, pair: Pair, make: Callable[[], Header]) -> None:
        """As the replica ``pair.sender`` of its own."""
        node = self._plan.replica(pair.receiver).node
        key = self._credentials.to(node, "connection")
        hello = hello_frame(key, Hello(PROTOCOL_VERSION, *pair), self._port.fresh_bytes(NONCE_SIZE))
        while True:
            with suppress(PortError, FrameError):
                stream = await self._port.connect(self._network.address(node), 1.0)
                stream.put(hello)
                _, sending, receiving = await read_welcome(stream, key, hello)
                connection = Connection(stream, sending, receiving, CODEC, Digests())
                connection.post(Alive())
                await self._talk(stream, connection, make)
            await asyncio.sleep(0.2)

    async def listen(self, make: Callable[[], Header]) -> None:
        keys = self._credentials.incoming("connection")

        async def answer(stream: Stream) -> None:
            with suppress(PortError, FrameError):
                key, _, frame = await read_hello(stream, keys)
                nonce = self._port.fresh_bytes(NONCE_SIZE)
                receiving, sending = session_seals(key, frame, nonce)
                allowed = Welcome(self.random.choice((0, 1, 32, 2**62)), self.random.choice((1, 2**62)))
                stream.put(welcome_frame(key, allowed, nonce, sending))
                await self._talk(stream, Connection(stream, sending, receiving, CODEC, Digests()), make)

        self._listener = await self._port.listen(DATA_PORT, answer)

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _talk(self, stream: Stream, connection: TupleWire, make: Callable[[], Header]) -> None:
        for _ in range(30):
            connection.post(make())
            self.said += 1
            await stream.drained()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        stream.abort()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rule", RULES)
def test_nothing_that_a_member_says_ends_another_agent(tmp_path: Path, rule: str, level: Reliability) -> None:
    async def scenario() -> None:
        plan = deployment(rule, level)
        network = RadioNetwork(("n1", "n2", "n3"))
        testbed = Testbed(tmp_path, plan, network, switching=Switching(period=0.5))
        member = Member(network, plan, 1)
        await member.listen(member.downstream)
        del testbed.agents[EVIL]
        await testbed.start()
        origins = ("left/0", "right/0") if rule == "each" else ("op",)
        attacks = [
            asyncio.create_task(attack)
            for attack in (
                member.attack(Pair("left/0", "op/0"), member.upstream("left/0")),
                member.attack(Pair("op/1", "op/0"), member.sibling(*plan.query.origins()["left"])),
                member.attack(Pair("op/1", "screen/0"), member.upstream(*origins)),
            )
        ]
        await asyncio.sleep(5)
        for attack in attacks:
            attack.cancel()
        await asyncio.wait(attacks)
        member.stop()
        await testbed.stop()
        assert [agent.failure for agent in testbed.agents.values() if agent.failure] == []
        sources = {each.source for agent in testbed.agents.values() for each in agent.refusals}
        assert sources <= {EVIL}
        assert member.said > 150
        # What does not pass through the member is not touched.
        given = [r["tau"] for r in testbed.records("tuple_delivered", replica="other/0")]
        assert given == list(range(1, len(given) + 1)) and len(given) > 50

    began = time.process_time()
    run(scenario)
    assert time.process_time() - began < 30


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("rule", "count", "payloads"),
    [("each", 1, 8193), ("count", 3, 3000), ("join", 5, 8192)],
)
def test_items_of_many_payloads_end_no_agent(
    tmp_path: Path, rule: str, count: int, payloads: int, level: Reliability
) -> None:
    """One that no frame carries, and legal ones that a window or join adds up to what no frame carries."""
    items = [StreamTuple("left/0", t, t - 1, t, t - 1, (b"x",) * payloads) for t in range(1, count + 1)]

    async def scenario() -> None:
        plan = deployment(rule, level)
        network = RadioNetwork(("n1", "n2", "n3"))
        testbed = Testbed(tmp_path, plan, network, switching=Switching(period=0.5))
        del testbed.agents[EVIL]
        await testbed.start()
        stream, connection = await connect(network, plan, Pair("left/0", "op/0"))
        for item in items:
            connection.post(Data([item]))
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        stream.abort()
        await testbed.stop()
        assert [agent.failure for agent in testbed.agents.values() if agent.failure] == []

    run(scenario)


def test_strangers_do_not_hide_what_a_node_of_the_run_did() -> None:
    refusals = Refusals()
    refusals.set_members(["n7"])
    for i in range(40):
        refusals.add("datagram", f"10.9.9.{i}", "stranger")
    refusals.add("connection", "n7", "impossible")
    assert [each.count for each in refusals if each.source == "n7"] == [1]


def test_who_sends_more_bytes_than_it_may_keep_is_cut_off(tmp_path: Path) -> None:
    """The operator is slow, so that what comes waits to be processed."""

    async def scenario() -> None:
        specs = (
            OperatorSpec("left", "synthetic_source", params={"rate": 1.0, "payload": 64}),
            OperatorSpec("op", "work", ("left",), {"cpu": 100.0}),
            OperatorSpec("screen", "sink", ("op",)),
        )
        where = (("left", EVIL), ("op", "n2"), ("screen", "n3"))
        plan = DeploymentPlan(
            Query("q", specs, "exactly_once"), tuple(Replica(name, 0, node) for name, node in where)
        )
        network = RadioNetwork(("n1", "n2", "n3"))
        testbed = Testbed(tmp_path, plan, network, switching=Switching(period=0.5))
        del testbed.agents[EVIL]
        await testbed.start()
        runtime = replica_of(testbed.agents["n2"], "op/0")
        assert isinstance(runtime, DeliveryRuntime)
        big = bytes(8 * 2**20)
        for tau in range(1, 100):
            batch = Batch("left/0", [StreamTuple("left/0", tau, tau - 1, tau, tau - 1, (big,))], {})
            if runtime.overrun(batch):
                break
            await runtime.take(batch)
        assert 16 <= tau <= 20
        await testbed.stop()

    run(scenario)
