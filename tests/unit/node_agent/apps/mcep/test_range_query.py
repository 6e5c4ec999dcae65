"""The stream of a source in a moving region: history, live events, holds, and what the storage must keep."""

import math

import pytest

from node_agent.apps.mcep.channel import Heartbeat, Marker, Message
from node_agent.apps.mcep.geometry import Box, Region
from node_agent.apps.mcep.graph import Source
from node_agent.apps.mcep.model import Event, McepError
from node_agent.apps.mcep.range_query import RangeQuery
from node_agent.apps.mcep.storage import Storage
from tests.unit.node_agent.apps.mcep.driving import seen

pytestmark = pytest.mark.unit

WEST, EAST = Box(0, -1, 100, 1), Box(101, -1, 200, 1)


def marker(epoch: int, t: float, region: Region | None, *, touched: bool = True) -> Marker:
    return Marker(t, epoch, region, {"s": t - 2}, frozenset({"s"} if touched else ()))


def with_events() -> RangeQuery:
    storage = Storage(100.0)
    for n in range(20):
        storage.add(seen(f"w{n}", "s", float(n), 50.0))
        storage.add(seen(f"e{n}", "s", n + 0.5, 150.0))
    return RangeQuery(Source("s", "s"), storage, look_back=2.0)


def shown(messages: list[Message]) -> list[str]:
    return [
        each.source if isinstance(each, Event) else f"<{each.t:g}" if isinstance(each, Heartbeat) else "M"
        for each in messages
    ]


def test_history_then_live_events_without_gap() -> None:
    machine = with_events()
    machine.progress(5.0)
    assert shown(machine.switch(marker(1, 4.0, WEST))) == ["M", "w2", "w3", "w4", "<5"]
    assert shown(machine.progress(6.0)) == ["w5", "<6"]


def test_the_old_epoch_is_completed_before_the_marker() -> None:
    machine = with_events()
    machine.switch(marker(1, 0.0, WEST))
    machine.progress(4.0)
    assert shown(machine.switch(marker(2, 6.0, EAST))) == []
    assert shown(machine.progress(7.0)) == ["w4", "w5", "<6", "M", "e4", "e5", "e6", "<7"]


def test_while_it_is_held_nothing_is_sent() -> None:
    machine = with_events()
    machine.switch(marker(1, 0.0, WEST))
    machine.progress(4.0)
    assert machine.hold() == 4.0
    assert machine.progress(9.0) == []
    with pytest.raises(McepError, match="is before what was sent; hold the range query first"):
        machine.switch(marker(2, 3.0, EAST))
    assert shown(machine.switch(marker(2, 4.0, EAST)))[:3] == ["M", "e2", "e3"]


def test_an_untouched_source_moves_without_history() -> None:
    machine = with_events()
    machine.switch(marker(1, 0.0, WEST))
    machine.progress(4.0)
    machine.switch(marker(2, 4.0, EAST, touched=False))
    assert shown(machine.progress(6.0)) == ["e4", "e5", "<6"]


def test_best_effort_does_not_complete_the_old_epoch() -> None:
    machine = RangeQuery(Source("s", "s"), with_events()._storage, 2.0, strict=False)
    machine.switch(marker(1, 0.0, WEST))
    machine.progress(4.0)
    assert shown(machine.switch(marker(2, 6.0, EAST))) == ["M"]


def test_the_storage_keeps_what_a_late_query_needs() -> None:
    machine = with_events()
    assert machine.needed_since() == math.inf
    machine.progress(3.0)
    machine.hold()
    assert machine.needed_since() == 1.0  # it may begin now
    machine.switch(marker(1, 3.0, WEST))
    machine.progress(8.0)
    assert machine.needed_since() == 6.0
    machine.hold()
    machine.progress(20.0)
    assert machine.needed_since() == 6.0
    machine.switch(marker(2, 8.0, None))
    assert machine.needed_since() == math.inf
