"""Each policy by its own rules, on situations written by hand."""

from collections import Counter
from itertools import combinations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from node_agent.apps.dataflow.model.decision import Candidate, Rule, Situation
from node_agent.apps.dataflow.switching.policies.backpressure import backpressure
from node_agent.apps.dataflow.switching.policies.power_of_two import power_of_two
from node_agent.apps.dataflow.switching.policies.round_robin import round_robin
from node_agent.apps.dataflow.switching.policies.uniform import uniform
from node_agent.apps.dataflow.switching.policies.weighted import weighted
from node_agent.apps.dataflow.switching.policy import POLICIES, choose
from node_agent.apps.dataflow.switching.route import Choice, Hop

S = 1_000_000_000


def situation(
    *paths: float | None,
    queues: tuple[int | None, ...] = (),
    links: tuple[float, ...] = (),
    apart: bool = False,
    **more: object,
) -> Situation:
    """Replicas d/0, d/1, … with these costs to the sinks; None: no path."""
    ids = [f"d/{i}" for i in range(len(paths))]
    candidates = tuple(
        Candidate(
            to,
            link=(links[i] if links else path),
            path=path,
            queue=queues[i] if queues else None,
            apart=tuple(o for o in ids if o != to) if apart else (),
        )
        for i, (to, path) in enumerate(zip(ids, paths, strict=True))
    )
    return replace(Situation(candidates, rule=Rule(seed=7)), **more)


def shares(choice: Choice) -> dict[str, float]:
    assert choice.hop is not None
    return dict(choice.hop.shares) or {choice.hop.to: 1.0}


def picks(hop: Hop | None, count: int) -> Counter[str]:
    assert hop is not None
    return Counter(hop.pick(tau) for tau in range(1, count + 1))


def test_round_robin_gives_each_that_can_be_reached_its_turn() -> None:
    hop = round_robin(situation(4.0, None, 2.0, 9.0)).hop
    assert hop is not None
    assert [hop.pick(tau) for tau in range(6)] == ["d/0", "d/2", "d/3", "d/0", "d/2", "d/3"]
    assert round_robin(situation(None, 3.0)).hop == Hop("d/1", 3.0)


def test_draws_follow_the_shares_and_repeat_with_the_seed() -> None:
    hop = weighted(situation(1.0, 2.0)).hop
    assert hop is not None
    counted = picks(hop, 10_000)
    assert counted["d/0"] / 10_000 == pytest.approx(0.8, abs=0.02)
    again = weighted(situation(1.0, 2.0)).hop
    assert again is not None
    assert [hop.pick(tau) for tau in range(100)] == [again.pick(tau) for tau in range(100)]
    other = weighted(situation(1.0, 2.0, rule=Rule(seed=8))).hop
    assert other is not None
    assert [hop.pick(tau) for tau in range(100)] != [other.pick(tau) for tau in range(100)]
    # Neighbouring tuples are drawn independently: pairs of equal picks are as frequent as chance has it.
    equal = sum(hop.pick(tau) == hop.pick(tau + 1) for tau in range(10_000)) / 10_000
    assert equal == pytest.approx(0.8**2 + 0.2**2, abs=0.02)


def test_weighted_by_the_inverse_of_the_cost() -> None:
    assert shares(weighted(situation(1.0, 2.0, None))) == pytest.approx({"d/0": 0.8, "d/1": 0.2})
    flat = Rule(exponent=0.0)
    assert shares(weighted(situation(1.0, 9.0, rule=flat))) == {"d/0": 0.5, "d/1": 0.5}
    assert weighted(situation(5.0, 0.0)).hop == Hop("d/1", 0.0)  # what is free leaves nothing to the rest


def test_random_has_equal_chances() -> None:
    assert shares(uniform(situation(1.0, 50.0))) == {"d/0": 0.5, "d/1": 0.5}


@given(st.lists(st.none() | st.integers(0, 3), min_size=2, max_size=6))
def test_power_of_two_against_all_pairs(queues: list[int | None]) -> None:
    longest = max((q for q in queues if q is not None), default=0)
    lengths = [longest if q is None else q for q in queues]
    won: Counter[str] = Counter()
    pairs = list(combinations(range(len(queues)), 2))
    for one, other in pairs:
        for i, j in ((one, other), (other, one)):
            won[f"d/{i}"] += 2 if lengths[i] < lengths[j] else int(lengths[i] == lengths[j])
    found = shares(power_of_two(situation(*[1.0] * len(queues), queues=tuple(queues))))
    expected = {to: wins / (2 * len(pairs)) for to, wins in won.items() if wins}
    assert found == pytest.approx(expected)


def test_back_pressure_weighs_queues_by_links() -> None:
    assert backpressure(situation(9.0, 9.0, links=(2.0, 1.0), queues=(0, 0), queued=3)).hop == Hop("d/1", 9.0)
    # (3 + 1 − 0) / 2² = 1 against (3 + 1 − 3.2) / 1²
    crowded = situation(9.0, 9.0, links=(2.0, 1.0), queues=(0, 4), queued=3)
    assert backpressure(crowded).hop == Hop("d/0", 9.0)
    assert backpressure(situation(9.0, 9.0, queues=(4, 7), queued=3)).hop is None  # both are fuller than here
    assert backpressure(situation(9.0, 9.0, links=(0.0, 1.0), queues=(4, 0), queued=3)).hop == Hop("d/1", 9.0)
    assert backpressure(situation(9.0, 9.0, links=(0.0, 1.0), queues=(3, 0), queued=3)).hop == Hop("d/0", 9.0)


def test_back_pressure_passes_over_who_does_not_report_unless_nobody_does() -> None:
    assert backpressure(situation(1.0, 5.0, queues=(None, 0))).hop == Hop("d/1", 5.0)
    assert backpressure(situation(1.0, 5.0)).hop == Hop("d/0", 1.0)


COSTS = st.none() | st.floats(0, 1e6)


@given(
    st.sampled_from(list(POLICIES)),
    st.lists(COSTS, min_size=1, max_size=5),
    st.integers(0, 4),
    st.data(),
)
def test_every_policy_is_a_function_that_picks_what_can_be_reached(
    policy: str, costs: list[float | None], used: int, data: st.DataObject
) -> None:
    queues = tuple(data.draw(st.none() | st.integers(0, 9)) for _ in costs)
    found = situation(*costs, queues=queues, rule=Rule(policy), current=f"d/{used}", queued=3)
    choice = choose(found)
    assert choice == choose(found)
    if choice.hop is not None and policy != "static":
        assert sum(share for _, share in choice.hop.shares) in (0, pytest.approx(1.0))
        for tau in range(20):
            assert found.costs().get(choice.hop.pick(tau), inf) < inf


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "static"])
def test_where_tuples_must_meet_every_policy_but_static_is_algorithm_1(policy: str) -> None:
    found = situation(3.0, 2.0, 2.5, queues=(0, 9, 9), apart=True, whole=True, rule=Rule(policy))
    assert choose(found).hop == Hop("d/1", 2.0)
    assert choose(replace(found, current="d/2")).hop == Hop("d/1", 2.0)
