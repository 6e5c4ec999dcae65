"""Agents end to end, in virtual time, on a network whose links the test cuts and mends."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig, BadConfig
from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.operators import registry
from node_agent.apps.dataflow.operators.pace import Rate
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.operators.synthetic import SinkParams, pattern, synthetic_chain
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.model.refusals import Refusal
from node_agent.ports import Address, PortError, Stream
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.telemetry.segments import inspect, read_records
from node_agent.transport.keys import keys_of
from tests.unit.networks import DATA_PORT, LoopbackNetwork, Network, RadioNetwork
from tests.unit.query_agents import query_agent

Record = dict[str, Any]
CHAIN = synthetic_chain()
FAR = 1e6
KEY = bytes(range(32))
ALONE = {"camera": ("n1",), "detect": ("n2",), "recognise": ("n3",), "screen": ("n4",)}
# Room enough for the outages in these tests; the default keeps only what is fresh.
ROOMY = Limits(input_queue=16, output_buffer=16)
TWICE = {"camera": ("n1",), "detect": ("n2", "n5"), "recognise": ("n3", "n6"), "screen": ("n4",)}


def plan(query: Query, placement: Mapping[str, tuple[str, ...]]) -> DeploymentPlan:
    replicas = (Replica(name, i, node) for name, nodes in placement.items() for i, node in enumerate(nodes))
    return DeploymentPlan(query, tuple(replicas))


def nodes_of(deployment: DeploymentPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(r.node for r in deployment.replicas))


def finite_chain(limit: int, rate: Rate = 20.0, cpu: float = 0.005) -> Query:
    chain = synthetic_chain(rate=rate, cpu=cpu)
    camera = msgspec.structs.replace(
        chain.operators[0], params={"rate": rate, "payload": 8192, "limit": limit}
    )
    return msgspec.structs.replace(chain, operators=(camera, *chain.operators[1:]))


class Testbed:
    """The agents of all nodes in one loop."""

    __test__ = False

    def __init__(self, directory: Path, deployment: DeploymentPlan, network: Network, **config: Any) -> None:
        config = {"limits": ROOMY, **config}
        self.directory = directory
        self.nodes = nodes_of(deployment)
        addresses = {node: network.address(node) for node in self.nodes}
        self.agents: dict[str, Agent] = {}
        for node in self.nodes:
            port = network.port(node)
            log = SegmentLog(directory / node, "run", node, port.now_ns)
            settings = query_agent(
                node, deployment, addresses, keys_of(KEY, "run", node, self.nodes), **config
            )
            self.agents[node] = Agent(settings, port, network, log)

    async def start(self) -> None:
        for agent in self.agents.values():
            await agent.start()
        await asyncio.sleep(0.5)
        assert all(agent.ready for agent in self.agents.values())
        for agent in self.agents.values():
            agent.open_sources()

    async def stop(self) -> None:
        for agent in self.agents.values():
            await agent.stop("done")

    def records(self, kind: str, **where: Any) -> list[Record]:
        """Records of all nodes, ordered by time."""
        found = [
            record
            for node in self.nodes
            for record in tuple_by_tuple(read_records(self.directory / node))
            if record["kind"] == kind and all(record[key] == value for key, value in where.items())
        ]
        return sorted(found, key=lambda record: record["t_ns"])

    def taus(self, kind: str, **where: Any) -> list[int]:
        return [record["tau"] for record in self.records(kind, **where)]


class RadioTestbed(Testbed):
    """On the modelled radio, where all nodes are in range of each other until they are moved."""

    def __init__(self, directory: Path, deployment: DeploymentPlan, **config: Any) -> None:
        self.network = RadioNetwork((*nodes_of(deployment), "stranger"))
        super().__init__(directory, deployment, self.network, **config)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        await scenario()
        await asyncio.sleep(0.001)
        left = [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert left == [], "stop() left tasks behind"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(whole())


def test_a_chain_delivers_every_tuple_once_and_in_order(tmp_path: Path) -> None:
    bed: list[Testbed] = []

    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(finite_chain(100), ALONE))
        bed.append(testbed)
        await testbed.start()
        await asyncio.sleep(10)
        await testbed.stop()

    run(scenario)
    [testbed] = bed
    every = list(range(1, 101))
    assert testbed.taus("tuple_emitted") == every
    for replica in ("detect/0", "recognise/0", "screen/0"):
        assert testbed.taus("tuple_received", replica=replica) == every
    for replica in ("detect/0", "recognise/0"):
        assert testbed.taus("tuple_processed", replica=replica) == every
    assert testbed.taus("tuple_sent", replica="recognise/0", to="screen/0") == every
    assert testbed.taus("tuple_delivered") == every
    assert testbed.records("tuple_dropped") == []

    emitted = {r["tau"]: r for r in testbed.records("tuple_emitted")}
    for delivered in testbed.records("tuple_delivered"):
        assert delivered["born_ns"] == emitted[delivered["tau"]]["t_ns"]
        assert (delivered["origin"], delivered["size"]) == ("camera/0", 8192)
    # The source keeps its rate without drift: the hundredth tuple is due 99 periods after the first.
    assert emitted[100]["t_ns"] - emitted[1]["t_ns"] == 99 * 50_000_000
    assert min(r["took_ns"] for r in testbed.records("tuple_processed")) == 5_000_000


def test_every_node_leaves_a_complete_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(CHAIN, TWICE))
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        await testbed.stop()
        for node, agent in testbed.agents.items():
            assert agent.failure is None
            assert inspect(tmp_path / node).complete
            records = list(read_records(tmp_path / node))
            assert records[0]["kind"] == "agent_start"
            assert records[-1] | {"kind": "agent_stop", "reason": "done"} == records[-1]
        assert testbed.records("agent_start", node="n5")[0]["replicas"] == ["detect/1"]
        assert {r["clock"] for r in testbed.records("agent_start")} == {"virtual"}
        costs = testbed.records("link_cost", replica="camera/0")
        rounds = Counter(r["to"] for r in costs)
        assert rounds["detect/0"] == rounds["detect/1"] in (3, 4)
        assert {(r["cost"], r["metric"], r["source"]) for r in costs} == {(1.0, "hops", "ground_truth")}
        queues = Counter((r["replica"], r["queue"]) for r in testbed.records("queue", node="n2"))
        assert queues == {("detect/0", "input"): 5, ("detect/0", "output:recognise"): 5}
        [first] = testbed.records("route_switch", replica="camera/0")
        assert (first["old"], first["new"], first["new_cost"]) == (None, "detect/0", 3.0)

    run(scenario)


def test_the_stream_moves_to_another_replica_when_one_goes_out_of_range(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(finite_chain(400), TWICE), switching=Switching(period=1.0))
        await testbed.start()
        await asyncio.sleep(5)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(25)
        await testbed.stop()
        [away] = testbed.records("route_switch", replica="camera/0", old="detect/0")
        assert (away["new"], away["old_cost"], away["new_cost"]) == ("detect/1", None, 3.0)
        delivered = testbed.taus("tuple_delivered")
        assert len(delivered) == len(set(delivered))
        assert delivered[-1] == 400
        # Best effort: what the broken link had swallowed is lost, and the records say so.
        lost = set(range(1, 401)) - set(delivered)
        assert 0 < len(lost) <= 20
        sent = set(testbed.taus("tuple_sent", replica="camera/0", to="detect/0"))
        dropped = set(testbed.taus("tuple_dropped"))
        assert lost <= sent | dropped
        resumed = [r["t_ns"] for r in testbed.records("tuple_received", replica="detect/1")]
        assert min(resumed) - away["t_ns"] < 2_000_000_000

    run(scenario)


def test_without_a_route_tuples_wait_and_then_flow_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(
            tmp_path, plan(finite_chain(60, rate=2.0), ALONE), switching=Switching(period=0.5)
        )
        await testbed.start()
        await asyncio.sleep(5)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(1.2)  # short enough for the link to survive
        assert testbed.taus("tuple_delivered")[-1] < 15
        testbed.network.move(n2=0)
        await asyncio.sleep(30)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 61))
        assert testbed.records("tuple_dropped") == []
        switches = [(r["old"], r["new"]) for r in testbed.records("route_switch", replica="camera/0")]
        assert switches == [(None, "detect/0"), ("detect/0", None), (None, "detect/0")]

    run(scenario)


def test_after_a_long_outage_only_what_a_link_had_taken_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(
            tmp_path, plan(finite_chain(60, rate=2.0), ALONE), switching=Switching(period=0.5)
        )
        await testbed.start()
        await asyncio.sleep(5)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(7)
        testbed.network.move(n2=0)
        await asyncio.sleep(30)
        await testbed.stop()
        delivered = testbed.taus("tuple_delivered")
        lost = set(range(1, 61)) - set(delivered)
        assert delivered == sorted(set(delivered))
        assert 0 < len(lost) < 5
        assert lost <= set(testbed.taus("tuple_sent", replica="camera/0"))
        assert lost <= set(testbed.taus("tuple_dropped", reason="link_failed")), "and it is said"
        losses = testbed.records("link_lost")
        assert {(r["replica"], r["to"]) for r in losses} >= {("camera/0", "detect/0")}
        assert {r["reason"] for r in losses} == {"silent"}

    run(scenario)


def test_a_link_between_replicas_may_have_several_hops(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(finite_chain(50), ALONE))
        testbed.network.move(n1=0, stranger=400, n2=800, n3=800, n4=800)
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 51))
        assert testbed.records("link_cost", replica="camera/0")[0]["cost"] == 2.0
        assert testbed.records("route_switch", replica="camera/0")[0]["new_cost"] == 4.0

    run(scenario)


def test_a_source_without_a_route_keeps_the_newest_tuples(tmp_path: Path) -> None:
    async def scenario() -> None:
        limits = Limits(input_queue=16, output_buffer=4)
        testbed = RadioTestbed(tmp_path, plan(finite_chain(100), ALONE), limits=limits)
        testbed.network.move(n1=FAR)
        await testbed.start()
        await asyncio.sleep(10)
        dropped = testbed.records("tuple_dropped")
        assert {r["reason"] for r in dropped} == {"source_buffer_full"}
        testbed.network.move(n1=0)
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == [97, 98, 99, 100]
        assert sorted(testbed.taus("tuple_dropped")) == list(range(1, 97))

    run(scenario)


def test_a_slow_operator_pushes_back_to_the_source_and_nothing_else_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        slow = finite_chain(300, rate=50.0, cpu=0.1)
        testbed = RadioTestbed(tmp_path, plan(slow, ALONE), limits=Limits(input_queue=2, output_buffer=2))
        await testbed.start()
        await asyncio.sleep(30)
        await testbed.stop()
        dropped = testbed.taus("tuple_dropped", replica="camera/0", reason="source_buffer_full")
        delivered = testbed.taus("tuple_delivered")
        assert len(dropped) > 100
        assert sorted(dropped + delivered) == list(range(1, 301))
        assert delivered == sorted(delivered)

    run(scenario)


def test_operators_of_one_node_share_its_core(tmp_path: Path) -> None:
    async def scenario() -> None:
        together = {"camera": ("n1",), "detect": ("n2",), "recognise": ("n2",), "screen": ("n1",)}
        testbed = RadioTestbed(tmp_path, plan(synthetic_chain(rate=100.0, cpu=0.05), together))
        await testbed.start()
        await asyncio.sleep(20)
        await testbed.stop()
        # Two operators of 50 ms each: ten tuples a second, not twenty.
        assert 180 <= len(testbed.taus("tuple_delivered")) <= 200

    run(scenario)


def test_replicas_of_one_node_need_no_network(tmp_path: Path) -> None:
    async def scenario() -> None:
        everything = dict.fromkeys(ALONE, ("n1",))
        testbed = RadioTestbed(tmp_path, plan(finite_chain(20), everything))
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 21))
        assert testbed.records("route_switch", replica="camera/0")[0]["new_cost"] == 0.0

    run(scenario)


def test_a_query_that_forks_feeds_every_branch(tmp_path: Path) -> None:
    query = Query(
        "fork",
        (
            OperatorSpec("camera", "synthetic_source", (), {"rate": 20.0, "limit": 50, "payload": 500}),
            OperatorSpec("shrink", "work", ("camera",), {"cpu": 0.001, "output": 10}),
            OperatorSpec("screen", "sink", ("shrink",)),
            OperatorSpec("archive", "sink", ("camera",)),
        ),
    )

    async def scenario() -> None:
        nodes = {"camera": ("n1",), "shrink": ("n2",), "screen": ("n3",), "archive": ("n4",)}
        testbed = RadioTestbed(tmp_path, plan(query, nodes))
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        for sink, size in (("screen/0", 10), ("archive/0", 500)):
            delivered = testbed.records("tuple_delivered", replica=sink)
            assert [(r["tau"], r["size"]) for r in delivered] == [(tau, size) for tau in range(1, 51)]

    run(scenario)


def test_a_network_layer_that_falls_silent_leaves_the_route_as_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(finite_chain(200), ALONE))
        await testbed.start()
        testbed.network.blind = True
        await asyncio.sleep(20)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 201))
        assert len(testbed.records("route_switch", replica="camera/0")) == 1

    run(scenario)


def test_the_static_policy_waits_for_its_one_replica(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(CHAIN, TWICE), switching=Switching(Rule("static")))
        await testbed.start()
        await asyncio.sleep(2)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(10)
        await testbed.stop()
        assert testbed.taus("tuple_received", replica="detect/1") == []
        assert len(testbed.records("route_switch", replica="camera/0")) == 1

    run(scenario)


def test_a_tuple_that_no_link_takes_expires(tmp_path: Path) -> None:
    async def scenario() -> None:
        limits = Limits(input_queue=16, output_buffer=16, retry_age=3.0)
        testbed = RadioTestbed(tmp_path, plan(finite_chain(3), ALONE), limits=limits)
        await testbed.start()
        await testbed.agents["n2"].stop("gone, though the node can be reached")
        await asyncio.sleep(20)
        await testbed.stop()
        dropped = testbed.records("tuple_dropped")
        assert [(r["tau"], r["reason"]) for r in dropped] == [(1, "expired"), (2, "expired"), (3, "expired")]

    run(scenario)


def test_a_malformed_peer_disturbs_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(finite_chain(100), ALONE))
        await testbed.start()
        stranger = testbed.network.port("stranger")
        for _ in range(20):
            stream = await stranger.connect(testbed.network.address("n2"), 1.0)
            await stream.write(random.Random(1).randbytes(1000))
            await asyncio.sleep(0.1)
            with pytest.raises(PortError):
                await stream.read_exactly(1)
        await asyncio.sleep(10)
        await testbed.stop()
        assert list(testbed.agents["n2"].refusals) == [Refusal("connection", "stranger", "stranger", 20)]
        counts = [
            (r["what"], r["source"], r["reason"], r["count"]) for r in testbed.records("refused", node="n2")
        ]
        assert counts[-1] == ("connection", "stranger", "stranger", 20) and counts == sorted(set(counts))
        assert testbed.taus("tuple_delivered") == list(range(1, 101))

    run(scenario)


def test_the_same_run_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    def once(directory: Path) -> dict[str, bytes]:
        async def scenario() -> None:
            testbed = RadioTestbed(directory, plan(CHAIN, TWICE), switching=Switching(period=0.7))
            await testbed.start()
            for node in ("n2", "n3", "n6"):
                await asyncio.sleep(3)
                testbed.network.move(**{node: FAR})
                await asyncio.sleep(2)
                testbed.network.move(**{node: 0})
            await asyncio.sleep(3)
            await testbed.stop()

        run(scenario)
        return {
            str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*.jsonl"))
        }

    first, second = once(tmp_path / "first"), once(tmp_path / "second")
    assert len(first) == 6
    assert first == second


class Faulty:
    def __init__(self, params: SinkParams, context: Context) -> None:
        pass

    async def process(self, unit: Unit) -> Sequence[bytes]:
        if unit.tau == 10:
            raise ZeroDivisionError("the operator's own bug")
        (payload,) = unit.payloads()
        assert payload == pattern(unit.origin, unit.tau, len(payload))
        return (payload,)


def test_a_failure_inside_stops_the_agent_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by register: other tests look at all there is in the registry.
    kind = registry.OperatorKind("faulty", "operator", SinkParams, Faulty)
    monkeypatch.setitem(registry.OPERATORS._registered, "faulty", kind)
    query = Query(
        "faulty",
        (
            OperatorSpec("camera", "synthetic_source"),
            OperatorSpec("broken", "faulty", ("camera",)),
            OperatorSpec("screen", "sink", ("broken",)),
        ),
    )

    async def scenario() -> None:
        testbed = RadioTestbed(
            tmp_path, plan(query, {"camera": ("n1",), "broken": ("n2",), "screen": ("n3",)})
        )
        await testbed.start()
        async with asyncio.timeout(10):
            failure = await testbed.agents["n2"].wait_failed()
        assert "broken/0: ZeroDivisionError: the operator's own bug" in str(failure)
        assert isinstance(failure.__cause__, ZeroDivisionError)
        await testbed.stop()
        assert inspect(tmp_path / "n2").complete
        [stopped] = testbed.records("agent_stop", node="n2")
        assert stopped["reason"].startswith("failed: query: broken/0: ZeroDivisionError")
        assert testbed.agents["n1"].failure is None

    run(scenario)


def test_a_log_that_fails_is_a_failure_of_the_agent(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(CHAIN, ALONE))
        await testbed.start()
        testbed.agents["n2"]._log.close()
        async with asyncio.timeout(10):
            failure = await testbed.agents["n2"].wait_failed()
        assert isinstance(failure.__cause__, LogError)
        await testbed.stop()

    run(scenario)


def test_an_agent_that_cannot_listen_does_not_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(CHAIN, ALONE))
        await testbed.agents["n1"].start()
        taken = testbed.agents["n2"]

        async def ignore(stream: Stream) -> None:
            pass

        await testbed.network.port("n2").listen(DATA_PORT, ignore)
        with pytest.raises(PortError):
            await taken.start()
        await testbed.stop()
        [stopped] = testbed.records("agent_stop", node="n2")
        assert stopped["reason"].startswith("could not start")

    run(scenario)


def config(**changes: Any) -> AgentConfig:
    addresses = {node: Address("127.0.0.1", 7400 + i) for i, node in enumerate(("n1", "n2", "n3", "n4"))}
    usual = {"node": "n2", "plan": plan(CHAIN, ALONE), "keys": keys_of(KEY, "run", "n2", addresses)}
    return query_agent(**{**usual, "addresses": addresses, **changes})


def test_a_configuration_survives_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(config()), type=AgentConfig) == config()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"switching": Switching(Rule("psychic"))}, "no switching policy 'psychic'"),
        ({"switching": Switching(period=0)}, "periods must be positive"),
        ({"node": "n9"}, "node n9 has no address"),
        ({"plan": plan(Query("q", (OperatorSpec("detect", "magic"),)), {"detect": ("n2",)})}, "kind 'magic'"),
        (
            {
                "plan": plan(
                    Query("q", (OperatorSpec("detect", "work", (), {"cpu": -1}),)), {"detect": ("n2",)}
                )
            },
            "operator detect: Expected `float` >= 0",
        ),
    ],
)
def test_a_bad_configuration_is_refused_at_once(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n2",))
        log = SegmentLog(tmp_path, "run", "n2", lambda: 0)
        with pytest.raises(BadConfig, match=message):
            Agent(config(**changes), network.port("n2"), network, log)
        log.close()

    run(scenario)


def on_loopback(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20):
            await scenario()
        await asyncio.sleep(0.05)
        left = [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert left == [], "stop() left tasks behind"

    asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for is a line in a file
        await asyncio.sleep(0.02)


def test_the_same_agents_on_real_sockets(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(finite_chain(50, rate=100.0, cpu=0.001), ALONE)
        testbed = Testbed(tmp_path, deployment, LoopbackNetwork(nodes_of(deployment)), sample_period=0.05)
        await testbed.start()
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 50)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 51))
        assert {r["clock"] for r in testbed.records("agent_start")} == {"real"}
        for node, agent in testbed.agents.items():
            assert agent.failure is None
            assert inspect(tmp_path / node).complete

    on_loopback(scenario)


def test_on_real_sockets_the_stream_leaves_a_replica_that_dies(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(finite_chain(200, rate=100.0, cpu=0.001), TWICE)
        network = LoopbackNetwork(nodes_of(deployment))
        switching = Switching(period=0.1)
        testbed = Testbed(tmp_path, deployment, network, switching=switching, sample_period=0.05)
        await testbed.start()
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 20)
        network.gone.add("n2")
        await testbed.agents["n2"].stop("crashed")
        await until(lambda: 200 in testbed.taus("tuple_delivered"))
        await testbed.stop()
        assert testbed.records("route_switch", replica="camera/0", old="detect/0", new="detect/1")
        delivered = testbed.taus("tuple_delivered")
        assert len(delivered) == len(set(delivered))
        # How many are lost is a matter of the machine's load, but not which: those on their way to the dead.
        doomed = {*testbed.taus("tuple_sent", to="detect/0"), *testbed.taus("tuple_dropped")}
        assert set(range(1, 201)) - set(delivered) <= doomed

    on_loopback(scenario)
