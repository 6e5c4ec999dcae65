"""Views of applications, record by record: dataflows with windows and pictures, and flows."""

from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.events import (
    QueueSample,
    RouteDecision,
    RouteSwitch,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.faces.events import FacesSeen
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.flows.events import FlowReceived, FlowSent, Heard
from node_agent.apps.flows.model import Flow
from node_agent.apps.records import record_format
from node_agent.model.telemetry import Event
from orchestrator.apps.dataflow.live import DataflowView
from orchestrator.apps.flows.live import FlowsView
from orchestrator.live.network import NetworkView
from orchestrator.live.nodes import NodeStates
from orchestrator.live.sources import DELIVERY, LINK, POSITION, Delivery, Link, Position
from orchestrator.runs.timeline import Change

S = 10**9
OFFSETS = {"a": 0.0, "b": 5.0, "e": 7.0}
"""By how many seconds the nodes' clocks are ahead."""


def seconds(node: str, t_ns: int) -> float:
    return t_ns / S - OFFSETS.get(node, 0.0)


def record(event: Event, node: str = "a", t: float = 0.0, boot: int = 1) -> Any:
    known = msgspec.to_builtins(event)
    envelope = {"run": "r", "node": node, "boot": boot, "app": "query", "seq": 0, "t_ns": round(t * S)}
    return record_format().decode(msgspec.json.encode({**envelope, **known}))


def plan(sink: str = "sink", sinks: int = 1) -> DeploymentPlan:
    screens = [OperatorSpec(f"screen{i}", sink, after=("work",)) for i in range(sinks)]
    query = Query(
        "q", (OperatorSpec("camera", "source"), OperatorSpec("work", "work", ("camera",)), *screens)
    )
    replicas = [Replica("camera", 0, "a"), Replica("work", 0, "b"), Replica("work", 1, "c")]
    return DeploymentPlan(query, (*replicas, *(Replica(f"screen{i}", 0, "e") for i in range(sinks))))


class Watched:
    def __init__(self, view: Any) -> None:
        self.view = view

    def take(self, event: Event, t: float, node: str = "a", boot: int = 1) -> list[Change]:
        return list(self.view.take(node, t, record(event, node, t + OFFSETS.get(node, 0.0), boot)))

    def tick(self, t: float) -> dict[tuple[str, str], Any]:
        return {(change.channel, change.key): change.value for change in self.view.tick(t)}


@pytest.fixture
def watched() -> Watched:
    return Watched(DataflowView("query", plan(), seconds))


def test_rates_are_of_the_second_of_their_records(watched: Watched) -> None:
    watched.take(TupleEmitted("camera/0", "camera/0", 1, 1000), 0.9)
    watched.take(TupleSent("camera/0", "work/0", "camera/0", 1, 3000, tuples=3), 0.95)
    watched.take(TupleReceived("work/0", "camera/0", "camera/0", 1, 1000), 1.2, "b")
    shown = watched.tick(1.5)
    assert shown["rate", "camera/0"] == {"in": 1, "out": 3, "done": 0, "dropped": 0, "bytes": 3000}
    assert ("rate", "work/0") not in shown
    shown = watched.tick(2.5)
    assert shown["rate", "work/0"]["in"] == 1
    assert shown["rate", "camera/0"]["out"] == 0  # idle, once
    assert ("rate", "camera/0") not in watched.tick(3.5)


def test_latency_is_corrected_by_the_sources_clock(watched: Watched) -> None:
    born = round(1.0 * S)  # by the clock of a, which is right
    watched.take(
        TupleDelivered("screen0/0", "camera/0", 1, 2000, born, tuples=2, births=(0, S // 2)), 1.75, "e"
    )
    shown = watched.tick(2.5)["latency", "screen0/0"]
    assert len(shown.pop("buckets")) == 2
    assert shown == {"n": 2, "p50": 0.25, "p95": 0.75, "p99": 0.75}


def send(watched: Watched, tau: int, t: float, to: str = "work/0", tuples: int = 1) -> None:
    watched.take(TupleSent("camera/0", to, "camera/0", tau, tuples, tuples=tuples), t)


def receive(watched: Watched, tau: int, t: float, by: str = "work/0", boot: int = 1) -> None:
    watched.take(TupleReceived(by, "camera/0", "camera/0", tau, 1), t, "b", boot)


def emit(watched: Watched, tau: int, t: float, tuples: int = 1) -> None:
    watched.take(TupleEmitted("camera/0", "camera/0", tau, tuples, tuples=tuples), t)


def deliver(watched: Watched, tau: int, t: float, born: float, sink: str = "screen0/0") -> None:
    watched.take(TupleDelivered(sink, "camera/0", tau, 1, round(born * S)), t, "e")


def total(watched: Watched, t: float) -> tuple[int, int, int, int]:
    found = watched.tick(t)["total", ""]
    return found["offered"], found["delivered"], found["lost"], found["waiting"]


def test_what_was_sent_and_not_received_is_lost_after_a_while(watched: Watched) -> None:
    emit(watched, 1, 1.0, tuples=3)
    send(watched, 1, 1.0, tuples=3)
    receive(watched, 1, 1.1)
    receive(watched, 2, 1.1)
    deliver(watched, 1, 1.2, 1.0)
    assert total(watched, 2.5) == (3, 1, 0, 2)
    assert total(watched, 12.5) == (3, 1, 1, 1)  # the replica that holds the second still has it
    deliver(watched, 3, 13.0, 1.0)
    assert total(watched, 13.5) == (3, 2, 0, 1)


def test_what_was_sent_again_after_it_was_lost_waits_where_it_arrived(watched: Watched) -> None:
    emit(watched, 1, 1.0)
    send(watched, 1, 1.0)
    send(watched, 1, 5.0, "work/1")
    receive(watched, 1, 5.1, "work/1")
    assert total(watched, 30.5) == (1, 0, 0, 1)


def test_what_its_sender_keeps_is_not_lost_while_the_run_goes_on() -> None:
    kept = plan()
    kept = msgspec.structs.replace(
        kept, query=msgspec.structs.replace(kept.query, reliability="exactly_once")
    )
    watched = Watched(DataflowView("query", kept, seconds))
    emit(watched, 1, 1.0)
    send(watched, 1, 1.0)
    assert total(watched, 30.5) == (1, 0, 0, 1)
    watched.view.end(31.0)
    assert total(watched, 31.5) == (1, 0, 1, 0)


def test_records_of_several_nodes_may_come_in_any_order(watched: Watched) -> None:
    deliver(watched, 1, 1.2, 1.0)
    receive(watched, 1, 1.1)
    receive(watched, 2, 1.1)
    send(watched, 1, 1.0, tuples=2)
    emit(watched, 1, 1.0, tuples=2)
    assert total(watched, 20.5) == (2, 1, 0, 1)


def test_never_more_is_delivered_than_was_offered(watched: Watched) -> None:
    """The sink's record of a tuple was read, the source's was not yet."""
    emit(watched, 1, 1.0)
    deliver(watched, 1, 1.2, 1.0)
    deliver(watched, 2, 1.3, 1.1)
    assert total(watched, 2.5) == (2, 2, 0, 0)
    emit(watched, 2, 1.1, tuples=2)
    assert total(watched, 3.5) == (3, 2, 0, 1)


def test_what_was_dropped_is_lost_at_once_by_its_last_reason(watched: Watched) -> None:
    emit(watched, 1, 1.0, tuples=4)
    for tau, reason in [(1, "queue_full"), (2, "dead_letter: no"), (3, "link_failed"), (4, "link_failed")]:
        watched.take(TupleDropped("work/0", "camera/0", tau, 1, reason), 2.0, "b")
    deliver(watched, 3, 2.1, 1.0)  # it was on the connection that failed, and had arrived
    assert watched.tick(2.5)["total", ""] == {
        "offered": 4,
        "delivered": 1,
        "lost": 3,
        "waiting": 0,
        "loss": 0.75,
        "dropped": {"dead_letter": 1, "link_failed": 1, "queue_full": 1},
        "switches": 0,
    }


def test_what_was_filtered_or_delivered_twice_is_not_lost(watched: Watched) -> None:
    emit(watched, 1, 0.0, tuples=3)
    watched.take(TupleDropped("screen0/0", "camera/0", 1, 1, "filtered"), 0.5, "e")
    for _ in range(2):
        deliver(watched, 2, 0.5, 0.0)
    assert total(watched, 20.5) == (3, 1, 0, 1)


def test_a_tuple_is_owed_to_every_sink_and_offered_once() -> None:
    watched = Watched(DataflowView("query", plan(sinks=2), seconds))
    emit(watched, 1, 0.0)
    deliver(watched, 1, 0.5, 0.0, "screen1/0")
    send(watched, 1, 0.6)
    assert total(watched, 20.5) == (1, 1, 1, 0)


def test_what_a_killed_agent_held_is_lost(watched: Watched) -> None:
    watched.view.agent("b", 0.0, 1, "started")
    emit(watched, 1, 1.0, tuples=2)
    for tau in (1, 2):
        send(watched, tau, 1.0)
        receive(watched, tau, 1.1)
    watched.view.agent("b", 5.0, 2, "started")  # and nothing said that the first one stopped in order
    assert total(watched, 6.5) == (2, 0, 0, 2)
    receive(watched, 2, 7.0, boot=2)
    assert total(watched, 16.5) == (2, 0, 1, 1)
    watched.view.agent("b", 17.0, 2, "stopped")
    watched.view.end(17.0)
    assert watched.tick(17.5) == {}


def test_at_the_end_the_end_of_the_records_counts(watched: Watched) -> None:
    emit(watched, 1, 1.0, tuples=2)
    send(watched, 1, 1.0)
    send(watched, 2, 1.5)
    watched.view.end(11.2)
    assert total(watched, 12.5) == (2, 0, 1, 1)


def test_totals_are_of_the_measured_time(watched: Watched) -> None:
    emit(watched, 1, 0.0, tuples=5)
    emit(watched, 8, 1.3)  # the news that the measured time has begun is read later
    watched.view.measure(1.0)
    emit(watched, 6, 0.9)  # written before, read after
    emit(watched, 7, 1.1)
    for tau, born in [(4, 0.0), (5, 0.0), (6, 0.9), (7, 1.1)]:
        deliver(watched, tau, 1.4, born)
    assert total(watched, 1.5) == (2, 1, 0, 1)
    watched.view.measured(3.0)
    emit(watched, 9, 3.0)
    deliver(watched, 8, 3.1, 1.3)
    assert total(watched, 3.5) == (2, 2, 0, 0)


def test_totals_stay_small_and_right_if_every_other_tuple_is_lost(watched: Watched) -> None:
    many = 40_000
    for tau in range(1, many + 1):
        emit(watched, tau, tau / 1000)
        if tau % 2:
            deliver(watched, tau, tau / 1000 + 0.1, tau / 1000)
        else:
            watched.take(TupleDropped("work/0", "camera/0", tau, 1, "queue_full"), tau / 1000, "b")
    assert total(watched, 41.5) == (many, many // 2, many // 2, 0)


def test_only_another_replica_is_a_switch(watched: Watched) -> None:
    def decide(t: float, old: str | None, new: str | None) -> tuple[bool, str | None]:
        decision = RouteDecision(
            "camera/0", "work", "p", old, new, (), {}, None, 0.0, False, 1.0, 0, 0, False, True, "etx", "s", 0
        )
        (change,) = watched.take(decision, t)
        if old != new:
            watched.take(RouteSwitch("camera/0", "work", old, new, None, None, "s"), t)
        return change.value["switch"], change.value["old"]

    emit(watched, 1, 0.5)
    assert decide(1.0, None, "work/0") == (False, None)
    assert decide(2.0, "work/0", None) == (False, "work/0")
    assert decide(3.0, None, "work/0") == (False, None)
    assert decide(4.0, "work/0", None) == (False, "work/0")
    assert decide(5.0, None, "work/1") == (True, "work/0")
    assert decide(6.0, "work/1", "work/0") == (True, "work/1")
    assert watched.tick(7.5)["total", ""]["switches"] == 2


def test_queues_are_summed_up_and_shown_when_they_change(watched: Watched) -> None:
    assert watched.take(QueueSample("work/0", "input", 3), 1.0, "b")[0].value == {"in": 3, "out": 0}
    assert watched.take(QueueSample("work/0", "output:screen0", 2), 1.0, "b")[0].value == {"in": 3, "out": 2}
    assert watched.take(QueueSample("work/0", "input", 3), 2.0, "b") == []


def test_a_new_picture_is_announced() -> None:
    watched = Watched(DataflowView("query", plan("show_faces"), seconds))
    assert watched.view.head()["pictures"]
    found = [
        change
        for number in range(20)
        for change in watched.take(
            FacesSeen("screen0/0", "camera/0", number, number, "", 0, ()), number / 16, "e"
        )
    ]
    assert [change.value["frame"] for change in found] == [0, 4, 8, 12, 16]
    assert found[0].value["file"] == "latest.jpg"


def test_flows_have_rates_loss_and_delay() -> None:
    flows = (Flow("video", "a", "b", "udp", 512, 1e6),)
    watched = Watched(FlowsView("flows", flows, seconds))
    assert watched.view.head()["flows"] == [{"name": "video", "from": "a", "to": "b", "protocol": "udp"}]
    opened = 10 * S
    for second in range(1, 6):
        now = opened + second * S
        amounts = tuple((n, 100, 50_000) for n in range(second))
        sent = FlowSent("video", opened, now, 100 * second, 50_000 * second, 0, 0, 0, 0, amounts)
        watched.take(sent, 10.0 + second, "a")
        # The sink's clock is 5 s ahead: packets seem to have been under way for 5.02 s.
        heard = tuple(
            Heard(n, 90, 45_000, 2_000_000, 5 * S, 90 * 20_000_000, 0, 0).row() for n in range(second)
        )
        arrived = tuple((n, 90, 45_000) for n in range(second))
        received = FlowReceived("video", 1, opened + 5 * S, now + 5 * S, 0, 0, 0, 0, 0, heard, arrived)
        watched.take(received, 10.0 + second, "b")
    assert watched.tick(15.5)["flow", "video"] == {
        "sent": 400_000,
        "received": 360_000,
        "lost": 0.1,
        "delay": 0.02,
        "jitter": 0.002,
    }
    assert watched.tick(16.5) == {}


def flow_sent(second: float, last: int, amount: int = 100) -> FlowSent:
    """What a source writes ``second`` seconds after it began; ``last``: its second that is not over yet."""
    rows = (*((n, amount, 500 * amount) for n in range(last)), (last, amount // 10, 50 * amount))
    packets = amount * last + amount // 10
    return FlowSent("video", 10 * S, 10 * S + round(second * S), packets, 500 * packets, 0, 0, 0, 0, rows)


def test_a_second_of_a_flow_that_is_not_over_is_not_shown() -> None:
    watched = Watched(FlowsView("flows", (Flow("video", "a", "b", "udp", 500, 1e6),), seconds))
    watched.take(flow_sent(4.1, 4), 14.1, "a")
    for t in (14.5, 15.5, 16.5):
        assert watched.tick(t).get(("flow", "video"), {"sent": 400_000})["sent"] == 400_000
    # It has nothing to say any more: it sends nothing.
    assert watched.tick(17.5)["flow", "video"]["sent"] == 0


@pytest.mark.parametrize("limit", [{"stop": 5.0}, {"packets": 410}, {"bytes": 410 * 500}])
def test_a_flow_that_has_sent_everything_ends(limit: dict[str, Any]) -> None:
    flows = (Flow("video", "a", "b", "udp", 500, 1e6, **limit),)
    watched = Watched(FlowsView("flows", flows, seconds))
    watched.take(flow_sent(4.1, 4), 14.1, "a")
    assert watched.tick(14.5)["flow", "video"] is not None
    shown = [watched.tick(t).get(("flow", "video"), ...) for t in (15.5, 16.5, 17.5, 18.5, 19.5)]
    assert shown == [..., ..., None, ..., ...]
    assert Watched(FlowsView("flows", flows, seconds)).tick(30.0) == {}


def test_links_change_only_if_it_can_be_seen() -> None:
    view = NetworkView(frozenset("abc"))

    def link(cost: float | None, dst: str = "b") -> list[Any]:
        found = view.take(LINK, 1.0, Link(0, "a", dst, cost is not None, cost))
        return [(change.key, change.value) for change in found]

    assert link(1.0) == [("a>b", {"etx": 1.0})]
    assert link(1.04) == []
    assert link(1.06) == [("a>b", {"etx": 1.06})]
    assert link(None) == [("a>b", None)]
    assert link(None) == []
    assert link(1.0, "stranger") == []


def test_signals_change_at_most_once_a_second() -> None:
    view = NetworkView(frozenset("ab"))
    times = [0.0, 0.3, 0.9, 1.0, 1.2, 2.5]
    found = [list(view.take(DELIVERY, t, Delivery(0, "a", "b", 10 + 5 * t))) for t in times]
    assert [len(each) for each in found] == [1, 0, 0, 1, 0, 1]
    disc = NetworkView(frozenset("ab"), has_signals=False)
    assert list(disc.take(DELIVERY, 0.0, Delivery(0, "a", "b", 109.6))) == []


def test_nodes_that_stand_still_are_shown_once() -> None:
    view = NetworkView(frozenset("a"))
    places = [(0.0, 0.0), (0.01, 0.0), (0.2, 0.0)]
    found = [list(view.take(POSITION, 0.0, Position(0, "a", x, y))) for x, y in places]
    assert [len(each) for each in found] == [1, 0, 1]


def test_links_as_routing_sees_them() -> None:
    view = NetworkView(frozenset("abc"))
    assert [c.key for c in view.neighbours(0.0, "a", {"b": 1.0, "c": 2.0, "x": 1.0})] == ["a>b", "a>c"]
    (lost,) = view.neighbours(1.0, "a", {"b": 1.0, "c": float("inf")})
    assert (lost.key, lost.value) == ("a>c", None)


def test_a_crashed_node_is_not_called_unreachable() -> None:
    states = NodeStates(frozenset("ab"))

    def shown(changes: Any) -> list[str]:
        return [change.value["state"] for change in changes]

    assert shown(states.outcomes(0.0, {"ok": ["a", "b"]})) == ["ok", "ok"]
    assert shown(states.fault(1.0, "crash", "a")) == ["crashed"]
    assert shown(states.seen(1.5, "a", "unreachable", "no answer")) == []
    assert shown(states.fault(2.0, "restart", "a")) == ["ok"]
    assert shown(states.seen(3.0, "b", "unreachable", "no answer for 3 s")) == ["unreachable"]
    assert shown(states.fault(3.5, "silence", "b")) == ["silent"]
    assert shown(states.fault(4.0, "unsilence", "b")) == ["unreachable"]
    assert shown(states.seen(5.0, "b", "ok", "")) == ["ok"]
    assert shown(states.seen(5.0, "stranger", "failed", "")) == []
