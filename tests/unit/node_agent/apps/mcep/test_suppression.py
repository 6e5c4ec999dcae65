"""What the last epoch brought is neither sent nor computed again, and nothing else changes (T-10 to T-12,
T-37)."""

import pytest

from node_agent.apps.mcep.channel import Log
from node_agent.apps.mcep.geometry import Box, Region
from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.model import Event, Policy, Query
from node_agent.apps.mcep.windows import (
    ByEvents,
    Consume,
    Count,
    Full,
    Operator,
    RestrictionWindow,
    Window,
    filter_operator,
)
from tests.unit.node_agent.apps.mcep.driving import Machines, Recorded, seen

pytestmark = pytest.mark.unit

WEST = Box(0, -1, 100, 1)
BOTH_SIDES = Box(0, -1, 200, 1)
EAST = Box(100.5, -1, 200, 1)


def pairs(*, suppression: bool) -> tuple[Query, Recorded]:
    """speed → sp (a filter) → avg (pairs, each event once) → the consumer."""
    correlate = Recorded()
    average = Operator(
        "avg",
        (Window("w", "sp", Count(2), ByEvents(1), "oldest"),),
        RestrictionWindow(10.0),
        correlate,
        Full("w"),
        consumption=Consume("all"),
    )
    graph = OperatorGraph(
        (Source("speed", "speed"),),
        (filter_operator("sp", "speed", lambda each: True, "sp"), average),
        (Stream("speed", "sp"), Stream("sp", "avg"), Stream("avg")),
    )
    policy = Policy(suppression=suppression)
    return Query("q", graph, "fo", lambda place: WEST, 10.0, policy), correlate


def run(
    events: list[Event], first: Region, second: Region, *, suppression: bool
) -> tuple[Machines, Recorded, int]:
    """Two epochs: from 0 on, and from 6 on. Returns how many selections were processed in the first one."""
    query, correlate = pairs(suppression=suppression)
    machines = Machines(query)
    machines.switch(first, 0.0)
    machines.see(events)
    machines.arrive(6.0)
    processed = len(correlate.seen)
    machines.sent.clear()
    machines.switch(second, 6.0)
    machines.arrive(8.0)
    machines.switch(None, 8.0)
    return machines, correlate, processed


def names(machines: Machines, epoch: int) -> list[set[str]]:
    return [{name for name, _ in provenance} for _, provenance in machines.results(epoch)]


FIVE = [seen(f"e{n}", "speed", n, 150.0 if n == 3 else 50.0) for n in range(1, 6)]


def test_t10_only_the_new_event_is_streamed() -> None:
    machines, correlate, before = run(FIVE, WEST, BOTH_SIDES, suppression=True)
    assert correlate.seen[:before] == [{"e1 sp", "e2 sp"}, {"e4 sp", "e5 sp"}]
    assert names(machines, 1) == [{"e1", "e2"}, {"e4", "e5"}]
    assert names(machines, 2) == [{"e1", "e2"}, {"e3", "e4"}]
    assert correlate.seen[before:] == [{"e3 sp", "e4 sp"}]  # {e1, e2} is not computed again
    assert [each.source for each in machines.events_sent("speed")] == ["e3"]
    first = (2, 0, "avg")
    assert machines.logs_sent("avg") == [Log(first, first)]  # the consumer is told that o1 stays
    reused = machines.operators["avg"]._reused
    assert reused is not None
    plain, computed, _ = run(FIVE, WEST, BOTH_SIDES, suppression=False)
    assert names(plain, 2) == names(machines, 2) and len(plain.events_sent("speed")) == 5
    assert len(computed.seen) == 4


def test_t10_entries_name_outputs_and_the_span_of_their_selection() -> None:
    query, _ = pairs(suppression=True)
    machines = Machines(query)
    machines.switch(WEST, 0.0)
    machines.see(FIVE)
    machines.arrive(6.0)
    reused = machines.operators["avg"]._reused
    assert reused is not None
    entry = next(iter(reused.entries.values()))
    assert (len(entry.outputs), entry.first, entry.last) == (1, 1, 2)


def test_t11_a_shifted_selection_is_computed_anew() -> None:
    """E3: with event 1 gone, pairs are (2, 3); the span of (3, 4) lies within the log, but it is not the
    same."""
    events = [seen(f"e{n}", "speed", n, 50.0 if n == 1 else 150.0) for n in range(1, 5)]
    machines, correlate, before = run(events, BOTH_SIDES, EAST, suppression=True)
    assert names(machines, 1) == [{"e1", "e2"}, {"e3", "e4"}]
    assert names(machines, 2) == [{"e2", "e3"}]
    assert correlate.seen[before:] == [{"e2 sp", "e3 sp"}]


def test_t12_logs_end_at_removed_events() -> None:
    """E4: the middle event leaves the region; its neighbours stay."""
    events = [seen(f"e{n}", "speed", n, 50.0 if n == 3 else 150.0) for n in range(1, 6)]
    machines, _, _ = run(events, BOTH_SIDES, EAST, suppression=True)
    assert names(machines, 1) == [{"e1", "e2"}, {"e3", "e4"}]
    assert names(machines, 2) == [{"e1", "e2"}, {"e4", "e5"}]
    assert machines.events_sent("speed") == []


def test_t12_a_log_of_results_is_split_where_one_is_gone() -> None:
    query, _ = pairs(suppression=True)
    events = [seen(f"e{n}", "speed", n / 2, 50.0 if n in (3, 4) else 150.0) for n in range(1, 9)]
    machines = Machines(query)
    machines.switch(BOTH_SIDES, 0.0)
    machines.see(events)
    machines.arrive(6.0)
    machines.sent.clear()
    machines.switch(EAST, 6.0)
    machines.arrive(7.0)
    assert [(log.first[0], log.last[0]) for log in machines.logs_sent("avg")] == [(1.0, 1.0), (3.0, 4.0)]
    machines.switch(None, 8.0)
    machines.arrive(8.0)
    assert names(machines, 2) == [{"e1", "e2"}, {"e5", "e6"}, {"e7", "e8"}]


def test_t37_disjoint_regions_share_nothing_identical_ones_stream_no_history() -> None:
    apart, _, _ = run(FIVE, WEST, EAST, suppression=True)
    assert [each.source for each in apart.events_sent("speed")] == ["e3"]
    assert apart.logs_sent("avg") == [] and apart.operators["avg"].counts.reused == 0
    same, correlate, before = run(FIVE, WEST, WEST, suppression=True)
    assert same.events_sent("speed") == [] and correlate.seen[before:] == []
    assert names(same, 2) == names(same, 1)
