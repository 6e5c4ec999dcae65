"""Where mobiles will be: dead reckoning, a known way, and what others did (T-26)."""

import random
from itertools import pairwise

import pytest

from node_agent.migration.learned import Visit, foretell, learn
from node_agent.migration.leaves import Leaves, Span, grid, square
from node_agent.migration.mobility import deviates, linear, navigation, on_way, reckoned, surrounding
from node_agent.migration.plan import MigrationError, Plan, Steps, certain_plan, even_steps

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

TWO = grid(["b1", "b2"], 2, 200.0, 100.0)


def likely(plan: Plan, k: int) -> dict[str, float]:
    return {each.host: chance for chance, each in plan.likely()[k]}


def test_leaves_share_uncertain_places() -> None:
    assert TWO.shares(Span(90.0, 0.0, 130.0, 10.0)) == pytest.approx({"b1": 0.25, "b2": 0.75})
    assert TWO.shares(square((100.0, 50.0), 0.0)) == {"b2": 1.0}
    assert TWO.leaf((-5.0, 500.0)) == "b1" and TWO.leaf((100.0, 0.0)) == "b2", "the nearest, the next"
    assert TWO.shares(Span(-50.0, -50.0, 50.0, 0.0)) == pytest.approx({"b1": 1.0})
    with pytest.raises(MigrationError, match="rows of 2"):
        grid(["b1", "b2", "b3"], 2, 1.0, 1.0)
    with pytest.raises(MigrationError, match="b1"):
        Leaves({"b1": Span(1.0, 0.0, 0.0, 1.0)})


def test_reckoning_goes_on_as_before() -> None:
    seen = [((0.0, 0.0), 0.0), ((10.0, 5.0), 5.0)]
    assert reckoned(seen, 7.0) == (14.0, 7.0)
    assert reckoned(seen[:1], 7.0) == (0.0, 0.0)
    with pytest.raises(MigrationError):
        reckoned([], 0.0)


def test_linear_shares_its_uncertain_place_among_leaves() -> None:
    """At 10 m/s towards the border at 100 m, off by 10 m now and 2 m more each second."""
    seen = [((50.0, 50.0), 0.0), ((60.0, 50.0), 1.0)]
    steps = even_steps(1.0, 1.0, 12)
    plan = linear(seen, TWO, steps, 7.0, 10.0, 2.0)
    assert likely(plan, 0) == {"b1": 1.0}
    assert likely(plan, 4) == pytest.approx({"b1": 0.5, "b2": 0.5}), "it is at the border, off by 18 m"
    assert likely(plan, 3) == pytest.approx({"b1": (16 + 10) / 32, "b2": (16 - 10) / 32})
    assert likely(plan, 11) == {"b2": 1.0}
    assert all(each.rates == (7.0,) for stage in plan.stages for each in stage)


@pytest.mark.parametrize("seed", range(30))
def test_transitions_of_linear_lead_to_the_shares(seed: int) -> None:
    """The chain's probabilities are the shares of each step, and a mobile that is on its way does not turn
    round: it passes each border at most once."""
    made = random.Random(seed)
    leaves = grid([f"b{n}" for n in range(12)], 4, 400.0, 300.0)
    speed = made.uniform(-20, 20), made.uniform(-20, 20)
    here = made.uniform(0, 400), made.uniform(0, 300)
    seen = [((here[0] - speed[0], here[1] - speed[1]), -1.0), (here, 0.0)]
    error, growth = made.uniform(0, 30), made.uniform(0, 5)
    steps = even_steps(0.0, 1.0, 10)
    plan = linear(seen, leaves, steps, 1.0, error, growth)
    for k, t in enumerate(steps.times):
        shares = leaves.shares(square(reckoned(seen, t), error + growth * t))
        assert likely(plan, k) == pytest.approx(shares, abs=1e-6)


def test_a_known_way_is_a_certain_plan() -> None:
    route = [((50.0, 50.0), 10.0), ((150.0, 50.0), 30.0), ((50.0, 50.0), 50.0)]
    assert on_way(route, 15.0) == (75.0, 50.0) and on_way(route, 0.0) == (50.0, 50.0)
    plan = navigation(route, TWO, even_steps(10.0, 5.0, 9), 3.0)
    assert plan.hosts() == ("b1", "b1", "b2", "b2", "b2", "b2", "b2", "b1", "b1") and plan.certain


def test_what_is_around_a_mobile_comes_from_all_leaves_there() -> None:
    steps = even_steps(0.0, 1.0, 2)
    plan = surrounding([(90.0, 50.0), (150.0, 50.0)], 20.0, TWO, steps, 40.0)
    assert plan.certain
    assert plan.stages[0][0].hosts == ("b1", "b2") and plan.stages[0][0].rates == pytest.approx((30.0, 10.0))
    assert (plan.stages[1][0].hosts, plan.stages[1][0].rates) == (("b2",), (40.0,))


def t26_ways() -> list[list[Visit]]:
    """All come from b0, stay 2 s on b1 and 8 s on b2; half of them return to b1, the others go on to b4."""
    come = [Visit("b0", -60.0), Visit("b1", 0.0), Visit("b2", 2.0)]
    return [[*come, Visit(last, 10.0), Visit("b9", 60.0)] for last in ("b1", "b4")]


def test_t26_learned_patterns_are_followed_step_by_step() -> None:
    habits = learn(t26_ways())
    plan = foretell(habits, "b0", Visit("b1", 0.0), Steps((0.0, 5.0, 15.0), 25.0), 1.0)
    assert likely(plan, 0) == {"b1": 1.0}
    assert likely(plan, 1) == {"b2": 1.0}, "after 5 s; it stays 2 s on b1"
    assert likely(plan, 2) == pytest.approx({"b1": 0.5, "b4": 0.5}), "after 10 s more"


def test_where_a_mobile_came_from_matters() -> None:
    """On a road from west to east nobody turns round."""
    east = [Visit(f"r{n}", 10.0 * n) for n in range(5)]
    west = [Visit(f"r{4 - n}", 10.0 * n) for n in range(5)]
    habits = learn([east, west])
    steps = even_steps(20.0, 10.0, 3)
    assert likely(foretell(habits, "r1", Visit("r2", 20.0), steps, 1.0), 1) == {"r3": 1.0}
    assert likely(foretell(habits, "r3", Visit("r2", 20.0), steps, 1.0), 1) == {"r1": 1.0}
    unknown = foretell(habits, "elsewhere", Visit("r2", 20.0), steps, 1.0)
    assert likely(unknown, 1) == pytest.approx({"r1": 0.5, "r3": 0.5})


def test_who_was_never_seen_to_leave_stays() -> None:
    habits = learn([[Visit("b1", 0.0), Visit("b2", 5.0)]])
    plan = foretell(habits, "", Visit("b2", 5.0), even_steps(9.0, 5.0, 4), 1.0)
    assert plan.hosts() == ("b2",) * 4
    assert habits.turns == {}, "how long it was on b1 before is not known"


@pytest.mark.parametrize("seed", range(20))
def test_learned_chances_are_one_together(seed: int) -> None:
    made = random.Random(seed)
    ways = []
    for _ in range(40):
        way, t = [Visit(made.choice("abcd"), 0.0)], 0.0
        while len(way) < 12:
            t += made.uniform(1, 30)
            way.append(Visit(made.choice([each for each in "abcd" if each != way[-1].leaf]), t))
        ways.append(way)
    habits = learn(ways)
    plan = foretell(habits, "a", Visit("b", 0.0), even_steps(3.0, 4.0, 40), 1.0)
    for stage in plan.probabilities():
        assert sum(stage) == pytest.approx(1.0) and min(stage) >= 0
    hosts = [each.host for each in plan.stages[-1]]
    assert len(set(hosts)) == len(hosts) > 1


def test_a_mobile_plans_anew_when_its_plan_is_wrong_or_over() -> None:
    plan = certain_plan(even_steps(0.0, 10.0, 3), ["b1", "b1", "b2"], 100.0)
    assert not deviates(plan, 15.0, "b1", 110.0, 0.2)
    assert deviates(plan, 15.0, "b2", 100.0, 0.2), "another leaf"
    assert deviates(plan, 15.0, "b1", 130.0, 0.2), "another rate"
    assert deviates(plan, 30.0, "b2", 100.0, 0.2), "over"
    spread = linear([((90.0, 50.0), 0.0)], TWO, even_steps(0.0, 1.0, 3), 5.0, 20.0, 0.0)
    assert not deviates(spread, 1.0, "b2", 5.0, 0.1), "it may be at either"
    assert all(a == b for a, b in pairwise(spread.probabilities()))


def test_ways_of_mobiles_that_turn_often_are_followed_within_bounds() -> None:
    """Between any two of five leaves others went to and fro, about ten times a second: in a step of a minute
    that makes more ways than could be counted."""
    draw = random.Random(4)
    ways = []
    for _ in range(20):
        t, here, way = 0.0, "b1", []
        for _ in range(60):
            way.append(Visit(here, t))
            t += draw.choice([1e-6, 0.01, 0.3])
            here = draw.choice([leaf for leaf in ("b1", "b2", "b3", "b4", "b5") if leaf != here])
        ways.append(way)
    plan = foretell(learn(ways), "b2", Visit("b1", 0.0), even_steps(0.0, 60.0, 2), 1.0)
    for k in range(2):
        assert sum(likely(plan, k).values()) == pytest.approx(1.0)
