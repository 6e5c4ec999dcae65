"""How many replicas the planner derives: by the paper's trends, and from aggregates alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.apps.dataflow.planning.drawn_networks import MOST, Placing
from orchestrator.apps.dataflow.planning.placement import arrange, derived_counts
from orchestrator.apps.dataflow.planning.replication import Prospect, advise
from orchestrator.apps.dataflow.spec.placement import PLACEMENT_POLICIES
from tests.unit.specs import experiment, setting, topology

SETTLE_S = 12.0
"""A switching period of 2 s, and 10 s until routing gives a link up."""


def placing(operators: int, policy: str = "random", cpu: float = 0.0, stays: bool = False) -> Placing:
    return Placing(PLACEMENT_POLICIES[policy], (0.0, *[cpu] * operators, 0.0), 1, stays)


def prospect(**changes: Any) -> Prospect:
    """The paper's emulation at 5 m/s."""
    values: dict[str, Any] = {
        "nodes": 25,
        "width_m": 1200.0,
        "height_m": 1200.0,
        "range_m": 450.0,
        "speed": 5.0,
        "placing": placing(2),
        "settle_s": SETTLE_S,
    }
    return Prospect(**values | changes)


def simulated(side: float, speed: float = 4.0) -> Prospect:
    """The paper's simulation."""
    changes = {"width_m": side, "height_m": side, "range_m": 625.0, "placing": placing(3), "settle_s": 6.0}
    return prospect(speed=speed, **changes)


def test_a_dense_network_needs_two_or_three_and_a_sparse_one_more() -> None:
    dense, sparse = advise(simulated(1500.0)), advise(simulated(3135.0))
    assert dense.replicas in (2, 3)
    assert sparse.replicas > 3
    assert dense.degree > 8 > 3 > sparse.degree


def test_faster_nodes_need_more() -> None:
    replicas = [advise(prospect(speed=speed)).replicas for speed in (0.0, 1.0, 5.0, 10.0, 20.0)]
    assert replicas == sorted(replicas)
    assert replicas[0] < replicas[-1]


def test_gains_diminish_and_grow_with_speed_and_size_as_in_the_paper() -> None:
    slow, usual, fast = (advise(prospect(speed=speed)).gains for speed in (1.0, 5.0, 10.0))
    large = advise(prospect(nodes=50, width_m=1697.0, height_m=1697.0)).gains
    assert slow[0] < usual[0] < fast[0]
    assert usual[0] < large[0]
    for gains in (slow, usual, fast, large):
        assert list(gains) == sorted(gains, reverse=True)


def test_where_everybody_is_in_range_of_everybody_one_is_enough() -> None:
    advice = advise(prospect(width_m=300.0, height_m=300.0))
    assert (advice.replicas, advice.hops, advice.gains) == (1, 3.0, (0.0,))


def test_where_nobody_is_in_range_of_anybody_none_helps() -> None:
    advice = advise(prospect(range_m=1.0))
    assert (advice.replicas, advice.hops) == (1, None)


def test_links_of_a_moving_network_live_as_long_as_it_takes_to_cross_a_disc() -> None:
    assert prospect(speed=5.0).link_life_s == pytest.approx(111, abs=0.5)
    assert prospect(speed=0.0).link_life_s == float("inf")


@given(
    nodes=st.integers(1, 30) | st.just(10_000),
    side=st.floats(10, 5000),
    range_m=st.floats(1, 2000),
    speed=st.floats(0, 50),
    operators=st.integers(1, 5),
)
@settings(max_examples=6, deadline=None)
def test_any_network_gets_an_answer_within_bounds(
    nodes: int, side: float, range_m: float, speed: float, operators: int
) -> None:
    asked = Prospect(nodes, side, side, range_m, speed, placing(operators), 6.0)
    assert 1 <= advise(asked).replicas <= max(1, min(MOST, (nodes - 2) // operators))


def test_auto_is_derived_for_those_that_ask_and_whatever_the_seed() -> None:
    counts = [arrange(setting(experiment(replicas="auto", seed=seed))).counts for seed in (1, 2)]
    assert counts[0] == counts[1]
    assert counts[0]["detect"] == counts[0]["recognise"] >= 2
    mixed = arrange(setting(experiment(replicas={"detect": "auto", "recognise": 5}))).counts
    assert mixed == {"camera": 1, "detect": counts[0]["detect"], "recognise": 5, "screen": 1}


def test_auto_takes_no_more_than_there_is_room_for() -> None:
    sparse = topology(area="2 km x 2 km")
    free = experiment(topology=sparse, replicas="auto")
    assert min(found.replicas for found in derived_counts(setting(free))) > 4
    crowded = experiment(topology=sparse, replicas={"detect": "auto", "recognise": 19})
    assert arrange(setting(crowded)).counts["detect"] == 4
    full = experiment(topology=topology(nodes=4), replicas="auto")
    assert set(arrange(setting(full)).counts.values()) == {1}


def test_where_there_is_no_room_for_all_the_last_of_the_largest_gives_way() -> None:
    operators = {
        "left": {"kind": "synthetic_source"},
        "right": {"kind": "synthetic_source"},
        "first": {"kind": "work", "after": "left"},
        "both": {"kind": "work", "after": ["first", "right"]},
        "screen": {"kind": "sink", "after": "both"},
    }
    field = topology(nodes=8, area="900 m x 900 m")
    described = experiment(topology=field, query={"operators": operators}, replicas="auto")
    derived = derived_counts(setting(described))
    assert [(found.operator, found.advice.replicas, found.replicas) for found in derived] == [
        ("first", 3, 3),
        ("both", 3, 2),
    ]


def test_where_replicas_share_nodes_with_source_and_sink_one_is_enough() -> None:
    near = advise(prospect(placing=placing(2, "near")))
    far = advise(prospect())
    assert near.replicas == 1
    assert near.hops is not None and far.hops is not None
    assert near.hops < far.hops
    field = experiment(replicas="auto", placement={"policy": "near"})
    assert (
        arrange(setting(field)).counts["detect"]
        == 1
        < arrange(setting(experiment(replicas="auto"))).counts["detect"]
    )


def test_where_cpus_are_too_small_to_share_replicas_help_again() -> None:
    shared, apart = (advise(prospect(placing=placing(4, "near", cpu))) for cpu in (0.25, 0.9))
    assert shared.replicas == 1 < apart.replicas
    together, alone = (advise(prospect(placing=placing(3, "colocate", cpu))) for cpu in (0.3, 0.9))
    assert together.hops_of_one is not None and alone.hops_of_one is not None
    assert together.hops_of_one < alone.hops_of_one
    assert alone == advise(prospect(placing=placing(3)))  # one on each node, as at random


def test_nodes_that_stay_are_chosen_for_their_place() -> None:
    moving, standing = (advise(prospect(placing=placing(3, "near", 0.9, stays))) for stays in (False, True))
    assert standing.hops_of_one is not None and moving.hops_of_one is not None
    assert standing.hops_of_one < moving.hops_of_one


@pytest.mark.parametrize("policy", ["near", "colocate", "spread"])
def test_sharing_nodes_needs_no_more_of_them_than_there_are(policy: str) -> None:
    few = prospect(nodes=3, placing=placing(2, policy))
    assert advise(few).replicas == 1
    assert advise(prospect(nodes=1, placing=placing(2, policy))).hops is None


def test_the_longest_way_counts_with_the_needs_of_its_operators() -> None:
    operators = {
        "camera": {"kind": "synthetic_source", "rate": "10 fps"},
        "other": {"kind": "synthetic_source", "rate": "10 fps"},
        "short": {"kind": "work", "after": "other", "cpu": "70 ms"},
        "first": {"kind": "work", "after": "camera", "cpu": "10 ms"},
        "second": {"kind": "work", "after": "first", "cpu": "20 ms"},
        "both": {"kind": "work", "after": ["short", "second"], "cpu": "5 ms"},
        "screen": {"kind": "sink", "after": "both"},
    }
    described = experiment(query={"operators": operators}, replicas="auto", placement={"policy": "near"})
    needs = {found.operator: found.prospect.placing.needs for found in derived_counts(setting(described))}
    assert needs["both"] == needs["first"] == pytest.approx((0, 0.1, 0.2, 0.1, 0))
    assert needs["short"] == pytest.approx((0, 0.7, 0.1, 0))
