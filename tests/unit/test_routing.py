"""Replica selection against exhaustive search, and the rules of Algorithm 1 one by one."""

from itertools import product
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.model.cost_graph import CostGraph
from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.query import OperatorSpec, Query
from node_agent.model.telemetry import LinkCost, RouteSwitch
from node_agent.routing.decision import decide
from node_agent.routing.policy import POLICIES, Hop, Route, View, path_costs, shortest_path, static
from node_agent.routing.shortest_path import distances

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


def view(network: CostGraph, threshold: float = 0.0, own: Replica = CAMERA) -> View:
    return View(network, PLAN, own, threshold)


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
    assert shortest_path(view(network), Route()) == Route({"detect": Hop("detect/1", 3.0)})


def test_replicas_on_one_node_cost_nothing_to_reach() -> None:
    plan = DeploymentPlan(CHAIN, (CAMERA, Replica("detect", 0, "a"), Replica("screen", 0, "a")))
    route = shortest_path(View(graph({}), plan, CAMERA), Route())
    assert route == Route({"detect": Hop("detect/0", 0.0)})


@pytest.mark.parametrize(
    ("current", "b", "c", "threshold", "chosen"),
    [
        pytest.param(None, 4.0, 4.0, 0.0, "detect/0", id="first choice: ties by index"),
        pytest.param("detect/1", 4.0, 4.0, 0.0, "detect/1", id="a tie keeps the current one"),
        pytest.param("detect/0", 4.0, 3.9, 0.0, "detect/1", id="any gain beats threshold 0"),
        pytest.param("detect/0", 4.0, 3.0, 1.0, "detect/0", id="a gain equal to the threshold does not"),
        pytest.param("detect/0", 4.0, 2.5, 1.0, "detect/1", id="a gain above the threshold does"),
        pytest.param("detect/0", inf, 90.0, 3.0, "detect/1", id="unreachable: switch at any price"),
        pytest.param("detect/0", inf, inf, 0.0, None, id="no path at all"),
        pytest.param("detect/7", 4.0, 5.0, 9.0, "detect/0", id="a replica that is not in the plan"),
    ],
)
def test_adapt_route(current: str | None, b: float, c: float, threshold: float, chosen: str | None) -> None:
    before = Route({"detect": Hop(current, 1.0) if current else None})
    assert shortest_path(view(via_detect(b, c), threshold), before).to("detect") == chosen


def test_the_cost_of_a_kept_route_is_brought_up_to_date() -> None:
    kept = shortest_path(view(via_detect(4.0, 9.0)), Route({"detect": Hop("detect/0", 1.0)}))
    assert kept.hops["detect"] == Hop("detect/0", 4.0)


def test_static_never_moves() -> None:
    assert static(view(via_detect(9.0, 2.0)), Route()) == Route({"detect": Hop("detect/0", 9.0)})
    assert static(view(via_detect(inf, 2.0)), Route()) == Route({"detect": Hop("detect/0", None)})


def test_a_sink_has_nothing_to_route() -> None:
    sink = PLAN.replicas[-1]
    for policy in POLICIES.values():
        assert decide(policy, view(via_detect(1.0, 1.0), own=sink), Route()) == (Route(), ())


def test_an_unreachable_branch_leaves_the_other_one_usable() -> None:
    fan_out = query(camera=(), left=("camera",), right=("camera",))
    replicas = (CAMERA, Replica("left", 0, "b"), Replica("right", 0, "z"))
    route = shortest_path(
        View(symmetric(("a", "b", 1.0)), DeploymentPlan(fan_out, replicas), CAMERA), Route()
    )
    assert route == Route({"left": Hop("left/0", 1.0), "right": None})


def test_what_is_told_about_a_switch() -> None:
    before = Route({"detect": Hop("detect/0", 2.0)})
    route, events = decide(shortest_path, view(via_detect(8.0, 3.0)), before)
    assert route.to("detect") == "detect/1"
    assert events == (
        LinkCost("camera/0", "detect/0", 7.0, "hops", "ground_truth"),
        LinkCost("camera/0", "detect/1", 2.0, "hops", "ground_truth"),
        RouteSwitch("camera/0", "detect", "detect/0", "detect/1", 8.0, 3.0, "ground_truth"),
    )


def test_losing_and_finding_a_route_are_switches_with_the_costs_of_the_moment() -> None:
    _, lost = decide(shortest_path, view(via_detect(inf, inf)), Route({"detect": Hop("detect/0", 2.0)}))
    assert lost[-1] == RouteSwitch("camera/0", "detect", "detect/0", None, None, None, "ground_truth")
    assert lost[0] == LinkCost("camera/0", "detect/0", None, "hops", "ground_truth")
    _, found = decide(shortest_path, view(via_detect(4.0, inf)), Route({"detect": None}))
    assert found[-1] == RouteSwitch("camera/0", "detect", None, "detect/0", None, 4.0, "ground_truth")
    _, unchanged = decide(shortest_path, view(via_detect(inf, inf)), Route())
    assert not any(isinstance(event, RouteSwitch) for event in unchanged)


NODES = ("a", "b", "c", "d")
SHAPES = (
    query(src=(), one=("src",), two=("one",), end=("two",)),
    query(src=(), left=("src",), right=("src",), end=("left", "right")),
    query(src=(), one=("src",), end=("one",), side=("one",)),
)


@st.composite
def views(draw: st.DrawFn) -> View:
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
    threshold = draw(st.sampled_from((0.0, 1.0, 3.0)))
    return View(graph(costs), DeploymentPlan(shape, tuple(replicas)), replicas[0], threshold)


def network_distances(costs: Costs) -> dict[tuple[str, str], float]:
    """Floyd and Warshall's all pairs."""
    best = {(u, v): 0.0 if u == v else costs.get(u, {}).get(v, inf) for u, v in product(NODES, NODES)}
    for via, u, v in product(NODES, NODES, NODES):
        best[u, v] = min(best[u, v], best[u, via] + best[via, v])
    return best


def exhaustive(case: View, own: Replica, network: dict[tuple[str, str], float]) -> float:
    """The cheapest way to the sinks among every assignment of downstream replicas."""
    choices = [case.plan.of(d) for d in case.plan.query.downstream(own.operator)]
    return min(
        sum(network[own.node, r.node] + exhaustive(case, r, network) for r in assignment)
        for assignment in product(*choices)
    )


@given(views(), st.integers(0, 2))
def test_shortest_path_against_exhaustive_search(case: View, used: int) -> None:
    network = network_distances(case.graph.costs)
    before = Route({d: Hop(f"{d}/{used}", 0.0) for d in case.plan.query.downstream("src")})
    after = shortest_path(case, before)
    assert list(after.hops) == list(case.plan.query.downstream("src"))
    for downstream, hop in after.hops.items():
        cost = {
            r.id: network[case.own.node, r.node] + exhaustive(case, r, network)
            for r in case.plan.of(downstream)
        }
        assert path_costs(case)[downstream] == cost
        best = min(cost.values())
        current = cost.get(f"{downstream}/{used}", inf)
        if best == inf:
            assert hop is None
        elif current - best > case.threshold:
            assert hop == Hop(next(r for r in cost if cost[r] == best), best)
        else:
            assert hop == Hop(f"{downstream}/{used}", current)
