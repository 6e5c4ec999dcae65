"""An operator that takes its time, as the machines of a migration see it."""

from node_agent.apps.dataflow.moving.steps import Result, Steps
from node_agent.migration.live.values import Item, Savepoint


def test_a_result_is_taken_once_it_is_there() -> None:
    woken: list[int] = []
    accepted: list[int] = []
    steps = Steps(Savepoint((("s", 4),), 4), lambda: woken.append(1))
    item = Item(5, b"in")
    assert steps.push("s", item) is None and steps.push("s", item) is None
    assert (steps.wanted, len(woken)) == (item, 1)
    steps.result = Result(5, b"out", lambda: accepted.append(5))
    assert steps.boundary() == Savepoint((("s", 4),), 4)
    assert steps.push("s", item) == (b"out",) and accepted == [5]
    assert steps.boundary() == Savepoint((("s", 5),), 5)
    assert steps.push("s", Item(6, b"next")) is None and len(woken) == 2


def test_a_result_for_another_tuple_does_not_count() -> None:
    steps = Steps(Savepoint((("s", 0),)), lambda: None)
    steps.result = Result(7, b"late", lambda: None)
    assert steps.push("s", Item(1, b"in")) is None
