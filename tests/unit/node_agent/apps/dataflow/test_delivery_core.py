"""The delivery core step by step: what it sends, keeps, repeats and lets go of."""

from collections.abc import Sequence
from math import inf
from typing import TypeVar

import pytest

from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.effects import (
    Acknowledge,
    Ask,
    Drop,
    Effect,
    Forward,
    Process,
    ProcessUnit,
    PushBack,
    Resume,
    Send,
    Settle,
)
from node_agent.apps.dataflow.delivery.limits import EMPTY_PER_ITEM, DeliveryLimits, Overflow, Reliability
from node_agent.apps.dataflow.delivery.plan_neighbours import PlanNeighbours, plan_neighbours_of
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, TimeWindow
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.windows.window_rules import CountAssembler, TauAssembler, TimeAssembler

EXACTLY_ONCE = Reliability.EXACTLY_ONCE
E = TypeVar("E", bound=Effect)


def of(kind: type[E], effects: Sequence[Effect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def items(first: int, last: int, origin: str = "s/0") -> list[StreamTuple]:
    return [StreamTuple(origin, tau, tau - 1, tau, tau - 1, (b"%d" % tau,)) for tau in range(first, last + 1)]


def taus(batch: Sequence[StreamTuple]) -> list[int]:
    return [item.tau for item in batch]


def source(
    limits: DeliveryLimits | None = None, level: Reliability = EXACTLY_ONCE, whole: bool = False
) -> DeliveryCore:
    return DeliveryCore(PlanNeighbours("s/0", {}, {"a": whole}), level, limits or DeliveryLimits())


def relay(*downstreams: str, limits: DeliveryLimits | None = None) -> DeliveryCore:
    neighbours = PlanNeighbours("a/0", {"s": ("s/0",)}, dict.fromkeys(downstreams, False))
    core = DeliveryCore(neighbours, EXACTLY_ONCE, limits or DeliveryLimits())
    for downstream in downstreams:
        core.steer(downstream, Hop(f"{downstream}/0", 1.0), 0.0)
    return core


def sink(level: Reliability = EXACTLY_ONCE) -> DeliveryCore:
    return DeliveryCore(PlanNeighbours("z/0", {"a": ("a/0", "a/1")}, {}), level, DeliveryLimits())


def emit(core: DeliveryCore, count: int, now: float = 0.0) -> list[Effect]:
    return core.emit([((b"x",), 1) for _ in range(count)], now)


def process(core: DeliveryCore, effects: Sequence[Effect], now: float = 0.0) -> list[Effect]:
    """Let the operator pass on unchanged whatever it is given."""
    return [
        follow
        for work in of(Process, effects)
        for follow in core.processed_each(work.upstream, work.items, [i.payloads for i in work.items], now)
    ]


def test_an_item_is_acknowledged_when_it_is_done_downstream_and_not_before() -> None:
    core = relay("z")
    after = process(core, core.receive("s/0", "s", items(1, 3), {}, 0.0))
    assert [taus(send.items) for send in of(Send, after)] == [[1, 2, 3]]
    assert of(Acknowledge, after) == [Acknowledge("s/0", {}, {"s/0": [(1, 3)]})]
    done = core.acknowledged("z/0", "z", {"s/0": [(1, 2)]}, {}, 0.0)
    assert of(Acknowledge, done) == [Acknowledge("s/0", {"s/0": [(1, 2)]}, {})]
    assert core.retained == 1


def test_with_two_downstream_operators_both_must_be_done() -> None:
    core = relay("y", "z")
    process(core, core.receive("s/0", "s", items(1, 4), {}, 0.0))
    assert not of(Acknowledge, core.acknowledged("y/0", "y", {"s/0": [(1, 4)]}, {}, 0.0))
    done = core.acknowledged("z/0", "z", {"s/0": [(2, 3)]}, {}, 0.0)
    assert of(Acknowledge, done) == [Acknowledge("s/0", {"s/0": [(2, 3)]}, {})]


def test_what_is_held_or_done_is_not_processed_again_but_reported() -> None:
    core = sink()
    first = core.receive("a/0", "a", items(1, 2), {}, 0.0)
    assert not of(Process, core.receive("a/1", "a", items(1, 2), {}, 0.0))
    after = process(core, first)
    assert {ack.replica: ack.done for ack in of(Acknowledge, after)} == {
        "a/0": {"s/0": [(1, 2)]},
        "a/1": {"s/0": [(1, 2)]},
    }
    again = core.receive("a/1", "a", items(1, 3), {}, 0.0)
    assert [taus(work.items) for work in of(Process, again)] == [[3]]
    assert of(Acknowledge, again) == [Acknowledge("a/1", {"s/0": [(1, 2)]}, {"s/0": [(1, 2)]})]


def test_at_least_once_delivers_again_what_is_sent_again() -> None:
    core = sink(Reliability.AT_LEAST_ONCE)
    process(core, core.receive("a/0", "a", items(1, 2), {}, 0.0))
    assert [taus(w.items) for w in of(Process, core.receive("a/1", "a", items(1, 2), {}, 0.0))] == [[1, 2]]


def test_a_failed_link_rewinds_all_that_went_over_it_to_the_replica_now_chosen() -> None:
    core = source(DeliveryLimits(retry=1.0))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    emit(core, 4)
    core.acknowledged("a/0", "a", {"s/0": [(2, 2)]}, {"s/0": [(1, 3)]}, 0.0)
    assert not of(Send, core.connection_failed("a", "a/0", 1.0)), "the same replica is given a moment"
    assert core.next_tick(1.0) == 2.0
    assert [(s.replica, taus(s.items)) for s in of(Send, core.steer("a", Hop("a/1", 1.0), 1.1))] == [
        ("a/1", [1, 3, 4])
    ]


def test_what_the_route_left_behind_follows_after_a_while() -> None:
    core = source(DeliveryLimits(unacknowledged=2.0))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    emit(core, 3)
    assert not of(Send, core.steer("a", Hop("a/1", 1.0), 0.5)), "it may well be done where it is"
    assert not of(Send, core.tick(1.9))
    assert [taus(send.items) for send in of(Send, core.tick(2.0))] == [[1, 2, 3]]


def test_what_open_windows_need_follows_the_route_at_once_but_not_twice() -> None:
    core = source(whole=True)
    core.steer("a", Hop("a/0", 1.0), 0.0)
    emit(core, 3)
    core.acknowledged("a/0", "a", {}, {"s/0": [(1, 3)]}, 0.0)
    assert [taus(send.items) for send in of(Send, core.steer("a", Hop("a/1", 1.0), 0.1))] == [[1, 2, 3]]
    assert not of(Send, core.steer("a", Hop("a/0", 1.0), 0.2)), "a/0 still has it all"
    core.connection_failed("a", "a/0", 0.3)
    assert [send.replica for send in of(Send, core.tick(1.0))] == ["a/0"]


def test_no_more_is_in_flight_than_allowed_until_it_is_taken() -> None:
    core = source(DeliveryLimits(in_flight=3))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    assert [taus(send.items) for send in of(Send, emit(core, 5))] == [[1, 2, 3]]
    more = core.acknowledged("a/0", "a", {}, {"s/0": [(1, 1)]}, 0.0)
    assert [taus(send.items) for send in of(Send, more)] == [[4]]
    assert core.waiting() == {"a": 1}


def test_shares_divide_the_stream_and_pass_by_who_has_no_room() -> None:
    core = source(DeliveryLimits(in_flight=2))
    core.steer("a", Hop("a/0", 1.0, (("a/0", 0.5), ("a/1", 0.5))), 0.0)
    core.connection_failed("a", "a/1", 0.0)
    assert [(s.replica, taus(s.items)) for s in of(Send, emit(core, 3))] == [("a/0", [1, 2])]
    assert [(s.replica, taus(s.items)) for s in of(Send, core.tick(1.0))] == [("a/1", [3])]


def test_a_full_retention_pushes_back_until_there_is_room() -> None:
    core = source(DeliveryLimits(items=3))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    assert of(PushBack, emit(core, 3)) and core.full
    assert of(Resume, core.acknowledged("a/0", "a", {"s/0": [(1, 1)]}, {}, 0.0)) and not core.full


def test_a_source_that_goes_on_emitting_drops_its_oldest_unsent_items_and_leaves_holes() -> None:
    core = source(DeliveryLimits(items=3, in_flight=1))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    emit(core, 3)
    dropped = of(Drop, emit(core, 2))
    assert [(drop.item.tau, drop.reason) for drop in dropped] == [
        (2, "source_buffer_full"),
        (3, "source_buffer_full"),
        (4, "source_buffer_full"),
    ]
    (sent,) = of(Send, core.acknowledged("a/0", "a", {"s/0": [(1, 1)]}, {}, 0.0))
    assert sent.items[0].tau == 2 and not sent.items[0].payloads
    for _ in range(100):
        emit(core, 1)
    assert core.retained <= 3 * EMPTY_PER_ITEM
    (refused,) = of(Drop, emit(core, 1))
    assert refused.item.tau == core.position == 106, "what is lost has a place that it can be named by"
    core.end(0.0)
    later = [
        item
        for until in range(1, 107)
        for send in of(Send, core.acknowledged("a/0", "a", {"s/0": [(1, until)]}, {}, 0.0))
        for item in send.items
    ]
    assert [(item.tau, item.prev) for item in later] == [(tau, tau - 1) for tau in range(3, 108)]
    assert [item.tau for item in later if item.last] == [107], "holes, then the end"


def test_dropping_the_oldest_frees_its_payload_and_keeps_its_place() -> None:
    core = source(DeliveryLimits(items=3, overflow=Overflow.DROP_OLDEST))
    core.steer("a", Hop("a/0", 1.0), 0.0)
    emit(core, 2)
    assert [drop.item.tau for drop in of(Drop, emit(core, 1))] == [1]
    assert not core.full and core.retained == 3


def test_floors_make_a_newcomer_forget_what_is_done_and_pass_it_on() -> None:
    core = relay("z")
    effects = process(core, core.receive("s/0", "s", items(8, 9), {"s/0": 7}, 0.0))
    (sent,) = of(Send, effects)
    assert sent.floors == {"s/0": 7}
    settled = core.receive("s/0", "s", items(10, 10), {"s/0": 9}, 0.0)
    assert core.retained == 0
    assert of(Acknowledge, settled)[0].done == {"s/0": [(1, 9)]}


def test_who_holds_something_that_goes_nowhere_asks_and_is_told() -> None:
    core = relay("z")
    process(core, core.receive("s/0", "s", items(1, 1), {}, 0.0))
    assert of(Ask, core.tick(2.0)) == [Ask("s/0")]
    assert not of(Ask, core.tick(3.0)), "it does not insist"
    core.settled("s", {"s/0": 1}, [], 3.5)
    assert core.retained == 0 and not core.holding
    core.tick(10.0)
    assert core.next_tick(10.0) == inf
    upstream = source()
    upstream.steer("a", Hop("a/0", 1.0), 0.0)
    emit(upstream, 2)
    assert not upstream.asked("a/1", "a", 0.0)
    upstream.acknowledged("a/0", "a", {"s/0": [(1, 1)]}, {}, 0.0)
    assert of(Settle, upstream.asked("a/1", "a", 0.0)) == [Settle("a", "a/1", {"s/0": 1}, [])]


def test_a_window_acknowledges_its_items_when_no_unit_needs_them() -> None:
    window = CountAssembler("w", (("s", "s/0"),), CountWindow(2, 1))
    core = DeliveryCore(
        PlanNeighbours("w/0", {"s": ("s/0",)}, {"z": False}), EXACTLY_ONCE, DeliveryLimits(), window
    )
    core.steer("z", Hop("z/0", 1.0), 0.0)
    work = of(ProcessUnit, core.receive("s/0", "s", items(1, 3), {}, 0.0))
    for step in work:
        core.processed(step.unit, (b"",), 0.0)
    done = core.acknowledged("z/0", "z", {"w": [(1, 1)]}, {}, 0.0)
    assert of(Acknowledge, done) == [Acknowledge("s/0", {"s/0": [(1, 1)]}, {})]
    done = core.acknowledged("z/0", "z", {"w": [(2, 2)]}, {}, 0.0)
    assert of(Acknowledge, done) == [Acknowledge("s/0", {"s/0": [(1, 2)]}, {})]


def join() -> DeliveryCore:
    neighbours = PlanNeighbours("j/0", {"s": ("s/0",), "t": ("t/0",)}, {"z": False})
    core = DeliveryCore(
        neighbours, EXACTLY_ONCE, DeliveryLimits(), TauAssembler("j", (("s", "s/0"), ("t", "t/0")))
    )
    core.steer("z", Hop("z/0", 1.0), 0.0)
    return core


def test_parts_of_units_are_handed_over_to_a_sibling() -> None:
    core = join()
    core.receive("s/0", "s", items(1, 2), {}, 0.0)
    (forward,) = of(Forward, core.hand_over("j/1"))
    assert (forward.sibling, forward.sender, taus(forward.items)) == ("j/1", "s/0", [1, 2])


# Each of these was once a counter-example of the schedules, and is as small as it could be made.


def test_of_a_processed_unit_nothing_is_handed_over_while_an_older_one_is_open() -> None:
    core = join()
    core.receive("s/0", "s", items(2, 2), {}, 0.0)
    assert of(ProcessUnit, core.receive("t/0", "t", items(2, 2, "t/0"), {}, 0.0))
    core.receive("s/0", "s", items(1, 1), {}, 0.0)
    (forward,) = of(Forward, core.hand_over("j/1"))
    assert [(item.tau, item.payloads) for item in forward.items] == [(1, (b"1",))]


def test_a_repeated_item_that_was_processed_before_is_reported_as_taken() -> None:
    core = relay("z")
    process(core, core.receive("s/0", "s", items(1, 1), {}, 0.0))
    again = core.receive("s/0", "s", items(1, 1), {}, 0.0)
    assert of(Acknowledge, again) == [Acknowledge("s/0", {}, {"s/0": [(1, 1)]})]


def test_word_of_what_a_predecessor_sent_counts_once_the_item_is_sent_again() -> None:
    core = relay("z")
    core.acknowledged("z/0", "z", {"s/0": [(1, 5)]}, {}, 0.0)
    effects = process(core, core.receive("s/0", "s", items(3, 3), {}, 0.0))
    assert taus(of(Send, effects)[0].items) == [3]
    again = core.acknowledged("z/0", "z", {"s/0": [(1, 5)]}, {}, 0.0)
    assert of(Acknowledge, again)[0].done == {"s/0": [(1, 3)]}


def test_downstream_operators_share_a_batch_but_not_its_fate() -> None:
    core = relay("y", "z")
    process(core, core.receive("s/0", "s", items(1, 4), {}, 0.0))
    core.acknowledged("y/0", "y", {"s/0": [(2, 3)]}, {}, 0.0)
    (sent,) = of(Send, [*core.connection_failed("z", "z/0", 0.0), *core.tick(1.0)])
    assert taus(sent.items) == [1, 2, 3, 4]


def test_what_is_older_gets_through_where_newer_items_have_used_up_the_room() -> None:
    core = relay("z", limits=DeliveryLimits(items=3, in_flight=2))
    effects = process(core, core.receive("s/0", "s", items(5, 7), {}, 0.0))
    assert [taus(send.items) for send in of(Send, effects)] == [[5, 6]]
    assert not of(Process, core.receive("s/0", "s", items(9, 9), {}, 0.0)), "there is no room for its result"
    assert not of(Process, core.receive("s/0", "s", items(8, 8), {}, 0.0))
    older = process(core, core.receive("s/0", "s", items(4, 4), {}, 0.0))
    assert [taus(send.items) for send in of(Send, older)] == [[4]]
    room = core.acknowledged("z/0", "z", {"s/0": [(4, 6)]}, {}, 0.0)
    assert [taus(work.items) for work in of(Process, room)] == [[8, 9]]


@pytest.mark.parametrize("told", ["floor first", "end first"])
def test_a_time_window_lets_go_of_a_stream_that_is_done_to_its_end(told: str) -> None:
    streams = (("s", "s/0"), ("t", "t/0"))
    core = DeliveryCore(
        PlanNeighbours("w/1", {"s": ("s/0",), "t": ("t/0",)}, {"z": False}),
        EXACTLY_ONCE,
        DeliveryLimits(),
        TimeAssembler("w", streams, TimeWindow(10, 10)),
    )
    core.receive("s/0", "s", items(2, 2), {}, 0.0)
    ends = [StreamTuple(origin, 4, 3, 3, 3, last=True) for origin in ("s/0", "t/0")]
    for end, upstream in zip(ends, ("s", "t"), strict=True):
        if told == "end first":
            core.receive(end.origin, upstream, [end], {}, 0.0)
        core.settled(upstream, {end.origin: 4}, [end], 3.0)
    assert not core.holding
    assert not of(ProcessUnit, core.tick(100.0)), "it was done elsewhere"


def test_a_place_is_read_off_the_plan() -> None:
    query = Query(
        "q",
        (
            OperatorSpec("s", "any"),
            OperatorSpec("a", "any", ("s",)),
            OperatorSpec("w", "any", ("a",), takes=CountWindow(2, 2)),
            OperatorSpec("z", "any", ("a", "w")),
        ),
    )
    replicas = [Replica(name, index, "n") for name in "sawz" for index in range(2 if name in "aw" else 1)]
    plan = DeploymentPlan(query, tuple(replicas))
    neighbours = plan_neighbours_of(plan.replica("a/1"), plan)
    assert neighbours == PlanNeighbours("a/1", {"s": ("s/0",)}, {"w": True, "z": False})
    assert (neighbours.role, neighbours.operator) == ("operator", "a")
    assert plan_neighbours_of(plan.replica("z/0"), plan).role == "sink"
    assert plan_neighbours_of(plan.replica("s/0"), plan).role == "source"
