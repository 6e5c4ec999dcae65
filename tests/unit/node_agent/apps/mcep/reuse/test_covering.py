"""Which selections are processed and who gets their results (T-31), and batches."""

import math
import random

import pytest

from node_agent.apps.mcep.model import McepError, Quality
from node_agent.apps.mcep.reuse.batches import Batch, Counted, Timed, Timeline, batch, counterparts, split
from node_agent.apps.mcep.reuse.covering import HEURISTICS, Group, Neighbours, maximum_similarity
from node_agent.apps.mcep.reuse.incomplete import optimistic, pattern
from node_agent.apps.mcep.reuse.judging import Judge, Rules, Times
from node_agent.apps.mcep.reuse.neighbours import all_of_a_type
from node_agent.apps.mcep.reuse.similarity import Candidate, by_atoms, by_interest, by_recent
from tests.unit.node_agent.apps.mcep.reuse.selections import (
    EVERYWHERE,
    MUTUAL,
    S1,
    S2,
    alone,
    atoms,
    selection,
    table,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("heuristic", ["similarity", "neighbour"])
@pytest.mark.parametrize("times", ["any", "overlapping"])
@pytest.mark.parametrize(
    ("threshold", "strict", "processed"), [(0.6, True, 2), (0.7, True, 3), (1.0, True, 4), (1.0, False, 3)]
)
def test_t31_how_many_are_processed(
    heuristic: str, times: Times, threshold: float, strict: bool, processed: int
) -> None:
    judge = Judge(Rules(Quality(threshold, threshold), strict=strict, times=times))
    groups = HEURISTICS[heuristic](table(), MUTUAL, judge, {})
    assert len(groups) == processed
    check(table(), groups)


def test_t31_maximum_similarity_takes_the_one_that_stands_for_most() -> None:
    first, second = maximum_similarity(table(), MUTUAL, Judge(Rules(Quality(0.6, 0.6))), {})
    assert keys(first) == ("Q3", 1, [("Q2", 1), ("Q2", 2), ("Q3", 1)]), "an older one covers a later one"
    assert keys(second) == ("Q3", 2, [("Q3", 2)])


def test_the_threshold_is_that_of_the_covered_query() -> None:
    rules = Rules(Quality(0.6, 0.6), {"Q2": Quality(0.9, 0.9)})
    pair = [alone("Q3", 1, {1, 2, 3, 4}), alone("Q2", 1, {1, 2, 3, 5})]
    (group,) = HEURISTICS["similarity"](pair, MUTUAL, Judge(rules), {})
    assert group.by.operator == "Q2", "the third query takes results of the second, not the other way"


def test_who_processes_first_decides_maximum_neighbour() -> None:
    for priority, first in (({"Q2": 2.1, "Q3": 1.9}, "Q2"), ({"Q2": 1.9, "Q3": 2.1}, "Q3")):
        groups = HEURISTICS["neighbour"](table(), MUTUAL, Judge(Rules(Quality(0.6, 0.6))), priority)
        assert {each.by.operator for each in groups} == {first}


def test_neighbours_need_not_be_mutual() -> None:
    for heuristic in ("similarity", "neighbour"):
        judge = Judge(Rules(Quality(0.6, 0.6)))
        groups = HEURISTICS[heuristic](table(), {"Q2": {"Q3"}}, judge, {"Q2": 1.0})
        assert {each.by.operator for each in groups} == {"Q2"}
        assert len(HEURISTICS[heuristic](table(), {}, judge, {})) == 4


def test_same_end_forbids_older_ones_to_stand_for_later_ones() -> None:
    rules = Rules(Quality(0.6, 0.6), times="same_end")
    for heuristic in ("similarity", "neighbour"):
        groups = HEURISTICS[heuristic](table(), MUTUAL, Judge(rules), {})
        assert len(groups) == 3 and all(
            each.end == group.by.end for group in groups for each in group.covered
        )


def test_random_selections_are_all_covered_once_by_one_that_suffices() -> None:
    rng = random.Random(5)
    saved = {"similarity": 0, "neighbour": 0}
    for _ in range(150):
        batches, neighbours = scene(rng)
        threshold = rng.choice([0.0, 0.3, 0.5, 0.7, 1.0])
        rules = Rules(Quality(threshold, threshold))
        plain: dict[str, tuple[int, int]] = {}
        timed: dict[str, tuple[int, int]] = {}
        ways: list[tuple[Times, dict[str, tuple[int, int]]]] = [("any", plain), ("overlapping", timed)]
        for heuristic in saved:
            for times, into in ways:
                judge = Judge(Rules(rules.least, times=times))
                groups = HEURISTICS[heuristic](batches, neighbours, judge, {})
                check(batches, groups, neighbours, rules)
                into[heuristic] = (len(groups), judge.comparisons)
            saved[heuristic] += len(batches) - plain[heuristic][0]
            assert timed[heuristic][1] <= plain[heuristic][1] or heuristic == "neighbour"
        assert timed["similarity"][0] == plain["similarity"][0], "events at other times are never shared"
        assert plain["neighbour"][1] <= plain["similarity"][1]
    assert 0 < saved["neighbour"] <= saved["similarity"]


def scene(rng: random.Random) -> tuple[list[Batch], Neighbours]:
    names = [f"o{n}" for n in range(rng.randint(1, 6))]
    batches = []
    for name in names:
        stream = sorted(rng.sample(range(30), rng.randint(3, 25)))
        for number, first in enumerate(range(0, len(stream) - 2, rng.randint(1, 3))):
            batches.append(alone(name, number, stream[first : first + 3]))
    neighbours = {name: {each for each in names if rng.random() < 0.8} for name in names}
    return batches, neighbours


def check(
    batches: list[Batch],
    groups: list[Group],
    neighbours: Neighbours = MUTUAL,
    rules: Rules | None = None,
) -> None:
    """Each is in one group, the processed one in its own, and only neighbours that suffice are covered."""
    covered = sorted((each.operator, each.selections[0].number) for g in groups for each in g.covered)
    assert covered == sorted((each.operator, each.selections[0].number) for each in batches)
    for group in groups:
        assert group.by in group.covered
        for each in group.covered:
            if each is not group.by and rules is not None:
                assert each.operator in neighbours[group.by.operator]
                (used,), (wanted,) = group.by.selections, each.selections
                found = by_atoms(wanted, used).quality
                least = rules.least
                assert min(found.precision - least.precision, found.recall - least.recall) > 0 or (
                    wanted.wanted == used.used
                )


def keys(group: Group) -> tuple[str, int, list[tuple[str, int]]]:
    return (
        group.by.operator,
        group.by.selections[0].number,
        sorted((each.operator, each.selections[0].number) for each in group.covered),
    )


def test_batches_by_count_and_by_time() -> None:
    many = [selection("a", n, {n, n + 2}) for n in range(7)]
    assert [len(each.selections) for each in split(many, Counted(3))] == [3, 3, 1]
    assert [len(each.selections) for each in split(many, Counted(math.inf))] == [7]
    spans = split(many, Timed(4.0))
    assert [[each.number for each in one.selections] for one in spans] == [[0, 1], [2, 3, 4, 5], [6]]
    assert (spans[1].start, spans[1].end) == (2.0, 7.0) and split([], Counted(math.inf)) == []
    for wrong in (0, -1, math.nan):
        with pytest.raises(McepError, match="at least one selection"):
            Counted(wrong)
    with pytest.raises(McepError, match="a time above 0 s"):
        Timed(0.0)


def test_counterparts_end_nearest() -> None:
    used = batch([selection("a", n, {n}) for n in (0, 4, 8)])
    wanted = batch([selection("b", n, {n}) for n in (1, 2, 3, 7, 20)])
    assert [(u.number, w.number) for u, w in counterparts(used, wanted)] == [
        (0, 1), (0, 2), (4, 3), (8, 7), (8, 20)
    ]  # fmt: skip


def test_a_batch_is_judged_by_its_average_or_by_every_selection() -> None:
    used = batch([selection("a", 0, {0, 1, 2, 3}), selection("a", 1, {4, 5, 6, 7})])
    wanted = batch([selection("b", 0, {0, 1, 2, 3}), selection("b", 1, {4, 5, 6, 8})])
    least = Quality(0.8, 0.8)
    assert Judge(Rules(least)).covers(used, wanted)
    assert not Judge(Rules(least, every=True)).covers(used, wanted)
    assert Judge(Rules(Quality(0.7, 0.7), every=True)).covers(used, wanted)


def test_estimates_of_operators_need_one_comparison_for_a_batch() -> None:
    def many(operator: str) -> Batch:
        return batch(
            [
                Candidate(operator, n, n, n, atoms({n}), atoms({n}), 0, EVERYWHERE, recent=atoms({1, 2}))
                for n in range(5)
            ]
        )

    for estimate, expected in ((by_interest, 1), (by_recent, 1), (by_atoms, 5)):
        judge = Judge(Rules(estimate=estimate))
        assert judge.covers(many("a"), many("b")) and judge.comparisons == expected


def test_incomplete_selections_are_judged_by_what_is_expected() -> None:
    def two(missing: int, recent: set[int]) -> tuple[Batch, Batch]:
        used = Candidate("a", 0, 0, 3, atoms(S2), atoms(S2), recent=atoms({1, 2, 3, 4}))
        wanted = Candidate("b", 0, 0, 2, atoms({1, 2}), atoms({1, 2}), missing, recent=atoms(recent))
        return batch([used]), batch([wanted])

    least = Quality(0.8, 0.8)
    assert not Judge(Rules(least)).covers(*two(1, {1, 2, 3}))
    assert Judge(Rules(least, share=optimistic)).covers(*two(1, set()))
    assert Judge(Rules(least, share=pattern)).covers(*two(1, {1, 2, 3}))
    assert not Judge(Rules(least, share=pattern)).covers(*two(1, {1, 7, 8}))
    assert Judge(Rules(least, sure=0.9)).covers(*two(1, {1, 2, 3}))
    assert not Judge(Rules(least, sure=0.9)).covers(*two(1, {1, 2, 8}))
    assert Judge(Rules(least, sure=0.6)).covers(*two(1, {1, 2, 8}))


def test_rules_without_meaning_are_refused() -> None:
    with pytest.raises(McepError, match="between 0 and 1"):
        Rules(Quality(1.1, 0.5))
    with pytest.raises(McepError, match="between 0 and 1"):
        Rules(by_operator={"a": Quality(0.5, -1.0)})
    with pytest.raises(McepError, match="how sure"):
        Rules(sure=1.0)


def test_a_timeline_gives_the_nearest_first_and_only_what_overlaps() -> None:
    line = Timeline(alone("a", n, {n, n + 2}) for n in range(0, 20, 2))
    line.add(alone("a", 99, {9, 11}))
    near = [each.selections[0].number for each in line.near(alone("b", 0, {7, 10}))]
    assert near == [8, 99, 6, 10]
    assert list(Timeline([]).near(alone("b", 0, S1))) == []


def test_operators_of_a_type_are_neighbours() -> None:
    assert all_of_a_type({"a": "x", "b": "x", "c": "y"}) == {"a": {"b"}, "b": {"a"}, "c": set()}
