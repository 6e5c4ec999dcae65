"""Contacts as values: ticks, periods, schedules, and what a plan answers."""

import random
from itertools import pairwise
from statistics import fmean

import msgspec
import pytest

from orchestrator.contacts import schedules
from orchestrator.contacts.chart import axis, chart_rows, to_csv, to_svg
from orchestrator.contacts.plan import FOREVER, Contact, ContactLink, ContactPlan, measured, on_ticks
from orchestrator.contacts.traces import read_contacts


def link(*contacts: tuple[float, float], a: str = "a", b: str = "b", one_way: bool = False) -> ContactLink:
    return ContactLink(a, b, tuple(Contact(*each) for each in contacts), 1.0, 1.0, 1e6, one_way=one_way)


@pytest.mark.parametrize(
    ("contacts", "expected"),
    [
        ([(1.04, 2.06)], [(1.0, 2.1)]),
        ([(5.0, 6.0), (1.0, 2.0)], [(1.0, 2.0), (5.0, 6.0)]),
        ([(1.0, 2.0), (2.0, 3.0)], [(1.0, 3.0)]),
        ([(1.0, 5.0), (2.0, 3.0)], [(1.0, 5.0)]),
        ([(7.0, 7.0)], [(7.0, 7.1)]),
        ([(0.0, 0.0)], [(0.0, 0.1)]),
        ([(-3.0, 2.0), (-9.0, -4.0), (-1.0, 0.0)], [(0.0, 2.0)]),
    ],
)
def test_contacts_are_rounded_to_ticks_and_joined(
    contacts: list[tuple[float, float]], expected: list[tuple[float, float]]
) -> None:
    assert list(on_ticks(contacts)) == expected


def test_a_link_says_when_it_is_up() -> None:
    tested = link((2.0, 4.0), (10.0, 11.0))
    assert [tested.is_up(t) for t in (1.9, 2.0, 3.9, 4.0, 10.5, 11.0)] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert [tested.next_up(t) for t in (0.0, 2.5, 4.0, 12.0)] == [2.0, 2.5, 10.0, None]
    assert tested.current(10.2) == Contact(10.0, 11.0)
    assert (tested.up_time(3.0), tested.up_time(20.0)) == (1.0, 3.0)
    assert (tested.longest_down(12.0), tested.longest_down(30.0), tested.longest_down(3.0)) == (
        6.0,
        19.0,
        2.0,
    )


@pytest.mark.parametrize(
    "contacts", [[(2.0, 1.0)], [(1.0, 1.0)], [(1.0, 3.0), (2.0, 4.0)], [(1.0, 2.0), (2.0, 3.0)]]
)
def test_a_link_refuses_times_that_overlap_or_run_backwards(contacts: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="a – b"):
        link(*contacts)


def test_a_plan_knows_its_links_by_direction_and_when_they_change() -> None:
    plan = ContactPlan(("a", "b", "c"), (link((1.0, 2.0)), link((1.5, 3.0), b="c", one_way=True)), 10.0)
    assert plan.link("b", "a") is plan.links[0]
    assert plan.link("a", "c") is plan.links[1] and plan.link("c", "a") is None
    assert plan.change_times == [1.0, 1.5, 2.0, 3.0]
    assert [plan.step(t) for t in (0.0, 1.0, 1.4, 1.5, 9.0)] == [0, 1, 1, 2, 4]
    assert [[each.b for each in plan.up_at(t)] for t in (0.5, 1.7, 2.0)] == [[], ["b", "c"], ["c"]]
    assert msgspec.json.decode(msgspec.json.encode(plan), type=ContactPlan) == plan


def test_two_links_of_one_direction_are_refused() -> None:
    with pytest.raises(ValueError, match="two links"):
        ContactPlan(("a", "b"), (link((1.0, 2.0)), link((3.0, 4.0), a="b", b="a", one_way=True)), 10.0)


def test_periods_are_means_of_contacts_and_gaps() -> None:
    assert measured((Contact(10.0, 30.0), Contact(100.0, 110.0)), 150.0) == (40.0, 15.0)
    assert measured((), 100.0) == (100.0, 0.0)


def test_periodic_contacts_repeat_for_ever_both_ways() -> None:
    def found(up: float, down: float, phase: float, until: float) -> list[tuple[float, float]]:
        return list(on_ticks(schedules.periodic(up, down, phase, until)))

    assert found(60.0, 300.0, 20.0, 500.0) == [(20.0, 80.0), (380.0, 440.0)]
    assert found(60.0, 300.0, 350.0, 500.0) == [(0.0, 50.0), (350.0, 410.0)]
    assert found(60.0, 300.0, 300.0, 400.0) == [(300.0, 360.0)]
    assert found(60.0, 300.0, 0.0, 360.0) == [(0.0, 60.0)]


def test_random_contacts_have_the_means_that_were_asked_for() -> None:
    contacts = list(schedules.random(60.0, 300.0, random.Random(1), 1e6))
    assert fmean(down - up for up, down in contacts) == pytest.approx(60.0, rel=0.05)
    assert fmean(later[0] - earlier[1] for earlier, later in pairwise(contacts)) == pytest.approx(
        300.0, rel=0.05
    )
    shorter = list(schedules.random(60.0, 300.0, random.Random(1), 1e4))
    assert shorter == contacts[: len(shorter)]
    up_at_0 = [next(schedules.random(60.0, 300.0, random.Random(seed), 1e9))[0] == 0 for seed in range(2000)]
    assert fmean(up_at_0) == pytest.approx(1 / 6, abs=0.03)


def test_the_chart_shows_who_meets_whom_when() -> None:
    plan = ContactPlan(
        ("a", "b", "c"), (link((0.0, 5.0), (7.6, 8.0)), link((0.0, FOREVER), b="c", one_way=True)), 10.0
    )
    first, second = chart_rows(plan, 10)
    assert (first.link, first.drawn) == ("a – b", "█████··▌··")
    assert first.facts == "2 contacts, up 54%, EAP 1 s, EDP 1 s, longest gap 2.6 s"
    assert second == ("a → c", "█" * 10, "always up")
    assert axis(10.0, 20) == "|0 s|2 s|4 s|6 s|8 s"
    drawing = to_svg(plan, "x < y")
    assert drawing.count("<rect") == 3 and "x &lt; y" in drawing


def test_a_plan_written_as_a_trace_reads_back() -> None:
    plan = ContactPlan(("a", "b"), (link((0.5, 5.0), (7.6, 8.0)),), 10.0)
    trace = read_contacts(to_csv(plan), "csv")
    assert not trace.problems
    assert [meeting[:4] for meeting in trace.meetings] == [("a", "b", 0.5, 5.0), ("a", "b", 7.6, 8.0)]
