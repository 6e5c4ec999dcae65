"""When flows send: rates, on and off periods, limits and traces."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.flows.model import SMALLEST, Flow, OnOff, Trace
from node_agent.apps.flows.schedule import NS, Period, Send, chunk_sizes, periods, schedule


def flow(**changes: object) -> Flow:
    return Flow(**{"name": "f", "source": "a", "sink": "b", "protocol": "udp", "size": 500, **changes})  # type: ignore[arg-type]


def test_a_constant_rate_has_equal_gaps() -> None:
    sends = list(islice(schedule(flow(rate=16_000.0, start=2.0)), 4))
    assert sends == [Send(2 * NS + k * NS // 4, 500) for k in range(4)]


def test_gaps_do_not_drift() -> None:
    sends = islice(schedule(flow(size=100, rate=3 * 800.0)), 3000, 3001)
    assert next(sends).at_ns == 1000 * NS


def test_a_flow_stops() -> None:
    assert len(list(schedule(flow(rate=4000.0, start=1.0, stop=4.0)))) == 3
    assert list(schedule(flow(rate=4000.0, start=4.0, stop=4.0))) == []


def test_on_and_off_in_turn() -> None:
    on_off = OnOff(1.0, 2.0)
    assert list(islice(periods(flow(on_off=on_off, start=1.0)), 2)) == [
        Period(NS, 2 * NS),
        Period(4 * NS, 5 * NS),
    ]
    sends = list(schedule(flow(rate=8000.0, on_off=on_off, stop=6.0)))
    assert [send.at_ns / NS for send in sends] == [0, 0.5, 3, 3.5]


def test_short_on_periods_do_not_raise_the_rate() -> None:
    on_off = OnOff(0.1, 0.1)
    sends = list(schedule(flow(rate=8000.0, on_off=on_off, stop=100.0)))
    assert len(sends) == 100  # two a second, half of the time


def test_exponential_periods_keep_their_means_and_repeat_with_the_seed() -> None:
    talk = flow(on_off=OnOff(1.0, 1.35, "exponential"), stop=10_000.0, seed="1")
    drawn = list(periods(talk))
    share = sum(end - begin for begin, end in drawn) / (10_000 * NS)
    assert share == pytest.approx(1 / 2.35, abs=0.02)
    assert drawn == list(periods(talk))
    assert drawn[:5] != list(islice(periods(flow(on_off=talk.on_off, seed="2")), 5))


def test_limits_end_a_flow() -> None:
    assert len(list(schedule(flow(rate=4000.0, packets=7)))) == 7
    assert [send.size for send in schedule(flow(rate=4000.0, bytes=1200))] == [500, 500, 200]
    assert [send.size for send in schedule(flow(rate=4000.0, bytes=1001))] == [500, 500, SMALLEST]
    assert list(chunk_sizes(flow(protocol="tcp", bytes=1000))) == [500, 500]


def test_a_trace_begins_with_the_flow() -> None:
    trace = Trace((0, NS, 5 * NS), (100, 200, 300))
    traced = flow(trace="t", start=2.0, stop=6.0)
    assert list(schedule(traced, trace)) == [Send(2 * NS, 100), Send(3 * NS, 200)]


@given(
    st.floats(0.01, 5),
    st.floats(0.01, 5),
    st.integers(SMALLEST, 1472),
    st.floats(1000, 1e6),
    st.sampled_from(["constant", "exponential"]),
)
def test_times_never_go_back_and_lie_in_on_periods(
    on: float, off: float, size: int, rate: float, distribution: str
) -> None:
    talk = flow(size=size, rate=rate, on_off=OnOff(on, off, distribution), stop=20.0)  # type: ignore[arg-type]
    on_periods = list(periods(talk))
    last = -1
    for at_ns, _ in islice(schedule(talk), 500):
        assert at_ns >= last
        assert any(begin <= at_ns < end for begin, end in on_periods)
        last = at_ns


@given(
    st.sampled_from([None, OnOff(0.3, 0.2), OnOff(0.01, 0.7, "exponential")]),
    st.sampled_from([1e3, 3e5, 7.7e6]),
    st.sampled_from([{}, {"bytes": 30_001}, {"packets": 99}]),
    st.integers(0, 3 * NS),
    st.integers(0, 50),
)
def test_skipping_leaves_out_what_is_due_before(
    on_off: OnOff | None, rate: float, limits: dict[str, int], before_ns: int, taken: int
) -> None:
    made = flow(rate=rate, on_off=on_off, stop=2.0, **limits)
    rest = list(schedule(made))[taken:]
    skipping = schedule(made)
    for _ in range(taken):
        next(skipping, None)
    skipped = skipping.skip(before_ns)
    assert skipped == sum(send.at_ns < before_ns for send in rest)
    assert list(skipping) == rest[skipped:]


def test_skipping_takes_no_time() -> None:
    fast = schedule(flow(rate=1e12, size=SMALLEST, start=1.0))
    assert fast.skip(2 * NS) == pytest.approx(1e12 / 8 / SMALLEST, rel=1e-6)
    assert next(fast).at_ns == 2 * NS


def test_a_trace_can_be_skipped() -> None:
    skipping = schedule(flow(trace="t", start=2.0), Trace((0, NS, 5 * NS), (100, 200, 300)))
    assert skipping.skip(3 * NS) == 1
    assert next(skipping) == Send(3 * NS, 200)
