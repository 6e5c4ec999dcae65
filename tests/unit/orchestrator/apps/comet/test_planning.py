"""Trees, estimates and planners on the paper's example, with answers worked out by hand."""

import math
from itertools import product

import pytest

from benchmarks.comet.random_networks import random_network
from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.node_plan import MARKS_S
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.ced_tree import Junction, build_tree, short, shorted_at
from orchestrator.apps.comet.planning.conversion import Change, Order, convert
from orchestrator.apps.comet.planning.estimator import Estimator, Steps, in_order
from orchestrator.apps.comet.planning.links import Link
from orchestrator.apps.comet.planning.optimum import optimum
from orchestrator.apps.comet.planning.planners import (
    all_push,
    centralized_heuristic,
    centralized_optimal,
    comet,
)
from orchestrator.apps.comet.planning.problem import tasks, world
from tests.unit.orchestrator.apps.comet.example import LINKS, SIZES, SOURCES, example, planned

pytestmark = pytest.mark.unit


def test_the_tree_of_the_example_has_two_junctions_below_the_sink() -> None:
    _, tree = planned(100.0)
    assert [(j.node, j.level, sorted(j.events)) for j in tree.junctions] == [
        ("V2", 1, ["pe1", "pe2"]),
        ("V3", 1, ["pe3", "pe4"]),
        ("V1", 0, ["pe1", "pe2", "pe3", "pe4"]),
    ]
    assert tree.height == 2 and tree.fastest == pytest.approx(14.0, abs=1e-6)


def test_alpha_weighs_cost_against_delay() -> None:
    slow = Link("V2", "V1", 100.0, 5.0, 1.0, cost=1.0)
    fast = [Link("V2", "V9", 1.0, 5.0, 1.0, cost=10.0), Link("V9", "V1", 1.0, 5.0, 1.0, cost=10.0)]
    given = world([slow, *fast], [EventSource("a", "V2", 1.0), EventSource("b", "V2", 1.0)], SIZES)
    estimator, _ = planned(100.0, "and(a, b; 2)", given)
    by_cost, by_delay = (build_tree(estimator.task, given, alpha) for alpha in (1.0, 0.0))
    assert [hop.lower for hop in by_cost.root.inputs[0].hops] == ["V2"]
    assert [hop.lower for hop in by_delay.root.inputs[0].hops] == ["V2", "V9"]


def test_relays_are_part_of_an_edge_and_a_source_on_the_way_makes_a_junction() -> None:
    links = [Link(f"n{i + 1}", f"n{i}", 1.0, 1.0, 1e9, cost=1.0) for i in range(4)]
    sources = [EventSource("a", "n4", 1.0), EventSource("b", "n2", 1.0), EventSource("c", "n2", 1.0)]
    _, tree = planned(100.0, "and(a, b, c; 2)", world(links, sources, SIZES), sink="n0")
    (only,) = tree.root.inputs
    assert only.child is not None and [hop.upper for hop in only.hops] == ["n1", "n0"]
    assert [(edge.name, len(edge.hops)) for edge in only.child.inputs] == [("b", 0), ("c", 0), ("a", 2)]


def test_shorting_adds_up_links() -> None:
    _, tree = planned(100.0)
    assert shorted_at(tree, 1) == {"V2", "V3"} and shorted_at(tree, 2) == frozenset()
    shorted = short(tree, {"V3"})
    by_name = {edge.name: edge for edge in shorted.root.inputs}
    assert sorted(by_name) == ["@V2", "pe3", "pe4"]
    assert sum(hop.cost for hop in by_name["pe3"].hops) == 4.0
    assert by_name["pe3"].delay == pytest.approx(14.0, abs=1e-6)
    assert by_name["pe3"].request_cost == pytest.approx(0.4)


def test_cost_and_delay_of_a_plan_by_hand() -> None:
    given = world(LINKS, SOURCES, SIZES)
    estimator, tree = planned(100.0, "and(pe1, pe2; 2)", given)
    steps: dict[str, Steps] = {"V2": (("pe2",), ("pe1",)), "V1": (("@V2",),)}
    plan = estimator.plan(tree, steps, frozenset())
    with_two, with_one = -math.expm1(-2 * 2 * 1.0), -math.expm1(-2 * 2 * 0.5)
    pushed = 0.5 * 1.0
    pulled = 0.5 * 0.1 + 1.0 * with_one * 1.0
    detected = (0.5 * with_two + 1.0 * with_one) * 2.0
    assert plan.cost == pytest.approx(pushed + pulled + detected, rel=5e-3)
    # pe2 arrives after 4 s, the request takes 4 s, the answer 4 s, the way to the sink 10 s.
    assert plan.delay == pytest.approx(22.0, abs=1e-6)


def test_an_answer_waits_for_the_detection_below_and_pulls_of_one_step_run_together() -> None:
    estimator, tree = planned(1000.0)
    below: dict[str, Steps] = {"V2": (("pe2",), ("pe1",)), "V3": (("pe4",), ("pe3",))}
    pull = estimator.plan(tree, {**below, "V1": (("@V3",), ("@V2",))}, frozenset())
    # V3 detects after 12 s, V1 knows it after 22 s; its request takes 10 s, the answer 10 s.
    assert pull.delay == pytest.approx(42.0, abs=1e-6)
    central = short(tree, tree.inner)
    together = estimator.plan(central, {"V1": (("pe4",), ("pe1", "pe2", "pe3"))}, frozenset())
    one_by_one = estimator.plan(central, {"V1": (("pe4",), ("pe3",), ("pe2",), ("pe1",))}, frozenset())
    assert together.delay == pytest.approx(3 * 14.0, abs=1e-6)
    assert one_by_one.delay == pytest.approx(7 * 14.0, abs=1e-6)
    assert one_by_one.cost < together.cost


def test_all_push_sends_everything_over_every_link() -> None:
    estimator, tree = planned(100.0)
    plan = all_push(estimator, tree)
    assert plan is not None and plan.cost == pytest.approx(1.5 * 3 + 0.375 * 4)


def test_frequent_events_are_pulled_last() -> None:
    estimator, tree = planned(1000.0)
    plan = centralized_heuristic(estimator, tree)
    assert plan is not None and plan.steps["V1"] == (("pe4",), ("pe3",), ("pe2",), ("pe1",))


def test_a_tight_tolerance_leaves_pushes_and_a_wider_one_allows_pulls_at_once() -> None:
    for tolerance, steps in ((14.5, 1), (42.5, 2)):
        estimator, tree = planned(tolerance)
        plan = centralized_heuristic(estimator, tree)
        assert plan is not None and plan.delay <= tolerance
        assert len(plan.steps["V1"]) == steps
    estimator, tree = planned(13.0)
    assert comet(estimator, tree) is beyond(estimator, tree) is all_push(estimator, tree) is None


def test_the_second_phase_pulls_several_at_once() -> None:
    estimator, tree = planned(42.5)
    central = short(tree, tree.inner)
    one, both = (convert(estimator, central, second_phase=phase) for phase in (False, True))
    assert one is not None and both is not None and both.cost < one.cost
    assert both.steps["V1"] == (("pe3", "pe4"), ("pe1", "pe2"))
    by_cost = convert(estimator, central, Order.COST)
    assert by_cost is not None and by_cost.delay <= 42.5


def test_comet_shorts_a_junction_that_costs_more_than_it_saves() -> None:
    """As in the paper's Figure 3: a rare event behind a junction with a frequent one."""
    links = [
        Link("V2", "V1", 1.0, 1.0, 1e9, cost=1.0),
        Link("V3", "V1", 1.0, 1.0, 1e9, cost=1.0),
        Link("V4", "V3", 1.0, 1.0, 1e9, cost=1.0),
        Link("V5", "V3", 1.0, 1.0, 1e9, cost=1.0),
    ]
    sources = [
        EventSource("pe1", "V2", 0.05),
        EventSource("pe2", "V4", 2.0),
        EventSource("pe3", "V5", 0.2),
    ]
    estimator, tree = planned(1000.0, "and(pe1, pe2, pe3; 2)", world(links, sources, SIZES))
    kept, shorted = convert(estimator, tree), comet(estimator, tree)
    assert kept is not None and shorted is not None
    assert shorted.cost < kept.cost and shorted.tree.inner == ()
    assert shorted.steps["V1"] == (("pe1",), ("pe3",), ("pe2",))


def test_one_way_links_are_not_pulled_over() -> None:
    links = [*LINKS[:3], Link("V5", "V2", 4.0, 5.0, 1e9, cost=1.0, one_way=True), *LINKS[4:]]
    given = world(links, SOURCES, SIZES)
    estimator, tree = planned(1000.0, given=given)
    for planner in (comet, beyond, optimum, centralized_optimal):
        plan = planner(estimator, tree)
        assert plan is not None
        assert all("pe2" not in step for steps in plan.steps.values() for step in steps[1:])


def ordered_partitions(names: tuple[str, ...]) -> list[Steps]:
    """All ways to put names into steps."""
    if not names:
        return [()]
    found: list[Steps] = []
    for steps in ordered_partitions(names[1:]):
        for place in range(len(steps) + 1):
            found.append((*steps[:place], (names[0],), *steps[place:]))
            if place < len(steps):
                found.append((*steps[:place], (names[0], *steps[place]), *steps[place + 1 :]))
    return found


@pytest.mark.parametrize("tolerance", [15.0, 25.0, 40.0, 60.0, 120.0])
@pytest.mark.parametrize("text", ["and(pe1, pe2, pe3, pe4; 2)", "seq(pe3, pe1, pe4, pe2; 4)"])
def test_the_optimum_is_the_cheapest_of_all_plans(tolerance: float, text: str) -> None:
    estimator, tree = planned(tolerance, text)

    def ways(junction: Junction) -> list[Steps]:
        return [in_order(s) for s in ordered_partitions(tuple(edge.name for edge in junction.inputs))]

    costs = []
    for nodes in ((), ("V2",), ("V3",), ("V2", "V3")):
        shorted = short(tree, nodes)
        for chosen in product(*(ways(junction) for junction in shorted.junctions)):
            steps = {j.node: way for j, way in zip(shorted.junctions, chosen, strict=True)}
            plan = estimator.plan(shorted, steps, frozenset())
            if plan.delay <= tolerance:
                costs.append(plan.cost)
    best, ours, central = (p(estimator, tree) for p in (optimum, beyond, centralized_optimal))
    assert best is not None and ours is not None and central is not None
    assert best.cost == pytest.approx(min(costs)) and best.delay <= tolerance
    assert min(costs) * (1 - 1e-9) <= ours.cost <= central.cost + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_ours_never_costs_more_than_comet(seed: int) -> None:
    network = random_network(seed, 12 + seed, 3 + seed % 5)
    task = tasks(network.request, network.world)[0]
    tree, estimator = build_tree(task, network.world), Estimator(task, network.world)
    paper, ours, exact = (planner(estimator, tree) for planner in (comet, beyond, optimum))
    assert paper is not None and ours is not None and exact is not None
    assert exact.cost * (1 - 1e-9) <= ours.cost <= paper.cost * (1 + 1e-9)
    for plan in (paper, ours, exact):
        again = estimator.plan(plan.tree, plan.steps, plan.pulled_absent)
        assert (again.cost, again.delay) == (plan.cost, plan.delay)
        assert plan.delay <= task.tolerance + 1e-6


def test_what_negations_watch_goes_to_the_sink() -> None:
    given = example()
    estimator, tree = planned(30.0, "and(pe3, !pe4; 2)", given)
    plan = comet(estimator, tree)
    assert plan is not None and [edge.name for edge in tree.absent] == ["pe4"]
    assert tree.fastest == pytest.approx(2.0 + 14.0 + MARKS_S, abs=1e-6)
    assert plan.cost == pytest.approx(0.25 * 4 + 0.125 * 4) and not plan.pulled_absent
    estimator, tree = planned(60.0, "seq(pe4, !pe1, pe3; 0.2)", given)
    plan = comet(estimator, tree)
    assert plan is not None and plan.pulled_absent == {"pe1"}
    assert plan.delay > 14.0 + 2 * 14.0 - 1e-6


def test_both_readings_of_cdr_and_cost_alone_rank_conversions() -> None:
    change = Change("n1", (("a",), ("b",)), saving=6.0, round_trip=3.0)
    assert change.rank(Order.COST, added=2.0) == 6.0
    assert change.rank(Order.CDR, added=2.0) == 3.0
    assert change.rank(Order.CDR_OF_LINK, added=2.0) == 2.0
    assert change.rank(Order.CDR, added=0.0) == math.inf
