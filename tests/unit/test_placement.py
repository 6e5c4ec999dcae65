"""Deployment plans: one replica per node, reproducible, nested across k."""

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.model.plan import DeploymentPlan
from orchestrator.planning.placement import deployment_plan
from tests.unit.specs import chain, experiment, topology


def hosts(plan: DeploymentPlan) -> dict[str, str]:
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
        "placement": {"policy": "random", "seed": draw(st.none() | st.integers(0, 2**32))},
    }


def most_replicas(settings_: dict[str, Any]) -> int:
    return int((settings_["topology"]["nodes"] - 2) // settings_["query"]["operators"])


@given(experiments())
@settings(max_examples=60, deadline=None)
def test_a_larger_k_adds_replicas_and_moves_none(settings_: dict[str, Any]) -> None:
    before: dict[str, str] = {}
    for k in range(1, min(6, most_replicas(settings_)) + 1):
        plan = deployment_plan(experiment(**settings_, replicas=k))
        now = hosts(plan)
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
    names = experiment(**settings_).dataflow().inner()
    for position, name in enumerate(names):
        others = len(names) - position - 1
        replicas[name] = data.draw(st.integers(1, room - others))
        room -= replicas[name]
    plan = deployment_plan(experiment(**settings_, replicas=replicas))
    assert {name: len(plan.of(name)) for name in names} == replicas
    assert len({replica.node for replica in plan.replicas}) == len(plan.replicas)


def test_growing_one_operator_leaves_the_others_in_place() -> None:
    small = hosts(deployment_plan(experiment(replicas={"detect": 1, "recognise": 3})))
    large = hosts(deployment_plan(experiment(replicas={"detect": 4, "recognise": 3})))
    assert small.items() <= large.items()


def test_placement_follows_the_experiments_seed_unless_it_has_its_own() -> None:
    assert hosts(deployment_plan(experiment(seed=1))) != hosts(deployment_plan(experiment(seed=2)))
    own = {"policy": "random", "seed": 7}
    assert hosts(deployment_plan(experiment(seed=1, placement=own))) == hosts(
        deployment_plan(experiment(seed=2, placement=own))
    )


def test_the_order_in_which_nodes_are_listed_does_not_matter() -> None:
    names = [f"node-{number}" for number in range(20)]
    mixed = random.Random(3).sample(names, len(names))
    plans = [
        deployment_plan(experiment(topology=topology(nodes=order), replicas=3)) for order in (names, mixed)
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
    plan = deployment_plan(experiment(placement=placement, replicas=2))
    assert hosts(plan) == {
        "camera/0": "n01",
        "detect/0": "n05",
        "detect/1": "n06",
        "recognise/0": "n10",
        "recognise/1": "n11",
        "screen/0": "n02",
    }


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_plan_does_not_depend_on_pythons_hash(hash_seed: str) -> None:
    program = (
        "from tests.unit.specs import experiment;"
        "from orchestrator.planning.placement import deployment_plan;"
        "print([(r.id, r.node) for r in deployment_plan(experiment(replicas=3)).replicas])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    ).stdout
    here = [(replica.id, replica.node) for replica in deployment_plan(experiment(replicas=3)).replicas]
    assert printed.strip() == str(here)
