"""Brokers grant room for spans of time, in whatever order messages come."""

from math import inf

import pytest

from node_agent.migration.messages import Reserve, Revoke
from node_agent.migration.plan import Expected, Plan, certain_plan, even_steps
from node_agent.migration.reservations import MOST_VERSIONS, Reservations, spans_at

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]


def test_a_plan_needs_a_broker_from_the_first_copied_byte() -> None:
    steps = even_steps(0.0, 10.0, 4)
    plan = certain_plan(steps, ["b1", "b1", "b2", "b1"], 1.0)
    arrival = Expected(("b2",), (1.0,), 5.0)
    plan = Plan(steps, (*plan.stages[:2], (arrival,), plan.stages[3]))
    assert spans_at(plan, "b1") == ((0.0, 20.0), (30.0, inf))
    assert spans_at(plan, "b2") == ((5.0, 30.0),)
    assert spans_at(plan, "b3") == ()


def test_room_is_granted_where_it_is_free() -> None:
    broker = Reservations(2.0)
    assert broker.reserve("a", Reserve(1, 1.0, ((0.0, 10.0),))).granted
    assert broker.reserve("b", Reserve(1, 1.0, ((5.0, inf),))).granted
    assert not broker.reserve("c", Reserve(1, 1.0, ((0.0, 6.0),))).granted, "full from 5 to 10"
    assert broker.reserve("c", Reserve(2, 1.0, ((0.0, 5.0), (10.0, 12.0)))).granted
    assert [broker.used(t) for t in (0.0, 5.0, 10.0, 12.0)] == [2.0, 2.0, 2.0, 1.0]


def test_two_plans_of_one_operator_share_their_room() -> None:
    broker = Reservations(1.0)
    assert broker.reserve("a", Reserve(0, 1.0, ((0.0, 10.0),))).granted
    assert broker.reserve("a", Reserve(1, 1.0, ((5.0, 20.0),))).granted
    assert not broker.reserve("b", Reserve(1, 1.0, ((12.0, 13.0),))).granted
    broker.revoke("a", Revoke(1))
    assert broker.reserve("b", Reserve(2, 1.0, ((12.0, 13.0),))).granted
    assert broker.used(5.0) == 1.0, "the first plan still has its room"


def test_what_was_given_back_before_it_came_is_refused() -> None:
    broker = Reservations(1.0)
    broker.revoke("a", Revoke(3))
    assert not broker.reserve("a", Reserve(3, 1.0, ((0.0, 1.0),))).granted
    assert broker.used(0.0) == 0.0
    assert broker.reserve("a", Reserve(4, 1.0, ((0.0, 1.0),))).granted


def test_an_operator_that_gives_nothing_back_gets_no_more() -> None:
    broker = Reservations()
    asked = [broker.reserve("a", Reserve(n, 1.0, ((n, inf),))).granted for n in range(MOST_VERSIONS + 5)]
    assert asked == [True] * MOST_VERSIONS + [False] * 5
    assert len(broker.granted["a"]) == MOST_VERSIONS
    assert broker.reserve("b", Reserve(1, 1.0, ((0.0, 1.0),))).granted, "others are not concerned"
    broker.revoke("a", Revoke(3))
    assert broker.reserve("a", Reserve(1000, 1.0, ((0.0, 1.0),))).granted
