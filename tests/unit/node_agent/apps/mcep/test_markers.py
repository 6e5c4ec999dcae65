"""Markers and epochs: the gate, strict and best effort, and the order of delivery (T-02, T-03, T-09)."""

import pytest

from node_agent.apps.mcep.channel import Broken, ChannelId, Heartbeat, Inlet, Marker
from node_agent.apps.mcep.delivery import Delivery
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.model import Event, Order, Policy
from node_agent.apps.mcep.windows import Count, Operator, RestrictionWindow, Window
from tests.unit.node_agent.apps.mcep.driving import EVERYWHERE, Recorded, one_operator, seen

pytestmark = pytest.mark.unit

ALL = frozenset({"A", "B"})
A, B = ChannelId("A"), ChannelId("B")


def marker(epoch: int, t: float) -> Marker:
    return Marker(t, epoch, EVERYWHERE, {"A": t - 1, "B": t - 1, "o": t}, ALL)


def two_inputs(*, strict: bool) -> tuple[Execution, Recorded]:
    correlate = Recorded()
    windows = (Window("a", "A", Count(1)), Window("b", "B", Count(1)))
    graph = one_operator(Operator("o", windows, RestrictionWindow(1.0), correlate))
    return Execution(graph, "o", {A: Inlet({"A"}), B: Inlet({"B"})}, strict=strict), correlate


def test_t09_strict_waits_for_all_markers() -> None:
    machine, correlate = two_inputs(strict=True)
    for channel in (A, B):
        machine.receive(channel, marker(1, 0.0))
    machine.receive(A, seen("a1", "A", 1.0)._replace(epoch=1))
    assert not any(isinstance(each, Marker) for _, each in machine.receive(A, marker(2, 5.0)))
    machine.receive(A, seen("a9", "A", 4.5)._replace(epoch=2))  # behind the marker: waits
    machine.receive(B, seen("b1", "B", 3.0)._replace(epoch=1))
    assert {"b1"} in correlate.seen and not any("a9" in each for each in correlate.seen)
    out = [each for _, each in machine.receive(B, marker(2, 5.0))]
    assert [each.epoch for each in out if isinstance(each, Marker)] == [2]
    assert machine.gate.epoch == 2 and machine.buffered() == 1  # a9, of the new epoch


def test_t09_best_effort_switches_at_once() -> None:
    machine, correlate = two_inputs(strict=False)
    for channel in (A, B):
        machine.receive(channel, marker(1, 0.0))
    out = [each for _, each in machine.receive(A, marker(2, 5.0))]
    assert [each.epoch for each in out if isinstance(each, Marker)] == [2] and machine.buffered() == 0
    machine.receive(B, seen("b1", "B", 3.0)._replace(epoch=1))
    out = [each for _, each in machine.receive(B, marker(2, 5.0))]
    assert not any(isinstance(each, Marker) for each in out)  # exactly one for each output
    machine.receive(A, seen("a2", "A", 4.5)._replace(epoch=2))
    machine.receive(B, Heartbeat(6.0))
    machine.receive(A, Heartbeat(6.0))
    assert {"a2"} in correlate.seen and not any("b1" in each for each in correlate.seen)


def test_events_pass_when_no_channel_can_bring_an_earlier_one() -> None:
    machine, correlate = two_inputs(strict=True)
    for channel in (A, B):
        machine.receive(channel, marker(1, 0.0))
    machine.receive(A, seen("a1", "A", 2.0)._replace(epoch=1))
    machine.receive(B, Heartbeat(2.0))  # an event at 2.0 can still come
    assert {"a1"} not in correlate.seen
    machine.receive(B, Heartbeat(2.1))
    assert {"a1"} in correlate.seen


def test_a_channel_out_of_order_is_refused() -> None:
    machine, _ = two_inputs(strict=True)
    for channel in (A, B):
        machine.receive(channel, marker(1, 0.0))
    machine.receive(A, seen("a1", "A", 2.0)._replace(epoch=1))
    with pytest.raises(Broken, match="came after"):
        machine.receive(A, seen("a0", "A", 1.0)._replace(epoch=1))
    with pytest.raises(Broken, match="a marker of epoch 1 came in epoch 1"):
        machine.receive(A, marker(1, 0.0))


def consumer(order: Order, history: float = 60.0) -> Delivery:
    return Delivery({A: Inlet({"A"}), B: Inlet({"B"})}, history, Policy(order))


def told(
    machine: Delivery, *messages: tuple[ChannelId, Event | Marker | Heartbeat]
) -> list[tuple[int, str, bool]]:
    found = [each for channel, message in messages for each in machine.receive(channel, message)]
    return [(each.epoch, each.event.source, each.historical) for each in found]


def test_t02_spatial_order_is_not_order_in_time() -> None:
    machine = consumer("spatiotemporal")
    found = told(
        machine,
        (A, marker(1, 20.0)), (B, marker(1, 20.0)),
        (A, seen("e1", "A", 10.0)), (A, marker(2, 21.0)), (B, marker(2, 21.0)),
        (A, seen("e2", "A", 0.0)), (A, marker(3, 30.0)), (B, marker(3, 30.0)),
    )  # fmt: skip
    assert [each[:2] for each in found] == [(1, "e1"), (2, "e2")]


@pytest.mark.parametrize("order", ["spatiotemporal", "spatial"])
def test_t03_orders_of_delivery(order: Order) -> None:
    machine = consumer(order)
    found = told(
        machine,
        (A, marker(1, 10.0)), (B, marker(1, 10.0)),
        (A, seen("e2", "A", 9.0)), (A, seen("e3", "A", 11.0)), (A, marker(2, 20.0)),
        (B, seen("e1", "B", 8.0)), (B, marker(2, 20.0)),
        (B, seen("e5", "B", 20.0)), (B, seen("e6", "B", 21.0)), (B, marker(3, 30.0)),
        (A, seen("e4", "A", 19.0)), (A, marker(3, 30.0)),
    )  # fmt: skip
    historical = {name: before for _, name, before in found}
    assert historical == {"e1": True, "e2": True, "e3": False, "e4": True, "e5": False, "e6": False}
    names = [name for _, name, _ in found]
    assert set(names[:3]) == {"e1", "e2", "e3"}
    assert names == sorted(names) or order == "spatial"


def test_results_from_before_the_history_are_counted_not_delivered() -> None:
    machine = consumer("spatiotemporal", history=5.0)
    found = told(
        machine, (A, marker(1, 10.0)), (B, marker(1, 10.0)), (B, Heartbeat(20.0)),
        (A, seen("early", "A", 4.0)), (A, seen("e1", "A", 5.0)),
    )  # fmt: skip
    assert [name for _, name, _ in found] == ["e1"] and machine.early == 1
