"""Relays: each node two hops away is covered, by the best paths, and nobody who does not want to."""

from hypothesis import given
from hypothesis import strategies as st

from node_agent.olsr.mpr import WILL_ALWAYS, WILL_NEVER, Candidate, by_cost, by_degree
from node_agent.olsr.quality import BROKEN

_COSTS = st.one_of(st.integers(1024, 100_000), st.just(BROKEN))
_CANDIDATES = st.dictionaries(
    st.integers(1, 8),
    st.tuples(st.integers(0, 7), _COSTS, st.dictionaries(st.integers(5, 20), _COSTS, max_size=8)),
    max_size=8,
).map(lambda found: [Candidate(address, *rest) for address, rest in found.items()])
_COVERAGE = st.integers(1, 7)


@given(_CANDIDATES, _COVERAGE)
def test_by_cost_every_two_hop_node_has_its_cheapest_relays(
    candidates: list[Candidate], coverage: int
) -> None:
    chosen = by_cost(candidates, coverage)
    direct = {each.address: each.cost for each in candidates}
    for target in {target for each in candidates for target in each.reaches}:
        ways = sorted(
            each.cost + each.reaches[target]
            for each in candidates
            if target in each.reaches
            and each.willingness != WILL_NEVER
            and each.cost < BROKEN
            and each.reaches[target] < BROKEN
        )
        useful = [way for way in ways if way < direct.get(target, BROKEN)][:coverage]
        relayed = sorted(
            each.cost + each.reaches[target]
            for each in candidates
            if each.address in chosen and target in each.reaches
        )
        assert relayed[: len(useful)] == useful


@given(_CANDIDATES, _COVERAGE)
def test_by_degree_every_strict_two_hop_node_is_covered(candidates: list[Candidate], coverage: int) -> None:
    chosen = by_degree(candidates, coverage)
    direct = {each.address for each in candidates}
    for target in {target for each in candidates for target in each.reaches} - direct:
        able = [e.address for e in candidates if target in e.reaches and e.willingness != WILL_NEVER]
        assert len(chosen.intersection(able)) >= min(coverage, len(able))


@given(_CANDIDATES, _COVERAGE)
def test_willingness_is_respected(candidates: list[Candidate], coverage: int) -> None:
    for chosen in (by_cost(candidates, coverage), by_degree(candidates, coverage)):
        for each in candidates:
            if each.willingness == WILL_NEVER:
                assert each.address not in chosen
            if each.willingness == WILL_ALWAYS:
                assert each.address in chosen


def test_by_degree_needs_few() -> None:
    hub = Candidate(1, 3, 1024, {10: 1024, 11: 1024, 12: 1024})
    spokes = [Candidate(n, 3, 1024, {8 + n: 1024}) for n in (2, 3, 4)]
    assert by_degree([*spokes, hub], 1) == {1}
