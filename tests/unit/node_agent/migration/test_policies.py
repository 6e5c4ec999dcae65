"""Plans in spite of uncertain neighbours (T-25, T-27), estimates that stay, and baselines."""

import random
from itertools import product
from math import inf

import pytest

from node_agent.migration.baselines import greedy_host, stop_and_copy_seconds
from node_agent.migration.chances import chances_to_be_least, poisson, uniform
from node_agent.migration.costs import costs
from node_agent.migration.create import create_plan
from node_agent.migration.plan import Expected, Plan, certain_plan, even_steps
from node_agent.migration.planner import Planner
from node_agent.migration.policies import k_shortest, likeliest, naive, weigh
from node_agent.migration.reservations import spans_at
from node_agent.migration.sequences import Likely, decompose, merge
from node_agent.migration.situation import Neighbour, Network, Operator, Situation, World, network
from node_agent.migration.stability import safe_off, safe_share, steady

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

STEPS = even_steps(0.0, 1.0, 3)


def apart(brokers: str, bandwidth: float = inf) -> Network:
    return network(tuple(brokers.split()), lambda a, b: float(a != b), lambda a, b: bandwidth)


def hand_over() -> Plan:
    """At b1 first and at b2 at last; the change comes after one step or two, each with probability 0.5."""
    at = {name: Expected((name,), (1.0,)) for name in ("b1", "b2")}
    stages = ((at["b1"],), (at["b1"], at["b2"]), (at["b2"],))
    return Plan(STEPS, stages, (1.0,), (((0.5, 0.5),), ((1.0,), (1.0,))))


def situation(state: float = 0.0, rate: float = 0.1, host: str = "b1") -> Situation:
    """D between the source, which hands over, and F, which stays at b3 (Fig. 4.5)."""
    operator = Operator("D", state, rate, (Neighbour("source", True), Neighbour("F", False)))
    net = apart("b1 b2 b3")
    plans = {"source": hand_over(), "F": certain_plan(STEPS, ["b3"] * 3, 1.0)}
    return Situation(operator, host, World(STEPS, net, net.brokers), plans)


def hosts_of(found: list[Likely]) -> dict[tuple[str, ...], float]:
    return {each.plan.hosts(): each.chance for each in found}


def test_t25_a_chain_is_decomposed_and_merged() -> None:
    sequences = {("b1", "b1", "b2"): 0.5, ("b1", "b2", "b2"): 0.5}
    parts = decompose(hand_over(), 8)
    assert hosts_of(parts) == sequences
    assert hosts_of(decompose(merge(STEPS, parts), 8)) == sequences
    given = situation()
    found = naive()(given)
    assert len(found.cases) == 2, "two time graphs"
    assert hosts_of(decompose(found.plan, 8)) == sequences, "D follows its source in both cases"
    assert found.cost == pytest.approx(3 * 0.1), "only the stream to F costs"
    expected = costs(given).placing[1]
    one_way = 0.5 + 0.1
    assert expected[:2] == pytest.approx([one_way, one_way]), "b1 and b2 are as good: CE = 0.5, and F"


def test_naive_follows_where_the_weighted_sum_waits() -> None:
    """With state that costs more than it saves naive stays, too."""
    small, large = situation(0.2), situation(5.0)
    assert create_plan(small).plan.hosts() in {("b1", "b1", "b2"), ("b1", "b2", "b2")}
    assert len(naive()(small).plan.brokers()) == 2
    assert create_plan(large).plan.hosts() == ("b1",) * 3
    stays = naive()(large)
    assert stays.plan.hosts() == ("b1",) * 3 and stays.plan.certain


def test_with_certain_neighbours_naive_is_the_basic_plan() -> None:
    given = situation()
    plans = {**given.plans, "source": certain_plan(STEPS, ["b1", "b2", "b2"], 1.0)}
    certain = Situation(given.operator, given.host, given.world, plans)
    assert naive()(certain).plan == create_plan(certain).plan


@pytest.mark.parametrize("seed", range(10))
def test_sequences_are_the_likeliest_ones(seed: int) -> None:
    made = random.Random(seed)
    steps = even_steps(0.0, 1.0, 5)

    def row(count: int) -> tuple[float, ...]:
        values = [made.choice([0.0, made.random()]) for _ in range(count)]
        values[made.randrange(count)] += 0.1
        return tuple(each / sum(values) for each in values)

    stages = tuple(tuple(Expected((f"b{n}",), (1.0,)) for n in range(3)) for _ in range(5))
    plan = Plan(steps, stages, row(3), tuple(tuple(row(3) for _ in range(3)) for _ in range(4)))
    every: dict[tuple[str, ...], float] = {}
    for way in product(range(3), repeat=5):
        chance = plan.start[way[0]]
        for k in range(4):
            chance *= plan.moves[k][way[k]][way[k + 1]]
        every[tuple(f"b{n}" for n in way)] = chance
    best = sorted(every.values(), reverse=True)[:7]
    found = decompose(plan, 7)
    assert [each.chance * sum(best) for each in found] == pytest.approx([each for each in best if each > 0])
    whole = decompose(plan, 3**5)
    merged = merge(steps, whole)
    assert sum(each.chance for each in whole) == pytest.approx(1.0)
    assert hosts_of(decompose(merged, 3**5)) == pytest.approx(hosts_of(whole)), "it was a chain before"


@pytest.mark.parametrize("seed", range(10))
def test_combinations_are_the_likeliest_ones(seed: int) -> None:
    made = random.Random(seed)
    plan = certain_plan(STEPS, ["b1"] * 3, 1.0)
    options = [
        [Likely(chance, plan) for chance in sorted((made.random() for _ in range(4)), reverse=True)]
        for _ in range(3)
    ]
    every = sorted((a.chance * b.chance * c.chance for a, b, c in product(*options)), reverse=True)[:9]
    assert [chance for chance, _ in likeliest(options, 9)] == pytest.approx([p / sum(every) for p in every])


def test_t27_paths_that_cost_the_same_are_as_likely() -> None:
    assert chances_to_be_least([4.0, 4.0], 0.2) == pytest.approx([0.5, 0.5])
    assert chances_to_be_least([4.0, 4.0], 0.0) == pytest.approx([0.5, 0.5])
    found = k_shortest(2, 0.1)(situation(rate=0.0))
    assert hosts_of(decompose(found.plan, 4)) == pytest.approx(
        {("b1", "b1", "b2"): 0.5, ("b1", "b2", "b2"): 0.5}
    ), "at b1 and at b2 the source is as likely in the middle step"
    assert k_shortest(1, 0.1)(situation(rate=0.0)).plan.certain


def test_chances_to_be_least_follow_the_distribution() -> None:
    def drawn(spread: float) -> list[float]:
        made = random.Random(1)
        wins = [0, 0, 0]
        for _ in range(40_000):
            values = [made.uniform(c * (1 - spread), c * (1 + spread)) for c in (10.0, 11.0, 13.0)]
            wins[values.index(min(values))] += 1
        return [each / 40_000 for each in wins]

    for spread in (0.05, 0.2, 0.5):
        assert chances_to_be_least([10.0, 11.0, 13.0], spread, uniform) == pytest.approx(
            drawn(spread), abs=0.01
        )
    assert chances_to_be_least([10.0, 13.0], 0.1) == [1.0, 0.0], "intervals without anything in common"
    narrow = chances_to_be_least([10.0, 11.0], 0.2, poisson)
    wide = chances_to_be_least([10.0, 11.0], 0.2, uniform)
    assert narrow[0] > wide[0] > 0.5, "Poisson numbers are near their mean"
    assert poisson(10.0, 2.0).values[::20] == pytest.approx((8.0, 12.0))


def test_an_uncertain_plan_is_compared_case_by_case() -> None:
    """Of a plan that is followed already the best sequence counts in each case; one that fits both cases is
    not replaced by another that does."""
    given = situation(0.2)
    found = naive()(given)
    assert weigh(found.plan, given, found) == pytest.approx((found.broken, found.cost))
    stays = certain_plan(STEPS, ["b1"] * 3, 0.1)
    assert weigh(stays, given, found)[1] > found.cost
    planner = Planner(given.operator, given.world, "b1", found.plan, dict(given.plans), policy=naive())
    assert planner.plan_anew() == []
    planner.plan = stays
    assert {each.to for each in planner.plan_anew()} == {"b1", "b2"}, "it reserves all it may need"


def test_brokers_of_an_uncertain_plan_are_reserved_for_all_it_may_do() -> None:
    found = naive()(situation(0.2))
    assert spans_at(found.plan, "b2") == ((0.0, inf),), "copying may begin in the first step"
    assert spans_at(found.plan, "b1") == ((0.0, 2.0),)
    assert found.plan.hosts_during(1.0) == {"b1", "b2"} and found.plan.hosts_during(9.0) == {"b2"}


def test_estimates_stay_while_measurements_waver() -> None:
    held = {"a": 100.0, "b": 10.0, "gone": 1.0}
    measured = {"a": 109.0, "b": 12.0, "new": 5.0}
    assert steady(held, measured, 0.1) == {"a": 100.0, "b": 12.0, "new": 5.0}
    assert safe_off(10.0, 16.0) == 3.0
    assert safe_share(10.0, 15.0) == pytest.approx(0.2) and safe_share(10.0, 10.0) == 0.0
    assert safe_share(0.0, 1.0) == inf and safe_share(0.0, 0.0) == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_within_the_safe_bound_the_chosen_path_stays_the_cheapest(seed: int) -> None:
    """All weights are off by less than the bound, each in its own direction."""
    made = random.Random(seed)
    weights = [[made.uniform(1, 10) for _ in range(6)] for _ in range(2)]
    one, other = sorted(weights, key=sum)
    bound = safe_share(sum(one), sum(other)) * 0.999
    for _ in range(50):
        off = [[each * (1 + made.choice([-1, 1]) * bound) for each in way] for way in (one, other)]
        assert sum(off[0]) < sum(off[1])
    for _ in range(50):
        pairs = [(a, b, safe_off(a, b) * 0.999) for a, b in zip(one, other, strict=True)]
        if all(b > a for a, b, _ in pairs):
            now = [(a + made.uniform(-s, s), b + made.uniform(-s, s)) for a, b, s in pairs]
            assert sum(a for a, _ in now) < sum(b for _, b in now)


def test_greedy_looks_at_now_only() -> None:
    given = situation(1e9)
    assert greedy_host(given) == "b1"
    away = Situation(given.operator, "b3", given.world, given.plans)
    assert greedy_host(away) == "b1", "whatever copying costs"
    alike = situation(rate=1.0, host="b3")
    assert greedy_host(alike) == "b3", "as good as any other, and it is there"
    full = World(STEPS, given.world.network, given.world.targets, frozenset({"b1"}))
    assert greedy_host(Situation(given.operator, "b3", full, given.plans)) == "b3"
    net = apart("b1 b2", 10.0)
    assert stop_and_copy_seconds(50.0, net, "b1", "b2") == 6.0
    assert stop_and_copy_seconds(50.0, net, "b1", "b1") == 0.0
