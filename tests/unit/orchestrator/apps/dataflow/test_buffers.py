"""What must be kept for the sake of windows, and whether it can be."""

from typing import Any

import pytest

from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow, UnitRule
from orchestrator.apps.dataflow.planning.buffers import needs, shortages

SECOND = 1_000_000_000


def source(name: str = "s", rate: float = 10.0) -> OperatorSpec:
    return OperatorSpec(name, "synthetic_source", (), {"rate": rate, "payload": 1000})


def step(name: str, *after: str, takes: UnitRule | None = None, **more: Any) -> OperatorSpec:
    takes = {} if takes is None else {"takes": takes}  # type: ignore[assignment]
    return OperatorSpec(name, "work", after, **takes, **more)  # type: ignore[arg-type]


def query(*operators: OperatorSpec) -> Query:
    last = operators[-1].name
    return Query("q", (*operators, OperatorSpec("z", "sink", (last,))), "exactly_once")


def needed(*operators: OperatorSpec) -> dict[tuple[str, str], int]:
    return {edge: need.tuples for edge, need in needs(query(*operators)).items()}


def test_without_windows_a_single_tuple_is_enough() -> None:
    assert needed(source(), step("a", "s"), step("j", "a", "s", takes=SameTau())) == {}


def test_all_before_a_window_keep_what_it_needs() -> None:
    assert needed(source(), step("a", "s"), step("w", "a", takes=CountWindow(6, 3)), step("b", "w")) == {
        ("s", "a"): 6,
        ("a", "w"): 6,
    }


def test_a_window_that_skips_needs_what_it_skips() -> None:
    assert needed(source(), step("w", "s", takes=CountWindow(2, 5))) == {("s", "w"): 5}


def test_windows_of_windows_need_all_that_these_are_made_of() -> None:
    windows = step("v", "s", takes=CountWindow(4, 2)), step("w", "v", takes=CountWindow(3, 1))
    assert needed(source(), *windows) == {("s", "v"): 8, ("v", "w"): 3}


def test_a_time_window_needs_what_comes_in_its_time_and_one_more() -> None:
    window = step("w", "s", takes=TimeWindow(2 * SECOND, SECOND))
    assert needed(source(rate=10.0), window) == {("s", "w"): 21}
    of_windows = step("v", "w", takes=TimeWindow(4 * SECOND, 4 * SECOND))
    assert needed(source(rate=10.0), window, of_windows) == {("s", "w"): 61, ("w", "v"): 5}


def test_nothing_is_said_where_the_rate_is_not_known() -> None:
    unknown = OperatorSpec("s", "somebodys_source")
    assert needed(unknown, step("w", "s", takes=TimeWindow(2 * SECOND, SECOND))) == {}


@pytest.mark.parametrize(
    ("overflow", "items", "enough"),
    [
        (Overflow.BLOCK, 6, True),
        (Overflow.BLOCK, 5, False),
        (Overflow.DROP_OLDEST, 7, True),
        (Overflow.DROP_OLDEST, 6, False),
        (Overflow.SPILL, 1, True),
    ],
)
def test_what_is_enough_depends_on_what_happens_to_the_rest(
    overflow: Overflow, items: int, enough: bool
) -> None:
    window = query(source(), step("w", "s", takes=CountWindow(6, 6)))
    assert (shortages(window, DeliveryLimits(items=items, overflow=overflow)) == []) is enough
    own = query(source(), step("w", "s", takes=CountWindow(6, 6), buffers={"s": items}))
    assert (shortages(own, DeliveryLimits(overflow=overflow)) == []) is enough


def test_bytes_count_too() -> None:
    window = query(source(), step("w", "s", takes=CountWindow(6, 6)))
    assert shortages(window, DeliveryLimits(bytes=5001)) == []
    (short,) = shortages(window, DeliveryLimits(bytes=5000))
    assert short.in_bytes and short.room == 5000
    assert shortages(window, DeliveryLimits(bytes=5000, overflow=Overflow.SPILL)) == []
