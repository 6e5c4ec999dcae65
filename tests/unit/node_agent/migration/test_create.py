"""Plans from a time graph (T-21 to T-24), and shortest paths against all paths of small graphs."""

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import inf

import pytest

from node_agent.migration.costs import plan_cost
from node_agent.migration.create import create_plan, hosts_at
from node_agent.migration.plan import MigrationError, Plan, Steps, certain_plan, even_steps
from node_agent.migration.restrictions import Route, late_routes, local_limits, route_latency
from node_agent.migration.shortest_path import k_shortest_paths, shortest_path
from node_agent.migration.situation import Neighbour, Network, Operator, Situation, World, network
from node_agent.migration.time_graph import time_graph

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

MB = 1e6


def apart(brokers: str, near: frozenset[str] = frozenset(), bandwidth: float = inf) -> Network:
    """A second between any two brokers, none among those that are near each other."""
    return network(
        tuple(brokers.split()),
        lambda a, b: 0.0 if a == b or {a, b} <= near else 1.0,
        lambda a, b: bandwidth,
    )


def situation(
    net: Network,
    steps: Steps,
    host: str,
    state: float,
    plans: Mapping[str, Plan],
    *,
    limit: float = inf,
    windows: tuple[tuple[str, float], ...] = (),
) -> Situation:
    """An operator that only receives, from all in ``plans``."""
    neighbours = tuple(Neighbour(name, True, limit) for name in plans)
    operator = Operator("F", state, 0.0, neighbours, windows)
    return Situation(operator, host, World(steps, net, net.brokers), plans)


@pytest.mark.parametrize(
    ("moves", "cost", "migrates"),
    [
        ([("b1", 10), ("b2", 30)], 25.0, True),
        ([("b1", 10), ("b2", 35), ("b1", 25)], 35.0, False),
        ([("b1", 10), ("b2", 20)], 20.0, False),
    ],
    ids=["arrives with the other", "the other returns", "the horizon ends too soon"],
)
def test_t22_migrates_only_if_that_pays(moves: list[tuple[str, int]], cost: float, migrates: bool) -> None:
    net = apart("b1 b2 b3", frozenset({"b1", "b3"}), 5 * MB)
    where = [broker for broker, seconds in moves for _ in range(seconds)]
    steps = even_steps(0.0, 1.0, len(where))
    given = situation(net, steps, "b3", 25 * MB, {"D": certain_plan(steps, where, MB)})
    found = create_plan(given)
    assert found.cost == pytest.approx(cost * MB) and found.broken == 0
    if migrates:
        assert found.plan.hosts() == ("b3",) * 10 + ("b2",) * 30
        assert found.plan.stages[10][0].copy_at == 5.0
    else:
        assert set(found.plan.hosts()) == {"b3"}


def test_t23_an_edge_counts_the_old_hosts_steps_while_copying() -> None:
    net = apart("b3 b4 b5", bandwidth=MB)
    steps = even_steps(0.0, 1.0, 4)
    given = situation(net, steps, "b3", 2 * MB, {"D": certain_plan(steps, ["b5"] * 4, 2 * MB)})
    graph = time_graph(given)
    into_b4 = {(graph.targets[p], j): weight for j, p, weight in graph.edges_into(2, 1)}
    assert into_b4 == {("b4", 1): 2 * MB, ("b3", 0): 2 * 2 * MB + 2 * MB}, "two steps and the migration"
    assert sum(graph.costs.placing[k][0] for k in (0, 1)) == 4 * MB
    assert [len(each) for each in graph.vertices] == [1, 3, 3, 3] and graph.size() == 10


def test_t24_a_plan_says_what_is_copied_from_when() -> None:
    """Two steps of copying, and a window that reaches two steps back."""
    steps = Steps((10.0, 20.0, 30.0, 40.0, 50.0), 60.0)
    net = apart("b1 b2", bandwidth=MB / 20)
    moves = certain_plan(steps, ["b1", "b1", "b2", "b2", "b2"], MB)
    given = situation(net, steps, "b1", MB, {"source": moves}, windows=(("source", 20.0),))
    plan = create_plan(given).plan
    assert plan.hosts() == ("b1", "b1", "b2", "b2", "b2")
    arrival = plan.stages[2][0]
    assert (arrival.copy_at, arrival.buffers_from) == (10.0, (("source", 10.0),))
    assert all(plan.stages[k][0].copy_at is None for k in (0, 1, 3, 4))


def test_t21_a_path_s_limit_is_split_and_far_hosts_are_no_vertices() -> None:
    route = Route(("source", "D", "F", "consumer"), 0.009)
    processing = {"D": 0.003, "F": 0.003}
    limits = local_limits([route], processing)
    assert limits == {
        ("source", "D"): pytest.approx(0.001),
        ("D", "F"): pytest.approx(0.001),
        ("F", "consumer"): pytest.approx(0.001),
    }
    assert sum(limits.values()) + sum(processing.values()) == pytest.approx(0.009)
    net = network(
        ("near", "here", "far"), lambda a, b: abs(len(a) - len(b)) * 0.001 + 0.001 * ("far" in (a, b))
    )
    steps = even_steps(0.0, 1.0, 3)
    plans = {"F": certain_plan(steps, ["here"] * 3, 1.0)}
    operator = Operator("D", 0.0, 1.0, (Neighbour("F", False, limits["D", "F"]),))
    given = Situation(operator, "here", World(steps, net, net.brokers), plans)
    graph = time_graph(given)
    assert {graph.targets[i] for i in graph.vertices[1]} == {"here", "near"}, "2 ms to the third"
    hosts = {"source": "here", "D": "far", "F": "here", "consumer": "here"}
    assert late_routes([route], hosts, net, processing) == [route]
    assert late_routes([route], {**hosts, "D": "near"}, net, processing) == []


def test_limits_hold_for_each_path_by_itself() -> None:
    """E8: two paths of 8 ms each are in time although they take 16 ms together."""
    net = network(("a", "b"), lambda x, y: 0.0 if x == y else 0.008)
    routes = [Route((source, "F", "consumer"), 0.009) for source in ("s1", "s2")]
    hosts = {"s1": "b", "s2": "b", "F": "a", "consumer": "a"}
    assert [route_latency(each, hosts, net, {}) for each in routes] == [0.008, 0.008]
    assert late_routes(routes, hosts, net, {}) == []
    tight = Route(("s1", "F", "consumer"), 0.004)
    assert local_limits([routes[0], tight], {}) == {("s1", "F"): 0.002, ("F", "consumer"): 0.002}
    with pytest.raises(MigrationError, match="take longer"):
        local_limits([tight], {"F": 0.005})


def test_a_step_without_good_vertices_is_relaxed() -> None:
    """No broker is within 0.5 s of both neighbours: brokers that are near to one of them will do."""
    net = apart("b1 b2 b3")
    steps = even_steps(0.0, 1.0, 3)
    plans = {"D": certain_plan(steps, ["b1"] * 3, 1.0), "E": certain_plan(steps, ["b2"] * 3, 3.0)}
    given = situation(net, steps, "b3", 0.0, plans, limit=0.5)
    graph = time_graph(given)
    assert {graph.targets[i] for i in graph.vertices[2]} == {"b1", "b2"}
    found = create_plan(given)
    assert found.plan.hosts() == ("b3", "b2", "b2") and found.broken == 2 + 1 + 1


def test_a_step_that_cannot_be_reached_is_stayed_for() -> None:
    """Copying takes longer than the limit can be kept at the old host; the operator stays where it is."""
    net = apart("b1 b2", bandwidth=1.0)
    steps = even_steps(0.0, 1.0, 5)
    given = situation(net, steps, "b1", 3.0, {"D": certain_plan(steps, ["b2"] * 5, 1.0)}, limit=0.5)
    graph = time_graph(given)
    assert [set(each) for each in graph.forced] == [set(), {0}, {0}, set(), set()]
    found = create_plan(given)
    assert found.plan.hosts() == ("b1", "b1", "b1", "b2", "b2") and found.broken == 3


def test_brokers_that_refused_are_left_out_but_where_they_are_reserved() -> None:
    net = apart("b1 b2")
    steps = even_steps(0.0, 1.0, 4)
    plans = {"D": certain_plan(steps, ["b2"] * 4, 1.0)}
    given = situation(net, steps, "b1", 0.0, plans)
    assert create_plan(given).plan.hosts() == ("b1", "b2", "b2", "b2")
    refused = replace(given, refused=frozenset({"b2"}))
    assert create_plan(refused).plan.hosts() == ("b1",) * 4
    held = certain_plan(steps, ["b1", "b1", "b1", "b2"], 1.0)
    assert create_plan(replace(refused, reserved=held)).plan.hosts() == ("b1", "b1", "b1", "b2")
    everywhere = replace(refused, refused=frozenset({"b1", "b2"}), reserved=held)
    assert create_plan(everywhere).plan.hosts() == ("b1", "b1", "b1", "b2"), "what is reserved can be kept"


def test_of_equal_paths_the_one_with_fewer_migrations_is_taken() -> None:
    """The other is now here, now there, but both are without latency from here."""
    net = apart("b1 b2 b3", frozenset({"b1", "b2", "b3"}))
    steps = even_steps(0.0, 0.1, 50)
    where = [("b1", "b2", "b3")[k % 3] for k in range(50)]
    given = situation(net, steps, "b2", 10.0, {"D": certain_plan(steps, where, 0.1)})
    assert set(create_plan(given).plan.hosts()) == {"b2"}


def random_situation(seed: int, brokers: int, steps: int) -> Situation:
    made = random.Random(seed)
    names = tuple(f"b{n}" for n in range(brokers))
    spots = {name: made.random() for name in names}
    net = network(names, lambda a, b: abs(spots[a] - spots[b]), lambda a, b: made.choice([1.0, 2.0, 5.0]))
    when = even_steps(0.0, 1.0, steps)
    plans = {
        f"n{n}": certain_plan(when, [made.choice(names) for _ in range(steps)], made.uniform(0, 3))
        for n in range(2)
    }
    return situation(
        net, when, names[0], made.choice([0.0, 0.5, 1.5, 4.0]), plans, limit=made.choice([inf, 0.7])
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_shortest_path_is_the_cheapest_of_all(seed: int) -> None:
    given = random_situation(seed, 3, 5)
    graph = time_graph(given)
    every = []
    for hosts in product(given.targets(), repeat=5):
        if hosts[0] == given.host and is_a_path(graph_edges(given), hosts):
            every.append((plan_cost(given, hosts)[1], hosts))
    every.sort()
    best = shortest_path(graph)
    assert best.cost == pytest.approx(every[0][0])
    assert plan_cost(given, best.hosts)[1] == pytest.approx(best.cost)
    several = k_shortest_paths(graph, 6)
    assert [each.cost for each in several] == pytest.approx([cost for cost, _ in every[:6]])
    assert len({each.hosts for each in several}) == len(several)


Edges = dict[tuple[int, str], dict[str, int]]


def graph_edges(given: Situation) -> Edges:
    """By step and target, from where and since when it can be reached."""
    graph = time_graph(given)
    return {
        (k, graph.targets[i]): {graph.targets[p]: j for j, p, _ in graph.edges_into(k, i)}
        for k in range(1, len(graph.vertices))
        for i in graph.vertices[k]
    }


def is_a_path(edges: Edges, hosts: tuple[str, ...]) -> bool:
    """Whether each change of hosts is an edge whose source was the host since its beginning."""
    for k in range(1, len(hosts)):
        begin = edges.get((k, hosts[k]), {}).get(hosts[k - 1])
        if begin is None or len(set(hosts[begin:k])) > 1:
            return False
    return True


def test_plans_go_on_after_their_end() -> None:
    plan = certain_plan(even_steps(10.0, 1.0, 2), ["b1", "b2"], 1.0)
    assert hosts_at(plan, even_steps(9.0, 1.0, 5)) == ("b1", "b1", "b2", "b2", "b2")


def test_what_cannot_be_a_plan_or_network_is_refused() -> None:
    with pytest.raises(MigrationError):
        Steps((1.0, 1.0), 2.0)
    with pytest.raises(MigrationError):
        certain_plan(even_steps(0.0, 1.0, 3), ["b1"], 1.0)
    with pytest.raises(MigrationError):
        network(("b1", "b1"), lambda a, b: 0.0)
    with pytest.raises(MigrationError):
        network(("b1", "b2"), lambda a, b: -1.0)
