"""What routers of whole agents tell each other: costs, queues, what is in use, and where windows meet."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.agent.agent import Agent
from node_agent.agent.config import check, watched_hosts
from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.events import RouteDecision, tuple_by_tuple
from node_agent.apps.dataflow.model.decision import Rule, Threshold
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec, Query, Reliability
from node_agent.apps.dataflow.model.routing_messages import CostUpdate, Notice
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.apps.dataflow.switching.policy import choose
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.registry import open_link_state
from node_agent.linkstate.shortest_path import distances
from node_agent.linkstate.source import Downstream
from node_agent.model.cost_graph import CostGraph
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.telemetry.segments import read_records
from node_agent.transport.keys import keys_of
from orchestrator.apps.dataflow.decisions.reasons import situation_of
from tests.unit.networks import LoopbackNetwork, RadioNetwork
from tests.unit.node_agent.agent.test_agent import (
    FAR,
    KEY,
    ROOMY,
    TWICE,
    RadioTestbed,
    Record,
    Testbed,
    finite_chain,
    nodes_of,
    on_loopback,
    plan,
    run,
    until,
)
from tests.unit.node_agent.apps.dataflow.wire.test_notices import notices_of
from tests.unit.query_agents import query_agent

EXCHANGE = Switching(period=0.5, mode=Mode.EXCHANGE)
DEAR = 99.0
JOIN = {"left": ("n1",), "right": ("n2",), "join": ("n3", "n4"), "screen": ("n5",)}
LEVELS: tuple[Reliability, ...] = ("best_effort", "exactly_once")


class PricedNetwork(RadioNetwork):
    """All nodes hear each other, at costs that the test sets; a node is told only what it pays itself."""

    def __init__(self, nodes: tuple[str, ...], costs: Mapping[tuple[str, str], float]) -> None:
        super().__init__(nodes)
        self.costs = dict(costs)

    def graph(self) -> CostGraph:
        links = super().graph()
        priced = {
            a: {b: self.costs.get((a, b), self.costs.get((b, a), DEAR)) for b in row}
            for a, row in links.costs.items()
        }
        return msgspec.structs.replace(links, costs=priced)

    def whole(self, node: str) -> "Whole":
        return Whole(self)

    def own_only(self, node: str) -> "OwnOnly":
        return OwnOnly(self, node)


class Whole:
    """The link state of a network layer that shows everything."""

    def __init__(self, network: PricedNetwork) -> None:
        self._network = network

    async def cost_graph(self) -> CostGraph:
        return await self._network.cost_graph()


class OwnOnly:
    """The link state of one that knows only what it costs from here, and takes ways back to cost the same."""

    def __init__(self, network: PricedNetwork, node: str) -> None:
        self._network = network
        self._node = node

    async def cost_graph(self) -> CostGraph:
        graph = await self._network.cost_graph()
        own = {to: cost for to, cost in distances(graph, self._node).items() if to != self._node}
        back = {to: {self._node: cost} for to, cost in own.items()}
        return msgspec.structs.replace(graph, costs={self._node: own, **back})


class PricedTestbed(Testbed):
    def __init__(
        self,
        directory: Path,
        deployment: DeploymentPlan,
        costs: Mapping[tuple[str, str], float],
        switching: Switching,
        **config: Any,
    ) -> None:
        self.network = PricedNetwork((*nodes_of(deployment), "stranger"), costs)
        self.deployment = deployment
        self.directory = directory
        self.nodes = nodes_of(deployment)
        self.agents = {}
        self._config = {"limits": ROOMY, "switching": switching, **config}
        for node in self.nodes:
            self.boot(node)

    def boot(self, node: str) -> Agent:
        port = self.network.port(node)
        log = SegmentLog(self.directory / node, "run", node, port.now_ns)
        addresses = {other: self.network.address(other) for other in self.nodes}
        config = query_agent(
            node, self.deployment, addresses, keys_of(KEY, "run", node, self.nodes), **self._config
        )
        by_exchange = self._config["switching"].mode is Mode.EXCHANGE
        shown = self.network.own_only(node) if by_exchange else self.network.whole(node)
        self.agents[node] = Agent(config, port, shown, log)
        return self.agents[node]

    def decision(self, replica: str) -> Record:
        return self.records("route_decision", replica=replica)[-1]

    def routes(self) -> dict[str, str | None]:
        sinks = self.deployment.query.sinks()
        senders = [r.id for r in self.deployment.replicas if r.operator not in sinks]
        return {replica: self.decision(replica)["new"] for replica in senders}


def join(reliability: Reliability = "best_effort", limit: int = 200) -> Query:
    source = {"rate": 20.0, "payload": 400, "limit": limit}
    return Query(
        "join",
        (
            OperatorSpec("left", "synthetic_source", (), source),
            OperatorSpec("right", "synthetic_source", (), source),
            OperatorSpec("join", "work", ("left", "right"), {"cpu": 0.001, "output": 20}, SameTau()),
            OperatorSpec("screen", "sink", ("join",)),
        ),
        reliability,
    )


# detect/0 is near the camera, and everything behind it is nearer to detect/1.
DETOUR = {("n1", "n2"): 1.0, ("n1", "n5"): 2.0, ("n5", "n3"): 1.0, ("n3", "n4"): 1.0}


def test_by_exchange_replicas_choose_as_if_they_saw_the_whole_network(tmp_path: Path) -> None:
    async def scenario() -> None:
        chosen = {}
        for mode in Mode:
            switching = Switching(period=0.5, mode=mode)
            testbed = PricedTestbed(tmp_path / mode, plan(finite_chain(100), TWICE), DETOUR, switching)
            await testbed.start()
            await asyncio.sleep(8)
            await testbed.stop()
            chosen[mode] = testbed.routes()
            assert testbed.taus("tuple_delivered")[-1] == 100
        assert chosen[Mode.EXCHANGE] == chosen[Mode.LINK_STATE]
        assert chosen[Mode.EXCHANGE]["camera/0"] == "detect/1"
        for record in testbed.records("route_decision"):  # as ``rove replay`` makes them again
            made = choose(situation_of(msgspec.convert(record, RouteDecision), record["t_ns"]))
            assert (made.hop.to if made.hop else None) == record["new"]
        decision = testbed.decision("camera/0")
        assert (decision["metric"], decision["source"]) == ("hops", "ground_truth, exchanged")
        costs = {c["to"]: (c["link"], c["path"], c["queue"]) for c in decision["candidates"]}
        assert costs == {"detect/0": (1.0, 6.0, 0), "detect/1": (2.0, 4.0, 0)}

    run(scenario)


# join/0 is cheaper for the left input, join/1 for the right one and, by less, for both.
APART = {("n1", "n3"): 11.0, ("n2", "n3"): 16.0, ("n1", "n4"): 14.0, ("n2", "n4"): 11.0}
APART |= {("n3", "n5"): 11.0, ("n4", "n5"): 11.0}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("reliability", LEVELS)
def test_the_inputs_of_a_join_come_to_use_the_same_replica(
    tmp_path: Path, mode: Mode, reliability: Reliability
) -> None:
    async def scenario() -> None:
        testbed = PricedTestbed(
            tmp_path, plan(join(reliability), JOIN), APART, Switching(period=0.5, mode=mode)
        )
        await testbed.start()
        await asyncio.sleep(15)
        await testbed.stop()
        assert testbed.routes() | {"left/0": "join/1", "right/0": "join/1"} == testbed.routes()
        for replica in ("left/0", "right/0"):
            decision = testbed.decision(replica)
            summed = {c["to"]: c["aggregate"] for c in decision["candidates"]}
            assert summed == {"join/0": 38.0, "join/1": 36.0}
            assert decision["old"] == "join/1"
        assert sorted(testbed.taus("tuple_delivered")) == list(range(1, 201))

    run(scenario)


def test_a_threshold_holds_for_what_inputs_have_in_common(tmp_path: Path) -> None:
    async def scenario() -> None:
        rule = Rule(threshold=Threshold(3.0))
        testbed = PricedTestbed(tmp_path, plan(join(), JOIN), APART, Switching(rule, 0.5))
        await testbed.start()
        await asyncio.sleep(3)
        testbed.network.costs["n2", "n4"] = 15.0  # join/0 would gain 2
        await asyncio.sleep(3)
        kept = testbed.routes()
        testbed.network.costs["n2", "n4"] = 18.0  # now 5
        await asyncio.sleep(3)
        await testbed.stop()
        assert (kept["left/0"], kept["right/0"]) == ("join/1", "join/1")
        assert (testbed.routes()["left/0"], testbed.routes()["right/0"]) == ("join/0", "join/0")
        needed = testbed.records("route_decision", replica="left/0")[-1]["needed"]
        assert needed == 3.0

    run(scenario)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("reliability", LEVELS)
def test_windows_follow_their_inputs_to_another_replica(
    tmp_path: Path, mode: Mode, reliability: Reliability
) -> None:
    """Inputs decide at different times: what arrives where the rest does not go is handed over."""

    async def scenario() -> None:
        switching = Switching(period=2.0, mode=mode)
        testbed = PricedTestbed(tmp_path, plan(join(reliability, 400), JOIN), APART, switching)
        await testbed.start()
        for cost in (18.0, 11.0, 18.0, 11.0):
            await asyncio.sleep(4.3)
            testbed.network.costs["n2", "n4"] = cost
        await asyncio.sleep(15)
        await testbed.stop()
        assert len(testbed.records("route_switch", replica="left/0")) >= 5
        assert sorted(testbed.taus("tuple_delivered")) == list(range(1, 401))
        lost = [r for r in testbed.records("tuple_dropped") if r["reason"] != "absorbed"]
        assert lost == []
        passed_on = testbed.records("tuple_sent", replica="join/0", to="join/1")
        passed_on += testbed.records("tuple_sent", replica="join/1", to="join/0")
        assert passed_on

    run(scenario)


def test_power_of_two_prefers_the_replica_with_the_shorter_queue(tmp_path: Path) -> None:
    """detect/0 shares its core with an operator that keeps it busy."""
    query = Query(
        "busy",
        (
            OperatorSpec("camera", "synthetic_source", (), {"rate": 20.0, "payload": 200}),
            OperatorSpec("other", "synthetic_source", (), {"rate": 20.0, "payload": 200}),
            OperatorSpec("detect", "work", ("camera",), {"cpu": 0.04}),
            OperatorSpec("heavy", "work", ("other",), {"cpu": 0.2}),
            OperatorSpec("screen", "sink", ("detect", "heavy")),
        ),
    )
    nodes = {"camera": ("n1",), "other": ("n1",), "detect": ("n2", "n3"), "heavy": ("n2",), "screen": ("n4",)}

    async def scenario() -> None:
        switching = Switching(Rule("power_of_two"), 1.0)
        testbed = PricedTestbed(tmp_path, plan(query, nodes), {}, switching)
        await testbed.start()
        await asyncio.sleep(20)
        await testbed.stop()
        decisions = testbed.records("route_decision", replica="camera/0")[3:]
        queues = [{c["to"]: c["queue"] for c in decision["candidates"]} for decision in decisions]
        busy = [decision["new"] for decision, each in zip(decisions, queues, strict=True) if each["detect/0"]]
        assert len(busy) > 5
        assert set(busy) == {"detect/1"}
        taken = {to: len(testbed.taus("tuple_received", replica=to)) for to in ("detect/0", "detect/1")}
        assert taken["detect/1"] > 2 * taken["detect/0"]

    run(scenario)


@pytest.mark.parametrize("reliability", LEVELS)
def test_queues_count_what_waits_on_links_and_what_has_not_left(
    tmp_path: Path, reliability: Reliability
) -> None:
    async def scenario() -> None:
        slow = msgspec.structs.replace(finite_chain(400, rate=50.0, cpu=0.5), reliability=reliability)
        switching = Switching(Rule("backpressure"), 1.0)
        testbed = PricedTestbed(tmp_path, plan(slow, TWICE), {}, switching)
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        longest = max(c["queue"] or 0 for c in testbed.decision("camera/0")["candidates"])
        assert longest > 8

    run(scenario)


def test_who_has_nothing_to_tell_is_silent(tmp_path: Path) -> None:
    """With the whole network in view, and no queues or joins to decide on, not a byte is spent."""

    async def scenario() -> None:
        testbed = PricedTestbed(tmp_path / "silent", plan(finite_chain(20), TWICE), {}, Switching())
        await testbed.start()
        await asyncio.sleep(6)
        await testbed.stop()
        assert testbed.records("routing_overhead") == []
        talking = PricedTestbed(tmp_path / "talking", plan(finite_chain(20), TWICE), {}, EXCHANGE)
        await talking.start()
        await asyncio.sleep(10)
        await talking.stop()
        by_node = {record["node"]: record for record in talking.records("routing_overhead")}
        assert {record["protocol"] for record in by_node.values()} == {"exchange"}
        assert (
            by_node["n1"]["sent"] == 2
        )  # nobody is upstream of the source, it tells both replicas its epoch
        assert 2 * 9 <= by_node["n4"]["sent"] <= 2 * 14  # once a second to both of its upstream replicas
        assert by_node["n4"]["sent_bytes"] < 140 * by_node["n4"]["sent"]

    run(scenario)


def test_the_stream_leaves_a_replica_that_falls_silent(tmp_path: Path) -> None:
    """Its agent is gone, while the network layer still has a way to its node."""

    async def scenario() -> None:
        testbed = PricedTestbed(tmp_path, plan(finite_chain(400), TWICE), {("n1", "n2"): 1.0}, EXCHANGE)
        await testbed.start()
        await asyncio.sleep(5)
        before = testbed.decision("camera/0")["new"]
        await testbed.agents["n2"].stop("gone")
        await asyncio.sleep(6)
        after = testbed.decision("camera/0")
        assert (before, after["new"]) == ("detect/0", "detect/1")
        assert {c["to"]: c.get("path") for c in after["candidates"]}["detect/0"] is None
        # A new agent begins to count anew, and is believed all the same.
        await testbed.boot("n2").start()
        await asyncio.sleep(6)
        await testbed.stop()
        assert testbed.decision("camera/0")["new"] == "detect/0"
        assert {r["boot"] for r in testbed.records("agent_start", node="n2")} == {1, 2}

    run(scenario)


def test_a_network_layer_that_falls_silent_is_not_believed_for_long(tmp_path: Path) -> None:
    """Others are told that there is no way any more; the own route is left as it is."""

    async def scenario() -> None:
        testbed = PricedTestbed(tmp_path, plan(finite_chain(400), TWICE), {}, EXCHANGE)
        await testbed.start()
        await asyncio.sleep(4)
        testbed.network.blind = True
        await asyncio.sleep(10)
        await testbed.stop()
        assert testbed.taus("tuple_delivered")[-1] > 250
        assert testbed.decision("camera/0")["new"] is not None

    run(scenario)


def test_strangers_old_datagrams_and_nonsense_change_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        testbed = PricedTestbed(tmp_path, plan(finite_chain(100), TWICE), DETOUR, EXCHANGE)
        network = testbed.network
        await testbed.start()
        await asyncio.sleep(3)
        begun = len(testbed.records("route_decision", replica="camera/0"))
        # Whoever it is from: a way through detect/0 that costs nothing would be taken at once.
        lie = Notice("camera/0", CostUpdate("detect/0", 99, 99, 0.0, 0))
        addresses = {"n1": network.address("n1")}
        whose = testbed.deployment.replica("detect/0").node
        elsewhere = next(node for node in testbed.nodes if node not in ("n1", whose))
        strangers = (
            ("run", whose, bytes(32)),
            ("another", whose, KEY),
            ("run", elsewhere, KEY),  # a node of the run, that speaks for another one's replica
        )
        for run_id, node, secret in strangers:
            forger = notices_of(node, network.port("stranger"), addresses, secret=secret, run_id=run_id)
            await forger.open(7000)
            forger.send("n1", [lie])
            forger.close()
        socket = await network.port("stranger").datagrams(7000, lambda data, sender: None)
        for size in (0, 1, 15, 16, 17, 400):
            socket.send(bytes(size), network.address("n1"))
        socket.close()
        await asyncio.sleep(6)
        await testbed.stop()
        refused = {(r.source, r.reason): r.count for r in testbed.agents["n1"].refusals}
        assert refused == {("stranger", "stranger"): 8, (elsewhere, "sender"): 1}
        assert testbed.routes()["camera/0"] == "detect/1"
        chosen = [r["new"] for r in testbed.records("route_decision", replica="camera/0")[begun:]]
        assert set(chosen) == {"detect/1"}
        assert testbed.taus("tuple_delivered")[-1] == 100

    run(scenario)


@pytest.mark.parametrize("reliability", LEVELS)
def test_the_same_run_twice_gives_the_same_bytes(tmp_path: Path, reliability: Reliability) -> None:
    def once(directory: Path) -> dict[str, bytes]:
        async def scenario() -> None:
            testbed = PricedTestbed(directory, plan(join(reliability), JOIN), APART, EXCHANGE)
            await testbed.start()
            for node in ("n3", "n4"):
                await asyncio.sleep(2)
                testbed.network.move(**{node: FAR})
                await asyncio.sleep(2)
                testbed.network.move(**{node: 0})
            await asyncio.sleep(5)
            await testbed.stop()

        run(scenario)
        return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*.jsonl"))}

    assert once(tmp_path / "first") == once(tmp_path / "second")


def test_several_replicas_of_a_node_tell_each_other_without_the_network(tmp_path: Path) -> None:
    async def scenario() -> None:
        everything = dict.fromkeys(("camera", "detect", "recognise", "screen"), ("n1",))
        testbed = RadioTestbed(tmp_path, plan(finite_chain(20), everything), switching=EXCHANGE)
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 21))
        assert {record["sent"] for record in testbed.records("routing_overhead")} == {0}

    run(scenario)


def test_by_exchange_on_real_sockets(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(finite_chain(100, rate=50.0, cpu=0.001), TWICE)
        network = LoopbackNetwork(nodes_of(deployment))
        switching = Switching(period=0.2, mode=Mode.EXCHANGE)
        testbed = Testbed(tmp_path, deployment, network, switching=switching, sample_period=0.05)
        await testbed.start()
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 50)
        await testbed.stop()
        assert all(agent.failure is None for agent in testbed.agents.values())
        assert testbed.records("route_decision", replica="camera/0")[-1]["source"] == "test, exchanged"

    on_loopback(scenario)


def test_by_exchange_with_probes_of_the_direct_downstreams_only(tmp_path: Path) -> None:
    """Without any routing daemon to ask: replicas measure what they can, and are told the rest."""

    async def scenario() -> None:
        deployment = plan(finite_chain(100), TWICE)
        nodes = nodes_of(deployment)
        network = RadioNetwork(nodes)
        addresses = {node: network.address(node) for node in nodes}
        names = {address.host: node for node, address in addresses.items()}
        agents: dict[str, Agent] = {}
        async with AsyncExitStack() as stack:
            for node in nodes:
                port = network.port(node)
                config = query_agent(
                    node,
                    deployment,
                    addresses,
                    keys_of(KEY, "run", node, nodes),
                    switching=EXCHANGE,
                    limits=ROOMY,
                )
                opened = open_link_state(
                    LinkStateConfig("probe"),
                    port,
                    names,
                    Downstream(*watched_hosts(config, check(config))),
                    config.keys,
                )
                link_state = await stack.enter_async_context(opened)
                log = SegmentLog(tmp_path / node, "run", node, port.now_ns)
                agents[node] = Agent(config, port, link_state, log)
            for agent in agents.values():
                await agent.start()
            await asyncio.sleep(5)
            for agent in agents.values():
                agent.open_sources()
            await asyncio.sleep(10)
            for agent in agents.values():
                await agent.stop("done")
        records = [record for node in nodes for record in tuple_by_tuple(read_records(tmp_path / node))]
        decisions = [r for r in records if r["kind"] == "route_decision" and r["replica"] == "camera/0"]
        decision = decisions[-1]
        assert (decision["source"], decision["metric"]) == ("probe, exchanged", "etx")
        assert [c["path"] for c in decision["candidates"]] == [3.0, 3.0]
        assert sum(record["kind"] == "tuple_delivered" for record in records) == 100

    run(scenario)
