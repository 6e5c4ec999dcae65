"""Exchange mode over an in-memory network: it finds what link state would tell, and forgets what is old."""

import random
from collections import defaultdict
from itertools import product
from math import inf

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.routing_messages import CostReport, CostUpdate, Message
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.apps.dataflow.switching.decision import View, decide
from node_agent.apps.dataflow.switching.exchange import EXPIRY_NS, PERIOD_NS, Exchange
from node_agent.apps.dataflow.switching.known_costs import KnownCosts, costs_from_link_state
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.apps.dataflow.switching.route import Hop, Route
from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph

NODES = ("a", "b", "c", "d", "e")


def query(**after: tuple[str, ...]) -> Query:
    return Query("q", tuple(OperatorSpec(name, "work", inputs) for name, inputs in after.items()))


CHAIN = query(src=(), one=("src",), two=("one",), end=("two",))
JOIN = Query(
    "join",
    (
        OperatorSpec("left", "work"),
        OperatorSpec("right", "work"),
        OperatorSpec("prepare", "work", ("right",)),
        OperatorSpec("join", "work", ("left", "prepare"), takes=SameTau()),
        OperatorSpec("end", "work", ("join",)),
    ),
)
FAN_OUT = query(src=(), one=("src",), two=("one",), side=("one",), end=("two",))


class Net:
    """Every replica of a plan with an exchange of its own; messages take time, overtake, and get lost."""

    def __init__(
        self, plan: DeploymentPlan, graph: CostGraph, draw: random.Random, loss: float = 0.0
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.exchanges = {r.id: Exchange(plan, r) for r in plan.replicas}
        self.routes = {r.id: Route() for r in plan.replicas}
        self.now_ns = 0
        self._draw = draw
        self._loss = loss
        self._on_the_way: list[tuple[int, str, bytes]] = []

    def measure(self) -> None:
        for replica in self.plan.replicas:
            reach = distances(self.graph, replica.node)
            direct = [r for d in self.plan.query.downstream(replica.operator) for r in self.plan.of(d)]
            costs = {r.id: reach[r.node] for r in direct if r.node in reach}
            self.exchanges[replica.id].measured(costs, "hops", "probe", self.now_ns)

    def step(self, length_ns: int = PERIOD_NS // 4) -> None:
        self.now_ns += length_ns
        arrived = [entry for entry in self._on_the_way if entry[0] <= self.now_ns]
        self._on_the_way = [entry for entry in self._on_the_way if entry[0] > self.now_ns]
        self._draw.shuffle(arrived)
        for _, to, data in arrived:
            self.exchanges[to].received(msgspec.json.decode(data, type=Message), self.now_ns)
        for replica in self.plan.replicas:
            exchange = self.exchanges[replica.id]
            route = self.routes[replica.id] = self.decide(replica)
            exchange.uses({d: route.to(d) for d in route.hops}, queue=0)
            for due in exchange.updates_due(self.now_ns):
                if self._draw.random() >= self._loss:
                    delay = self._draw.randrange(PERIOD_NS // 2)
                    self._on_the_way.append((self.now_ns + delay, due.to, msgspec.json.encode(due.message)))

    def decide(self, replica: Replica, policy: str = "shortest_path") -> Route:
        costs = self.exchanges[replica.id].known_costs(self.now_ns)
        return decide(View(self.plan, replica, costs, Rule(policy)), self.routes[replica.id]).route

    def run(self, periods: int) -> None:
        for _ in range(periods):
            self.measure()
            for _ in range(4):
                self.step()


@st.composite
def nets(draw: st.DrawFn) -> tuple[DeploymentPlan, CostGraph, int]:
    shape = draw(st.sampled_from((CHAIN, JOIN, FAN_OUT)))
    node = st.sampled_from(NODES)
    replicas = [
        Replica(name, i, draw(node))
        for name in shape.names()
        for i in range(draw(st.integers(1, 3)) if name in shape.inner() else 1)
    ]
    cost = st.none() | st.integers(1, 5).map(float)
    costs: dict[str, dict[str, float]] = defaultdict(dict)
    for u, v in product(NODES, NODES):
        if u != v and (drawn := draw(cost)) is not None:
            costs[u][v] = drawn
    graph = CostGraph(dict(costs), "hops", "probe", 0)
    return DeploymentPlan(shape, tuple(replicas)), graph, draw(st.integers(0, 2**32))


def told(costs: KnownCosts, plan: DeploymentPlan, own: Replica) -> object:
    """What decisions see of it."""
    view = View(plan, own, costs)
    downstreams = plan.query.downstream(own.operator)
    candidates = {d: view.situation(d, None).candidates for d in downstreams}
    return {d: [(c.to, c.link, c.path, c.aggregate) for c in each] for d, each in candidates.items()}


@given(nets())
@settings(max_examples=60, deadline=None)
def test_a_network_that_stands_still_is_seen_as_link_state_sees_it(
    net: tuple[DeploymentPlan, CostGraph, int],
) -> None:
    plan, graph, seed = net
    exchanged = Net(plan, graph, random.Random(seed))
    exchanged.run(periods=2 * len(plan.query.operators) + 2)
    for replica in plan.replicas:
        costs = exchanged.exchanges[replica.id].known_costs(exchanged.now_ns)
        assert told(costs, plan, replica) == told(costs_from_link_state(graph, plan, replica), plan, replica)


@given(nets())
@settings(max_examples=30, deadline=None)
def test_inputs_of_a_join_agree_however_they_began(net: tuple[DeploymentPlan, CostGraph, int]) -> None:
    _, graph, seed = net
    draw = random.Random(seed)
    replicas = [Replica(name, i, draw.choice(NODES)) for name in ("prepare", "join") for i in range(3)]
    ends = [Replica(name, 0, draw.choice(NODES)) for name in ("left", "right", "end")]
    plan = DeploymentPlan(JOIN, (*ends, *replicas))
    exchanged = Net(plan, graph, draw)
    inputs = [plan.replica("left/0"), *plan.of("prepare")]
    for replica in inputs:
        exchanged.routes[replica.id] = Route({"join": Hop(f"join/{draw.randrange(3)}", 0.0)})
    exchanged.run(periods=12)
    for policy in POLICIES:
        chosen = {exchanged.decide(replica, policy).to("join") for replica in inputs} - {None}
        assert len(chosen) <= 1
    sibling = {exchanged.exchanges[r.id].sibling_in_use(exchanged.now_ns) for r in plan.of("join")}
    assert len(sibling) == 1


LINE = DeploymentPlan(
    CHAIN, tuple(Replica(name, 0, node) for name, node in zip(CHAIN.names(), "abcd", strict=True))
)
LINE_GRAPH = CostGraph({"a": {"b": 1.0}, "b": {"c": 1.0}, "c": {"d": 1.0}}, "hops", "probe", 0)


def test_lost_messages_only_delay() -> None:
    net = Net(LINE, LINE_GRAPH, random.Random(3), loss=0.3)
    net.run(periods=20)
    assert net.routes["src/0"].hops == {"one": Hop("one/0", 3.0)}


def test_a_way_that_ends_is_told_upstream_at_once_and_silence_is_taken_for_no_way() -> None:
    net = Net(LINE, LINE_GRAPH, random.Random(3))
    net.run(periods=8)
    assert net.routes["src/0"].to("one") == "one/0"
    net.graph = CostGraph({"a": {"b": 1.0}, "b": {"c": 1.0}}, "hops", "probe", 0)
    net.run(periods=3)
    assert net.routes["src/0"].to("one") is None
    net.graph = LINE_GRAPH
    net.run(periods=5)
    assert net.routes["src/0"].to("one") == "one/0"
    silent = Exchange(LINE, LINE.replica("src/0"))
    silent.measured({"one/0": 1.0}, "hops", "probe", 0)
    silent.received(CostUpdate("one/0", 1, 1, 2.0, 5), 0)
    fresh = silent.known_costs(EXPIRY_NS)
    assert (fresh.links, fresh.beyond, fresh.queues) == ({"one/0": 1.0}, {"one/0": 2.0}, {"one/0": 5})
    stale = silent.known_costs(EXPIRY_NS + 1)
    assert (stale.links, stale.beyond, stale.queues) == ({}, {}, {})


def test_late_messages_and_those_of_strangers_change_nothing_and_a_restart_counts_anew() -> None:
    exchange = Exchange(LINE, LINE.replica("src/0"))
    exchange.measured({"one/0": 1.0, "end/0": 1.0, "one/9": inf}, "hops", "probe", 0)
    cases: list[tuple[Message, bool, float]] = [
        (CostUpdate("one/0", 1, 5, 2.0, 0), True, 2.0),
        (CostUpdate("one/0", 1, 4, 9.0, 0), False, 2.0),
        (CostUpdate("one/0", 1, 5, 9.0, 0), False, 2.0),
        (CostUpdate("two/0", 1, 9, 0.0, 0), False, 2.0),
        (CostReport("one/0", 1, 9, 0.0, None), False, 2.0),
        (CostUpdate("one/0", 2, 1, 3.0, 0), True, 3.0),
    ]
    for message, is_news, to_sinks in cases:
        assert exchange.received(message, 0) is is_news
        assert exchange.known_costs(0).beyond == {"one/0": to_sinks}
    assert exchange.known_costs(0).links == {"one/0": 1.0}


def test_updates_are_periodic_and_go_to_every_upstream() -> None:
    exchange = Exchange(LINE, LINE.replica("one/0"))
    assert [due.to for due in exchange.updates_due(0)] == ["src/0"]
    assert exchange.updates_due(PERIOD_NS - 1) == []
    exchange.measured({"two/0": 1.0}, "hops", "probe", PERIOD_NS - 1)
    exchange.received(CostUpdate("two/0", 1, 1, 1.0, 0), PERIOD_NS - 1)
    (found,) = exchange.updates_due(PERIOD_NS - 1)  # a way was found
    assert found.message == CostUpdate("one/0", 1, 2, 2.0, 0)
    assert exchange.updates_due(PERIOD_NS) == []


@pytest.mark.parametrize("message", [CostReport("a/0", 1, 2, None, "b/1"), CostUpdate("a/0", 1, 2, 3.5, 4)])
def test_messages_fit_control_frames(message: Message) -> None:
    wire = msgspec.json.encode(message)
    assert msgspec.json.decode(wire, type=Message) == message
    assert len(wire) < 100
