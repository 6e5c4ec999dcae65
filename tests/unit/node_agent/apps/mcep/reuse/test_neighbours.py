"""Who may process for whom (T-35), and which manager is responsible."""

import random

import pytest

from node_agent.apps.mcep.geometry import Box, Point
from node_agent.apps.mcep.model import McepError
from node_agent.apps.mcep.reuse.groups import Assigned, Groups
from node_agent.apps.mcep.reuse.neighbours import (
    Graph,
    Neighbourhood,
    Reach,
    Shareable,
    reference_of,
    summed_overlap,
)

pytestmark = pytest.mark.unit


def graph(name: str, x: float, edge: float = 1.0, reach: Reach | None = None) -> Graph:
    """Two operators; the interest is a square around the focal object."""
    operators = tuple(Shareable(f"{name}/{type}", type, reach or Reach()) for type in ("root", "leaf"))
    half = edge / 2
    return Graph(name, Point(x, 0), Box(x - half, -half, x + half, half), operators)


def town(*graphs: Graph) -> Neighbourhood:
    found = Neighbourhood()
    for each in graphs:
        found.enter(each)
    return found


def test_t35_the_graph_with_the_largest_summed_overlap_is_the_reference() -> None:
    q1, q2, q3 = graph("Q1", -0.47), graph("Q2", 0.43), graph("Q3", 0.0)
    interests = [q1.interest, q2.interest]
    assert summed_overlap(q3.interest, []) == 1.0
    assert summed_overlap(q3.interest, interests) == pytest.approx(1 + 0.53 + 0.57)
    assert all(reference_of([q1, q2, q3], each) is q3 for each in (q1, q2, q3))
    here = town(q1, q2, q3)
    for name in here.graphs:
        here.select(name)
    assert set(here.references.values()) == {"Q3"}
    assert here.neighbours["Q3/leaf"] == {"Q1/leaf", "Q2/leaf"}
    priorities = here.priorities()
    assert priorities["Q3/root"] == pytest.approx(2.1) == max(priorities.values())


def test_a_graph_takes_itself_if_others_are_no_better() -> None:
    q1, q2 = graph("Q1", 0.0), graph("Q2", 0.5)
    assert reference_of([q1, q2], q2) is q2 and reference_of([q1, q2], q1) is q1


def test_neighbours_are_few_near_and_of_the_same_type() -> None:
    near = Reach(neighbours=1, own=3.0, reference=1.5)
    here = town(*(graph(f"Q{n}", float(n), 2.0, near) for n in range(7)))
    for name in here.graphs:
        here.select(name)
    for name, others in here.neighbours.items():
        mine, kind = name.split("/")
        for other in others:
            its, same = other.split("/")
            assert same == kind and its != mine
            assert abs(int(its[1:]) - int(mine[1:])) <= 3
            reference = here.references[its]
            assert abs(int(mine[1:]) - int(reference[1:])) <= 1.5, "who processes is near the reference"
    served = [each for others in here.neighbours.values() for each in others]
    assert len(served) == len(set(served)), "at most one processes for each"


def test_who_accepts_more_disparity_does_not_process_for_who_accepts_less() -> None:
    here = town(graph("Q1", 0, 2.0, Reach(reference=1.0)), graph("Q2", 0.5, 2.0, Reach(reference=5.0)))
    for name in here.graphs:
        here.select(name)
    assert here.neighbours["Q1/leaf"] == {"Q2/leaf"} and here.neighbours["Q2/leaf"] == set()


def test_selecting_again_forgets_former_neighbours() -> None:
    here = town(*(graph(name, x, 2.0, Reach(own=2.0)) for name, x in (("Q1", 0.0), ("Q2", 1.0))))
    here.select("Q1")
    assert here.neighbours["Q2/root"] == {"Q1/root"}
    here.move("Q1", Point(50, 0), Box(49, -1, 51, 1))
    here.select("Q1")
    assert here.neighbours["Q2/root"] == set()


def test_a_graph_that_leaves_is_nobodys_neighbour_or_reference() -> None:
    here = town(graph("Q1", -0.47), graph("Q2", 0.43), graph("Q3", 0.0))
    for name in here.graphs:
        here.select(name)
    here.leave("Q3")
    assert here.references == {"Q1": "Q1", "Q2": "Q2"}
    assert set(here.neighbours) == {"Q1/root", "Q1/leaf", "Q2/root", "Q2/leaf"}
    assert not any(each.startswith("Q3") for others in here.neighbours.values() for each in others)
    with pytest.raises(McepError, match="needs a name and operators that no other graph has"):
        here.enter(graph("Q1", 0.0))


def test_managers_have_a_bounded_number_of_operators_that_are_near_each_other() -> None:
    rng = random.Random(3)
    groups = Groups(most=4)
    places: dict[str, Point] = {}
    for step in range(600):
        name = f"q{rng.randrange(40)}"
        known = dict(groups.manager_of)
        if name in places and rng.random() < 0.4:
            changes = groups.leave(name)
            del places[name]
        else:
            places[name] = Point(rng.uniform(0, 1000), rng.uniform(0, 1000))
            changes = groups.put(name, "mean", places[name])
        for each in changes:
            assert known.get(each.operator) == each.before != each.after
            if each.after is None:
                del known[each.operator]
            else:
                known[each.operator] = each.after
        assert known == groups.manager_of and set(known) == set(places), step
        members = [list(known.values()).count(each) for each in groups.managers]
        assert all(1 <= each <= 4 for each in members)


def test_a_manager_is_halved_evenly_and_united_again() -> None:
    groups = Groups(most=4)
    for n in range(5):
        groups.put(f"q{n}", "mean", Point(100.0 * n, 0))
    sides = [groups.manager_of[f"q{n}"] for n in range(5)]
    assert sides == ["mean/0", "mean/0", "mean/1", "mean/1", "mean/1"]
    assert groups.put("q0", "mean", Point(400, 1)) == [Assigned("q0", "mean/0", "mean/1")]
    groups.leave("q4")
    groups.leave("q3")
    assert groups.managers == {"mean/0", "mean/1"}, "three are more than half of the bound"
    assert groups.leave("q0") == [
        Assigned("q0", "mean/1", None), Assigned("q1", "mean/0", "mean/"), Assigned("q2", "mean/1", "mean/")
    ]  # fmt: skip


def test_types_have_managers_of_their_own_and_one_place_cannot_be_halved() -> None:
    groups = Groups(most=1)
    groups.put("a", "mean", Point(0, 0))
    groups.put("b", "sum", Point(0, 0))
    assert groups.managers == {"mean/", "sum/"}
    groups.put("c", "mean", Point(0, 0))
    assert groups.manager_of["a"] == groups.manager_of["c"]
    with pytest.raises(McepError, match="cannot become sum"):
        groups.put("a", "sum", Point(0, 0))
    with pytest.raises(McepError, match="at least one operator"):
        Groups(0)
