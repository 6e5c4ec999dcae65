"""Replica selection against exhaustive search, and the rules of Algorithm 1 one by one."""

from itertools import product
from math import inf, nan
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from node_agent.apps.dataflow.events import LinkCost, RouteDecision, RouteSwitch
from node_agent.apps.dataflow.model.decision import MOST_CANDIDATES, Candidate, Rule, Threshold
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.apps.dataflow.switching.decision import View, decide
from node_agent.apps.dataflow.switching.known_costs import costs_from_link_state
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.apps.dataflow.switching.route import Hop, Route
from node_agent.linkstate.shortest_path import distances, tree
from node_agent.model.cost_graph import CostGraph

Costs = dict[str, dict[str, float]]


def graph(costs: Costs) -> CostGraph:
    return CostGraph(costs, "hops", "ground_truth", 0)


def symmetric(*links: tuple[str, str, float]) -> CostGraph:
    costs: Costs = {}
    for a, b, cost in links:
        costs.setdefault(a, {})[b] = cost
        costs.setdefault(b, {})[a] = cost
    return graph(costs)


def query(**after: tuple[str, ...]) -> Query:
    return Query("q", tuple(OperatorSpec(name, "work", inputs) for name, inputs in after.items()))


CHAIN = query(camera=(), detect=("camera",), screen=("detect",))
PLAN = DeploymentPlan(
    CHAIN,
    (
        Replica("camera", 0, "a"),
        Replica("detect", 0, "b"),
        Replica("detect", 1, "c"),
        Replica("screen", 0, "d"),
    ),
)
CAMERA = PLAN.replicas[0]
ALWAYS, SHORTEST, NOWHERE = Threshold(), Rule(), Route()


def view(
    network: CostGraph,
    threshold: Threshold = ALWAYS,
    own: Replica = CAMERA,
    policy: str = "shortest_path",
) -> View:
    return seen(network, PLAN, own, Rule(policy, threshold))


def seen(network: CostGraph, plan: DeploymentPlan, own: Replica, rule: Rule = SHORTEST) -> View:
    return View(plan, own, costs_from_link_state(network, plan, own), rule)


def adapted(case: View, before: Route = NOWHERE) -> dict[str, Hop | None]:
    return decide(case, before).route.hops


def via_detect(b: float, c: float) -> CostGraph:
    """Paths to the screen that cost ``b`` through detect/0 and ``c`` through detect/1; inf cuts one."""
    return graph({"a": {"b": b - 1, "c": c - 1}, "b": {"d": 1.0}, "c": {"d": 1.0}})


def test_distances_follow_direction_and_ignore_infinite_links() -> None:
    network = graph({"a": {"b": 1.0, "c": 5.0}, "b": {"c": 1.0, "d": inf}, "e": {"a": 1.0}})
    assert distances(network, "a") == {"a": 0.0, "b": 1.0, "c": 2.0}
    assert distances(network, "d") == {"d": 0.0}


@pytest.mark.parametrize("cost", [-1.0, nan])
def test_impossible_costs_are_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="impossible cost"):
        distances(graph({"a": {"b": cost}}), "a")


def test_the_path_to_the_sink_counts_not_the_next_hop() -> None:
    network = graph({"a": {"b": 1.0, "c": 2.0}, "b": {"d": 9.0}, "c": {"d": 1.0}})
    assert adapted(view(network)) == {"detect": Hop("detect/1", 3.0)}


def test_replicas_on_one_node_cost_nothing_to_reach() -> None:
    plan = DeploymentPlan(CHAIN, (CAMERA, Replica("detect", 0, "a"), Replica("screen", 0, "a")))
    assert adapted(seen(graph({}), plan, CAMERA)) == {"detect": Hop("detect/0", 0.0)}


@pytest.mark.parametrize(
    ("current", "b", "c", "threshold", "chosen"),
    [
        pytest.param(None, 4.0, 4.0, Threshold(), "detect/0", id="first choice: ties by index"),
        pytest.param("detect/1", 4.0, 4.0, Threshold(), "detect/1", id="a tie keeps the current one"),
        pytest.param("detect/0", 4.0, 3.9, Threshold(), "detect/1", id="any gain beats threshold 0"),
        pytest.param("detect/0", 4.0, 3.0, Threshold(1), "detect/0", id="a gain equal to it does not"),
        pytest.param("detect/0", 4.0, 2.5, Threshold(1), "detect/1", id="a gain above it does"),
        pytest.param("detect/0", 8.0, 6.0, Threshold(0.25, True), "detect/0", id="equal to the share"),
        pytest.param("detect/0", 8.0, 5.9, Threshold(0.25, True), "detect/1", id="above the share"),
        pytest.param("detect/0", 2.0, 1.4, Threshold(0.25, True), "detect/1", id="a share of what is paid"),
        pytest.param("detect/0", 80.0, 61.0, Threshold(0.25, True), "detect/0", id="dear ways: a large gain"),
        pytest.param("detect/0", inf, 90.0, Threshold(3), "detect/1", id="unreachable: switch at any price"),
        pytest.param("detect/0", inf, inf, Threshold(), None, id="no path at all"),
        pytest.param("detect/7", 4.0, 5.0, Threshold(9), "detect/0", id="a replica that is not in the plan"),
    ],
)
def test_adapt_route(
    current: str | None, b: float, c: float, threshold: Threshold, chosen: str | None
) -> None:
    before = Route({"detect": Hop(current, 1.0) if current else None})
    assert decide(view(via_detect(b, c), threshold), before).route.to("detect") == chosen


def test_the_cost_of_a_kept_route_is_brought_up_to_date() -> None:
    kept = adapted(view(via_detect(4.0, 9.0)), Route({"detect": Hop("detect/0", 1.0)}))
    assert kept["detect"] == Hop("detect/0", 4.0)


def test_static_never_moves() -> None:
    assert adapted(view(via_detect(9.0, 2.0), policy="static")) == {"detect": Hop("detect/0", 9.0)}
    assert adapted(view(via_detect(inf, 2.0), policy="static")) == {"detect": Hop("detect/0", None)}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sink_has_nothing_to_route(policy: str) -> None:
    sink = view(via_detect(1.0, 1.0), own=PLAN.replicas[-1], policy=policy)
    assert decide(sink, Route()) == (Route(), ())


@pytest.mark.parametrize("policy", POLICIES)
def test_without_any_path_there_is_no_hop_unless_the_policy_does_not_care(policy: str) -> None:
    hop = adapted(view(via_detect(inf, inf), policy=policy))["detect"]
    assert hop == (Hop("detect/0", None) if policy == "static" else None)


def test_an_unreachable_branch_leaves_the_other_one_usable() -> None:
    fan_out = query(camera=(), left=("camera",), right=("camera",))
    replicas = (CAMERA, Replica("left", 0, "b"), Replica("right", 0, "z"))
    hops = adapted(seen(symmetric(("a", "b", 1.0)), DeploymentPlan(fan_out, replicas), CAMERA))
    assert hops == {"left": Hop("left/0", 1.0), "right": None}


def test_what_is_told_about_a_switch() -> None:
    before = Route({"detect": Hop("detect/0", 2.0)})
    route, events = decide(view(via_detect(8.0, 3.0), Threshold(0.5, relative=True)), before)
    assert route.to("detect") == "detect/1"
    assert events == (
        LinkCost("camera/0", "detect/0", 7.0, "hops", "ground_truth"),
        LinkCost("camera/0", "detect/1", 2.0, "hops", "ground_truth"),
        RouteDecision(
            replica="camera/0",
            downstream="detect",
            policy="shortest_path",
            old="detect/0",
            new="detect/1",
            candidates=(
                Candidate("detect/0", 7.0, 8.0, apart=("detect/1",)),
                Candidate("detect/1", 2.0, 3.0, apart=("detect/0",)),
            ),
            shares={},
            needed=4.0,
            threshold=0.5,
            relative=True,
            exponent=2.0,
            draw_seed=events[2].draw_seed if isinstance(events[2], RouteDecision) else 0,
            queued=0,
            shared=False,
            whole=False,
            metric="hops",
            source="ground_truth",
            taken_ns=0,
        ),
        RouteSwitch("camera/0", "detect", "detect/0", "detect/1", 8.0, 3.0, "ground_truth"),
    )


def test_losing_and_finding_a_route_are_switches_with_the_costs_of_the_moment() -> None:
    _, lost = decide(view(via_detect(inf, inf)), Route({"detect": Hop("detect/0", 2.0)}))
    assert lost[-1] == RouteSwitch("camera/0", "detect", "detect/0", None, None, None, "ground_truth")
    assert lost[0] == LinkCost("camera/0", "detect/0", None, "hops", "ground_truth")
    _, found = decide(view(via_detect(4.0, inf)), Route({"detect": None}))
    assert found[-1] == RouteSwitch("camera/0", "detect", None, "detect/0", None, 4.0, "ground_truth")
    _, unchanged = decide(view(via_detect(inf, inf)), Route())
    assert not any(isinstance(event, RouteSwitch) for event in unchanged)


def test_a_decision_looks_at_a_bounded_number_of_replicas_and_records_no_more() -> None:
    many = 3 * MOST_CANDIDATES
    costs = {f"n{i}": 1.0 + (many - i) % many for i in range(many)}
    replicas = [Replica("detect", i, f"n{i}") for i in range(many)]
    plan = DeploymentPlan(CHAIN, (CAMERA, *replicas, Replica("screen", 0, "d")))
    network = graph({"a": costs, **{node: {"d": 1.0} for node in costs}})
    found = seen(network, plan, CAMERA).situation("detect", f"detect/{many // 2}")
    assert len(found.candidates) <= MOST_CANDIDATES
    assert {"detect/0", f"detect/{many // 2}", f"detect/{many - 1}"} <= {c.to for c in found.candidates}
    assert [found.cost(c) for c in found.candidates] == [
        1.0 + costs[f"n{c.to.partition('/')[2]}"] for c in found.candidates
    ]


def test_paths_are_apart_if_they_share_no_node_and_do_not_hear_each_other() -> None:
    four = (*(Replica("detect", i, f"r{i}") for i in range(4)), Replica("screen", 0, "d"))
    network = symmetric(
        *(("a", f"f{i}", 1.0) for i in range(4)),
        *((f"f{i}", f"r{i}", 1.0) for i in range(4)),
        *((f"r{i}", "d", 1.0) for i in range(4)),
        ("f0", "f1", 9.0),  # heard, though no way leads over it
        ("r2", "f3", 9.0),
    )
    costs = costs_from_link_state(network, DeploymentPlan(CHAIN, (CAMERA, *four)), CAMERA)
    assert tree(network, "a").path("r0") == ("f0", "r0")
    assert costs.apart == {
        "detect/0": ("detect/2", "detect/3"),
        "detect/1": ("detect/2", "detect/3"),
        "detect/2": ("detect/0", "detect/1"),
        "detect/3": ("detect/0", "detect/1"),
    }


NODES = ("a", "b", "c", "d")
SHAPES = (
    query(src=(), one=("src",), two=("one",), end=("two",)),
    query(src=(), left=("src",), right=("src",), end=("left", "right")),
    query(src=(), one=("src",), end=("one",), side=("one",)),
)
THRESHOLDS = (Threshold(), Threshold(1.0), Threshold(3.0), Threshold(0.25, relative=True))


class Case(NamedTuple):
    graph: CostGraph
    plan: DeploymentPlan
    own: Replica
    threshold: Threshold


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = draw(st.sampled_from(SHAPES))
    replicas = [Replica("src", 0, draw(st.sampled_from(NODES)))]
    for name in shape.names()[1:]:
        copies = draw(st.integers(1, 3)) if name in shape.inner() else 1
        replicas += [Replica(name, i, draw(st.sampled_from(NODES))) for i in range(copies)]
    cost = st.none() | st.integers(0, 5).map(float)
    costs: Costs = {}
    for u, v in product(NODES, NODES):
        if u != v and (drawn := draw(cost)) is not None:
            costs.setdefault(u, {})[v] = drawn
    plan = DeploymentPlan(shape, tuple(replicas))
    return Case(graph(costs), plan, replicas[0], draw(st.sampled_from(THRESHOLDS)))


def network_distances(costs: Costs) -> dict[tuple[str, str], float]:
    """Floyd and Warshall's all pairs."""
    best = {(u, v): 0.0 if u == v else costs.get(u, {}).get(v, inf) for u, v in product(NODES, NODES)}
    for via, u, v in product(NODES, NODES, NODES):
        best[u, v] = min(best[u, v], best[u, via] + best[via, v])
    return best


def exhaustive(case: Case, own: Replica, network: dict[tuple[str, str], float]) -> float:
    """The cheapest way to the sinks among every assignment of downstream replicas."""
    choices = [case.plan.of(d) for d in case.plan.query.downstream(own.operator)]
    return min(
        sum(network[own.node, r.node] + exhaustive(case, r, network) for r in assignment)
        for assignment in product(*choices)
    )


@given(cases(), st.integers(0, 2))
def test_shortest_path_against_exhaustive_search(case: Case, used: int) -> None:
    network = network_distances(case.graph.costs)
    before = Route({d: Hop(f"{d}/{used}", 0.0) for d in case.plan.query.downstream("src")})
    seen_now = seen(case.graph, case.plan, case.own, Rule(threshold=case.threshold))
    after = decide(seen_now, before).route
    assert list(after.hops) == list(case.plan.query.downstream("src"))
    for downstream, hop in after.hops.items():
        cost = {
            r.id: network[case.own.node, r.node] + exhaustive(case, r, network)
            for r in case.plan.of(downstream)
        }
        told = seen_now.situation(downstream, None).candidates
        assert {c.to: inf if c.path is None else c.path for c in told} == cost
        best = min(cost.values())
        current = cost.get(f"{downstream}/{used}", inf)
        if best == inf:
            assert hop is None
        elif current == inf or current - best > case.threshold.of(current):
            assert hop == Hop(next(r for r in cost if cost[r] == best), best)
        else:
            assert hop == Hop(f"{downstream}/{used}", current)


@st.composite
def joins(draw: st.DrawFn) -> Case:
    """Inputs, replicated or not, of an operator with replicas that needs several tuples at once."""
    inputs = tuple(f"in{i}" for i in range(draw(st.integers(1, 3))))
    shape = Query(
        "join",
        (
            *(OperatorSpec(name, "work") for name in inputs),
            OperatorSpec("join", "work", inputs, takes=SameTau()),
            OperatorSpec("end", "work", ("join",)),
        ),
    )
    node = st.sampled_from(NODES)
    copies = {name: draw(st.integers(1, 3)) for name in inputs} | {"join": draw(st.integers(1, 4)), "end": 1}
    replicas = [Replica(name, i, draw(node)) for name, count in copies.items() for i in range(count)]
    cost = st.none() | st.floats(0, 5)
    costs: Costs = {}
    for u, v in product(NODES, NODES):
        if u != v and (drawn := draw(cost)) is not None:
            costs.setdefault(u, {})[v] = drawn
    return Case(
        graph(costs), DeploymentPlan(shape, tuple(replicas)), replicas[0], draw(st.sampled_from(THRESHOLDS))
    )


def test_a_union_is_no_join() -> None:
    union = query(left=(), right=(), both=("left", "right"), end=("both",))
    replicas = (Replica("left", 0, "a"), *(Replica("both", i, node) for i, node in enumerate("bc")))
    plan = DeploymentPlan(union, (*replicas, Replica("right", 0, "far"), Replica("end", 0, "d")))
    network = graph({"a": {"b": 2.0, "c": 1.0}, "b": {"d": 1.0}, "c": {"d": 1.0}, "far": {}})
    assert adapted(seen(network, plan, replicas[0])) == {"both": Hop("both/1", 2.0)}
    joined = replace(union.operators[2], takes=SameTau())
    join = Query("q", (*union.operators[:2], joined, union.operators[3]))
    assert adapted(seen(network, DeploymentPlan(join, plan.replicas), replicas[0])) == {"both": None}


@given(joins(), st.none() | st.integers(0, 3), st.sampled_from(list(POLICIES)), st.data())
def test_all_inputs_choose_the_same_replica_under_equal_information(
    case: Case, common: int | None, policy: str, data: st.DataObject
) -> None:
    """Whatever each of them has used so far; a single input's replicas as well, if they all may send."""
    if len(case.plan.query.sources()) == 1 and not POLICIES[policy].several:
        policy = "round_robin"
    chosen, reachable = set(), set()
    for own in (r for name in case.plan.query.sources() for r in case.plan.of(name)):
        costs = costs_from_link_state(case.graph, case.plan, own, policy)
        if common is not None:
            costs = replace(costs, using={"join": f"join/{common}"})
        before = Route({"join": Hop(f"join/{data.draw(st.integers(0, 3))}", 0.0)})
        rule = Rule(policy, case.threshold)
        hop = decide(View(case.plan, own, costs, rule), before).route.hops["join"]
        reachable.add(hop is not None)
        if hop is not None:
            assert hop.shares == ()
            chosen.add(hop.to)
    assert len(chosen) <= 1
    network = network_distances(case.graph.costs)
    sums = [
        sum(min(network[u.node, join.node] for u in case.plan.of(name)) for name in case.plan.query.sources())
        + network[join.node, case.plan.of("end")[0].node]
        for join in case.plan.of("join")
    ]
    # One that cannot reach the replica that the others agree on waits; some replica of each input can.
    assert policy == "static" or (min(sums) < inf) == (True in reachable)
