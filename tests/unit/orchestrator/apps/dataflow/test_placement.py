"""Deployment plans under every policy: reproducible, nested across k, within what nodes can carry."""

import random
import subprocess
import sys
from collections.abc import Mapping
from itertools import combinations
from math import dist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.apps.dataflow.planning.arrangement import arranged, within_roles
from orchestrator.apps.dataflow.planning.cpu import cpu_needs
from orchestrator.apps.dataflow.planning.placement import arrange
from orchestrator.apps.dataflow.planning.placements.near import near
from orchestrator.apps.dataflow.planning.placements.spread import spread
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.distances import in_hops
from orchestrator.planning.semantics import plan_run
from tests.unit.specs import chain, deployed, experiment, setting, topology

POLICIES = ("random", "spread", "colocate", "near")


def homes(plan: DeploymentPlan) -> dict[str, str]:
    return {replica.id: replica.node for replica in plan.replicas}


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    """Settings with room for at least one replica of each operator."""
    operators = draw(st.integers(1, 5))
    nodes = draw(st.integers(operators + 2, 60))
    return {
        "query": chain(operators),
        "topology": topology(nodes=nodes),
        "seed": draw(st.integers(0, 2**32)),
        "placement": {
            "policy": draw(st.sampled_from(("random", "spread"))),
            "seed": draw(st.none() | st.integers(0, 2**32)),
        },
    }


def most_replicas(settings_: dict[str, Any]) -> int:
    return int((settings_["topology"]["nodes"] - 2) // settings_["query"]["operators"])


@given(experiments())
@settings(max_examples=60, deadline=None)
def test_a_larger_k_adds_replicas_and_moves_none(settings_: dict[str, Any]) -> None:
    before: dict[str, str] = {}
    for k in range(1, min(6, most_replicas(settings_)) + 1):
        plan = deployed(experiment(**settings_, replicas=k))
        now = homes(plan)
        assert before.items() <= now.items()
        assert len(set(now.values())) == len(now) == len(plan.replicas)
        assert set(now.values()) <= set(experiment(**settings_).topology.node_names)
        assert {name: len(plan.of(name)) for name in plan.query.inner()} == dict.fromkeys(
            plan.query.inner(), k
        )
        before = now


@given(experiments(), st.data())
@settings(max_examples=60, deadline=None)
def test_every_uneven_replication_that_has_room_is_placed(
    settings_: dict[str, Any], data: st.DataObject
) -> None:
    room = settings_["topology"]["nodes"] - 2
    replicas = {}
    names = setting(experiment(**settings_)).query.inner()
    for position, name in enumerate(names):
        others = len(names) - position - 1
        replicas[name] = data.draw(st.integers(1, room - others))
        room -= replicas[name]
    plan = deployed(experiment(**settings_, replicas=replicas))
    assert {name: len(plan.of(name)) for name in names} == replicas
    assert len({replica.node for replica in plan.replicas}) == len(plan.replicas)


@pytest.mark.parametrize("policy", POLICIES)
def test_growing_one_operator_leaves_the_others_in_place(policy: str) -> None:
    def plan(detect: int) -> DeploymentPlan:
        replicas = {"detect": detect, "recognise": 3}
        return deployed(experiment(replicas=replicas, placement={"policy": policy}))

    small, large = homes(plan(1)), homes(plan(4))
    assert small.items() <= large.items()


def test_placement_follows_the_experiments_seed_unless_it_has_its_own() -> None:
    assert homes(deployed(experiment(seed=1))) != homes(deployed(experiment(seed=2)))
    own = {"policy": "random", "seed": 7}
    assert homes(deployed(experiment(seed=1, placement=own))) == homes(
        deployed(experiment(seed=2, placement=own))
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_the_order_in_which_nodes_are_listed_does_not_matter(policy: str) -> None:
    placement = {"policy": policy}
    names = [f"node-{number}" for number in range(20)]
    mixed = random.Random(3).sample(names, len(names))
    plans = [
        deployed(experiment(topology=topology(nodes=order), replicas=3, placement=placement))
        for order in (names, mixed)
    ]
    assert plans[0] == plans[1]


def test_explicit_placement_takes_the_first_k_nodes() -> None:
    nodes = {
        "camera": ["n01"],
        "detect": ["n05", "n06", "n07"],
        "recognise": ["n10", "n11"],
        "screen": ["n02"],
    }
    placement = {"policy": "explicit", "nodes": nodes}
    plan = deployed(experiment(placement=placement, replicas=2))
    assert homes(plan) == {
        "camera/0": "n01",
        "detect/0": "n05",
        "detect/1": "n06",
        "recognise/0": "n10",
        "recognise/1": "n11",
        "screen/0": "n02",
    }


def test_explicit_placement_may_put_operators_together_and_bounds_what_is_derived() -> None:
    nodes = {"camera": ["n01"], "detect": ["n01", "n02"], "recognise": ["n02"], "screen": ["n01"]}
    shared = experiment(placement={"policy": "explicit", "nodes": nodes}, replicas="auto")
    assert plan_run(shared).findings == []
    assert arrange(setting(shared)).counts == {"camera": 1, "detect": 2, "recognise": 1, "screen": 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_sources_and_sinks_are_at_the_same_nodes_under_every_policy(policy: str) -> None:
    random_ = homes(deployed(experiment(replicas=3)))
    other = homes(deployed(experiment(replicas=3, placement={"policy": policy})))
    assert [other[end] for end in ("camera/0", "screen/0")] == [random_[e] for e in ("camera/0", "screen/0")]


def test_spread_takes_the_other_way_round_and_no_detour() -> None:
    """Two ways of equal length lead from camera to screen; others are further off, or cut off."""
    query = setting(experiment(query=chain(1))).query
    network = {
        "camera": ["up", "down", "far"],
        "up": ["camera", "screen", "beside-up"],
        "beside-up": ["up"],
        "down": ["camera", "middle"],
        "middle": ["down", "screen"],
        "screen": ["up", "middle"],
        "far": ["camera", "farther"],
        "farther": ["far"],
        "alone": [],
    }
    order = ["camera", "screen", "up", "alone", "beside-up", "farther", "far", "middle", "down"]
    policy = spread(query, order, in_hops(network))
    placed = arranged(query, {"camera": 1, "op1": 3, "screen": 1}, policy)
    assert [placed["op1", i] for i in range(2)] == ["up", "middle"]
    assert placed["op1", 2] in ("down", "far")


def test_spread_of_moving_nodes_keeps_them_apart_in_space() -> None:
    gaps = {"random": 0.0, "spread": 0.0}
    for seed in range(30):
        for policy in gaps:
            described = experiment(query=chain(1), replicas=3, seed=seed, placement={"policy": policy})
            places = generate_trace(described.topology, seed, 0.0).at(0.0)
            chosen = [places[replica.node] for replica in deployed(described).of("op1")]
            gaps[policy] += min(dist(one, other) for one, other in combinations(chosen, 2))
    assert gaps["spread"] > 1.2 * gaps["random"]


@st.composite
def loads(draw: st.DrawFn) -> dict[str, Any]:
    """A chain whose replicas need anything from nothing to more than a core, on nodes of one to four."""
    nodes = [f"n{number}" for number in range(draw(st.integers(5, 30)))]
    capacity = {node: draw(st.integers(1, 4)) for node in nodes[: draw(st.integers(0, len(nodes)))]}
    cpu = draw(st.lists(st.integers(0, 130), min_size=1, max_size=4))
    operators: dict[str, Any] = {"camera": {"kind": "synthetic_source", "rate": "10 fps"}}
    for number, milliseconds in enumerate(cpu):
        operators[f"op{number}"] = {
            "kind": "work",
            "after": [*operators][-1],
            "cpu": f"{milliseconds} ms",
        }
    operators["screen"] = {"kind": "sink", "after": [*operators][-1]}
    return {
        "query": {"operators": operators},
        "topology": topology(nodes=nodes, capacity=capacity),
        "placement": {"policy": draw(st.sampled_from(("colocate", "near")))},
        "seed": draw(st.integers(0, 2**32)),
    }


@given(loads(), st.data())
@settings(max_examples=80, deadline=None)
def test_colocated_replicas_fit_into_their_nodes(settings_: dict[str, Any], data: st.DataObject) -> None:
    inner = setting(experiment(**settings_)).query.inner()
    replicas = data.draw(
        st.integers(1, 4) | st.fixed_dictionaries({name: st.integers(1, 5) for name in inner})
    )
    described = experiment(**settings_, replicas=replicas)
    needs, cores = cpu_needs(setting(described).query), described.topology.cores()
    arrangement = arrange(setting(described))
    counts, placed = arrangement.counts, arrangement.hosts
    for node in frozenset(placed.values()):
        here = [operator for operator, index in placed if placed[operator, index] == node]
        assert len(here) == len(set(here))
        assert len(here) == 1 or sum(needs[o] for o in here) <= cores[node] + 1e-9
        if settings_["placement"]["policy"] == "colocate":
            assert len(here) == 1 or set(here) <= {*inner}
    complete = len(placed) == sum(counts.values())
    assert complete == (plan_run(described).findings == [])
    if sum(counts.values()) <= len(cores):
        assert complete  # there is a node for each


@given(loads())
@settings(max_examples=40, deadline=None)
def test_colocated_plans_are_nested(settings_: dict[str, Any]) -> None:
    before: Mapping[Any, str] = {}
    for k in range(1, 7):
        described = experiment(**settings_, replicas=k)
        now = arrange(setting(described)).hosts
        assert before.items() <= now.items()
        before = now


def test_colocated_operators_share_a_node_until_it_is_full() -> None:
    def nodes_of(cpu: str) -> list[list[str]]:
        query = {"name": "synthetic_chain", "operators": 3, "rate": "10 fps", "cpu": cpu}
        plan = deployed(experiment(query=query, replicas=2, placement={"policy": "colocate"}))
        return [[r.operator for r in plan.on(node)] for node in dict.fromkeys(r.node for r in plan.replicas)]

    assert nodes_of("5 ms") == [["camera"], ["op1", "op2", "op3"], ["op1", "op2", "op3"], ["screen"]]
    assert nodes_of("50 ms") == [["camera"], ["op1", "op2"], ["op1", "op2"], ["op3"], ["op3"], ["screen"]]
    assert [len(here) for here in nodes_of("60 ms")] == [1] * 8


def test_near_puts_operators_where_the_stream_begins_and_ends() -> None:
    def nodes_of(cpu: str, **changes: Any) -> list[list[str]]:
        query = {"name": "synthetic_chain", "operators": 3, "rate": "10 fps", "cpu": cpu}
        plan = deployed(experiment(query=query, replicas=3, placement={"policy": "near"}, **changes))
        return [[r.id for r in plan.on(node)] for node in dict.fromkeys(r.node for r in plan.replicas)]

    begin, end, third = nodes_of("5 ms")
    assert begin == ["camera/0", "op1/0", "op2/0", "op3/0"]
    assert end == ["op1/1", "op2/1", "op3/1", "screen/0"]
    assert third == ["op1/2", "op2/2", "op3/2"]
    # Two fit: what does not fit where the stream begins goes on where it ends, while there is room.
    begin, *_ = nodes_of("50 ms")
    assert begin == ["camera/0", "op1/0", "op2/0"]
    # None fits: every replica has a node of its own.
    assert sorted(map(len, nodes_of("120 ms"))) == [1] * 11


def test_near_takes_the_node_that_stays_between_source_and_sink() -> None:
    query = setting(experiment(query=chain(1))).query
    at = {"a": 0.0, "b": 100.0, "c": -40.0, "d": 60.0, "e": 130.0}
    needs, cores = {"camera": 0.0, "op1": 2.0, "screen": 0.0}, dict.fromkeys(at, 1)
    choose = near(query, [*at], needs, cores, lambda one, other: abs(at[one] - at[other]))
    placed = arranged(query, {"camera": 1, "op1": 3, "screen": 1}, choose)
    assert placed == {
        ("camera", 0): "a",
        ("op1", 0): "d",
        ("op1", 1): "e",
        ("op1", 2): "c",
        ("screen", 0): "b",
    }


def test_near_respects_roles() -> None:
    query = setting(experiment(query=chain(2))).query
    roles = {"pi1": ["camera"], "pi2": ["screen"], "pi3": [], "pi4": []}
    cores, needs = dict.fromkeys(roles, 4), dict.fromkeys(query.names(), 0.1)
    choose = near(query, [*roles], needs, cores, lambda one, other: 1.0)
    placed = arranged(query, dict.fromkeys(query.names(), 1), within_roles(roles, query.names(), choose))
    assert [placed[name, 0] for name in query.names()] == ["pi1", "pi3", "pi3", "pi2"]


def test_what_an_operator_needs_follows_the_rates_of_the_sources() -> None:
    operators = {
        "left": {"kind": "synthetic_source", "rate": "10 fps"},
        "right": {"kind": "synthetic_source", "rate": "5 fps"},
        "first": {"kind": "work", "after": "left", "cpu": "20 ms"},
        "both": {"kind": "work", "after": ["first", "right"], "cpu": "10 ms"},
        "screen": {"kind": "sink", "after": "both"},
    }
    needs = cpu_needs(setting(experiment(query={"operators": operators})).query)
    assert needs == pytest.approx({"left": 0, "right": 0, "first": 0.2, "both": 0.15, "screen": 0})


@pytest.mark.parametrize("policy", POLICIES)
def test_too_few_nodes_for_source_and_sink_are_a_finding(policy: str) -> None:
    alone = experiment(topology=topology(nodes=1), placement={"policy": policy})
    (found,) = plan_run(alone).findings
    assert found.at == ("replicas",)
    cameras = with_roles(3, n01=["camera"], n02=["detect"], n03=["detect"])
    (found,) = plan_run(
        experiment(topology=cameras, replicas={"detect": 2}, placement={"policy": policy})
    ).findings
    assert "no node is left for" in found.message


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_plan_does_not_depend_on_pythons_hash(hash_seed: str) -> None:
    program = (
        "from tests.unit.specs import deployed, experiment;"
        "plans = [deployed(experiment(replicas='auto', placement={'policy': policy}))"
        " for policy in ('random', 'spread', 'colocate', 'near')];"
        "print([(r.id, r.node) for plan in plans for r in plan.replicas])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    ).stdout
    plans = [deployed(experiment(replicas="auto", placement={"policy": p})) for p in POLICIES]
    here = [(replica.id, replica.node) for plan in plans for replica in plan.replicas]
    assert printed.strip() == str(here)


def with_roles(nodes: int, **roles: list[str]) -> dict[str, Any]:
    hosts = {name: {"host": "192.0.2.1", "user": "pi", "roles": own} for name, own in roles.items()}
    return {**topology(nodes=nodes), "hosts": hosts}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(5))
def test_operators_go_where_nodes_have_their_role_and_others_keep_away(policy: str, seed: int) -> None:
    lab = with_roles(8, n03=["camera"], n05=["detect", "gpu"], n06=["detect"])
    plan = deployed(
        experiment(query=chain(2), topology=lab, replicas=2, placement={"policy": policy, "seed": seed})
    )
    where = {name: {replica.node for replica in plan.of(name)} for name in plan.query.names()}
    assert where.pop("camera") == {"n03"}
    assert where.pop("detect") == {"n05", "n06"}
    assert not {"n03", "n05", "n06"} & set().union(*where.values())


def test_roles_that_leave_no_node_for_a_replica_are_told() -> None:
    lab = with_roles(8, n05=["detect"])
    (found,) = plan_run(experiment(query=chain(2), topology=lab, replicas=2)).findings
    assert found.at == ("replicas",)
    assert found.message == "no node is left for detect/1, with roles as they are (detect)"
