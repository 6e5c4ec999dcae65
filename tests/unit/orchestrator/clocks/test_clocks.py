"""Offsets of clocks: never off by more than they say, whatever the ways take; and what they lead to."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.agent.control import Report, State
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import SameTau
from node_agent.model.checked import Checked, Refused
from orchestrator.apps.dataflow.birth_clocks import birth_clocks
from orchestrator.clocks.book import ClockBook, NodeClock, When, read_book
from orchestrator.clocks.correction import ahead_ns, clocks_in, pieces_of
from orchestrator.clocks.offsets import MOST_DRIFT, Exchange, Offset, between, estimate
from orchestrator.clocks.watch import ClockWatch, NoAnswer, measure
from orchestrator.errors import BadInput, RoveError

MS, SECOND = 10**6, 10**9
NOON_NS = 1_790_000_000 * SECOND

delays = st.integers(0, 3 * SECOND)
offsets = st.integers(-(10**6) * SECOND, 10**6 * SECOND)


@given(offsets, st.lists(st.tuples(delays, delays), min_size=1, max_size=8))
def test_the_true_offset_is_within_the_uncertainty(offset_ns: int, ways: list[tuple[int, int]]) -> None:
    exchanges = []
    now_ns = NOON_NS
    for there_ns, back_ns in ways:
        asked_ns = now_ns + there_ns
        exchanges.append(Exchange(now_ns, asked_ns + offset_ns, asked_ns + back_ns))
        now_ns = asked_ns + back_ns + MS
    found = estimate(exchanges)
    assert abs(found.offset_ns - offset_ns) <= found.uncertainty_ns
    assert found.uncertainty_ns <= min(there + back for there, back in ways) / 2 + 2_000


def test_answers_from_before_the_question_are_of_no_use() -> None:
    set_back = Exchange(NOON_NS, NOON_NS, NOON_NS - SECOND)
    assert estimate([set_back, Exchange(NOON_NS, NOON_NS + 7, NOON_NS)]).offset_ns == 7
    with pytest.raises(ValueError, match="no exchange"):
        estimate([set_back])


@pytest.mark.parametrize("told", [-(2**63), -1, 2**62 + 1, 2**63 - 1])
def test_a_time_that_no_clock_shows_is_no_answer(told: int) -> None:
    answer = msgspec.json.encode({"id": 1, "state": "running", "ready": True, "now_ns": told})
    with pytest.raises(Refused):
        Checked(Report, 1000).decode(answer)
    absurd = Exchange(NOON_NS, told, NOON_NS)
    assert estimate([absurd, Exchange(NOON_NS, NOON_NS + 7, NOON_NS + 2)]).offset_ns == 6
    with pytest.raises(ValueError, match="no exchange"):
        estimate([absurd])


@pytest.mark.parametrize(
    "samples",
    [
        [(NOON_NS, -(2**63), 1)],
        [(2**63, 0, 1)],
        [(NOON_NS, 0, 1), (NOON_NS, 1, 1), (NOON_NS, 2, 1)],
    ],
)
def test_clocks_that_nobody_measured_give_one_clear_error(samples: list[tuple[int, int, int]]) -> None:
    names = ("at_ns", "offset_ns", "uncertainty_ns")
    told = {"n1": {"samples": [dict(zip(names, sample, strict=True)) for sample in samples]}}
    with pytest.raises(BadInput, match="clocks in manifest"):
        clocks_in({"clocks": told})


@dataclass
class TrueClock:
    """Runs at one rate until a moment and at another one after it, both in the same direction."""

    rates: tuple[float, float]
    turn_s: float

    def offset_ns(self, t_s: float) -> int:
        first, second = self.rates
        return round((first * min(t_s, self.turn_s) + second * max(0.0, t_s - self.turn_s)) * 1e9)


rates = st.floats(0, MOST_DRIFT)
errors = st.integers(-2 * MS, 2 * MS)


@given(rates, rates, st.floats(0, 60), st.booleans(), errors, errors, st.floats(0, 60))
def test_between_two_measurements_a_clock_that_drifts_stays_within_the_uncertainty(
    one: float, other: float, turn_s: float, slow: bool, first_error: int, last_error: int, at_s: float
) -> None:
    sign = -1 if slow else 1
    clock = TrueClock((sign * one, sign * other), turn_s)
    before, after = (
        Offset(round(t_s * 1e9), clock.offset_ns(t_s) + error, abs(error))
        for t_s, error in ((0, first_error), (60, last_error))
    )
    found = between(before, after, round(at_s * 1e9))
    assert abs(found.offset_ns - clock.offset_ns(at_s)) <= found.uncertainty_ns + 2


def book_of(*samples: Offset, node: str = "n1") -> ClockBook:
    book = ClockBook()
    whens = [When.BEFORE, *[When.DURING] * (len(samples) - 2), When.AFTER]
    for sample, when in zip(samples, whens, strict=True):
        book.add(node, sample, when)
    return book


def drifting(ppm: float, uncertainty_ns: int = MS, start_ns: int = 0) -> list[Offset]:
    """Measured each 10 s for a minute."""
    return [
        Offset(NOON_NS + t * SECOND, start_ns + round(t * ppm * 1000), uncertainty_ns)
        for t in range(0, 70, 10)
    ]


def test_a_clock_that_only_drifts_raises_no_doubt() -> None:
    book = book_of(*drifting(50, start_ns=3 * SECOND))
    assert book.doubts(0.02, ["n1"]) == ()
    assert book.of("n1").drift_ppm() == pytest.approx(50)
    worst_ns = book.of("n1").worst_ns()
    assert worst_ns is not None
    assert MS <= worst_ns <= 5 * MS


def test_too_little_known_makes_a_doubt() -> None:
    (doubt,) = book_of(*drifting(0, 25 * MS)).doubts(0.02, ["n1"])
    assert doubt == "clock of n1 is known to within 25.0 ms only: more than clocks.uncertainty, 20 ms"
    assert book_of(*drifting(0, 25 * MS)).doubts(0.03, ["n1"]) == ()


def test_who_took_part_is_measured_before_and_after() -> None:
    book = ClockBook()
    book.add("n1", Offset(NOON_NS, 0, MS), When.BEFORE)
    book.miss("n1", When.DURING, "no answer within 2 s")
    book.miss("n1", When.AFTER, "no answer within 2 s")
    assert book.doubts(0.02, ["n1", "n0"]) == (
        "clock of n0 was not measured before the run",
        "clock of n0 was not measured after the run",
        "clock of n1 was not measured after the run: no answer within 2 s",
    )
    assert book.doubts(0.02, []) == ()


@pytest.mark.parametrize(
    ("size_ns", "told"), [(3 * SECOND, "forward by 3.000 s"), (-50 * MS, "back by 0.050 s")]
)
def test_a_clock_that_was_set_is_noticed(size_ns: int, told: str) -> None:
    samples = drifting(5)
    jumped = [*samples[:3], *(Offset(s.at_ns, s.offset_ns + size_ns, s.uncertainty_ns) for s in samples[3:])]
    (doubt,) = book_of(*jumped).doubts(0.02, ["n1"])
    assert doubt == f"clock of n1 was set {told} between 14:13:40.0 and 14:13:50.0 UTC"


def test_a_clock_that_was_set_and_set_back_is_noticed() -> None:
    samples = drifting(0)
    samples[3] = Offset(samples[3].at_ns, SECOND, 4 * MS)
    assert [step.size_ns for step in book_of(*samples).of("n1").steps()] == [SECOND, -SECOND]


def test_a_slow_answer_does_not_spoil_what_quick_ones_tell() -> None:
    samples = drifting(20)
    samples[3] = Offset(samples[3].at_ns, samples[3].offset_ns - 70 * MS, 80 * MS)
    book = book_of(*samples)
    assert samples[3] in book.of("n1").samples
    assert samples[3] not in book.of("n1").used()
    assert book.doubts(0.02, ["n1"]) == ()


def test_a_book_is_read_back_from_the_manifest() -> None:
    book = book_of(*drifting(50))
    book.miss("n2", When.BEFORE, "cable")
    document = json.loads(json.dumps(book.document()))
    again = read_book(document)
    assert json.loads(json.dumps(again.document())) == document
    assert again.doubts(0.02, ["n1", "n2"]) == book.doubts(0.02, ["n1", "n2"])
    assert document["n1"]["steps"] == []
    assert clocks_in({}) == {}
    with pytest.raises(BadInput, match=r"manifest\.json"):
        clocks_in({"clocks": {"n1": {"samples": 3}}})


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(-5 * MS, 5 * MS)), min_size=1, max_size=8), offsets)
def test_corrected_times_keep_their_order_and_meet_the_measurements(
    steps: list[tuple[int, int]], start_ns: int
) -> None:
    samples, at_ns, offset_ns = [], NOON_NS, start_ns
    for gap_s, moved_ns in steps:
        at_ns, offset_ns = at_ns + gap_s * SECOND, offset_ns + moved_ns
        samples.append(Offset(at_ns, offset_ns, 0))
    pieces = pieces_of(NodeClock(tuple(samples)))
    for sample in samples:
        assert abs(sample.node_ns - ahead_ns(pieces, sample.node_ns) - sample.at_ns) <= 1
    times = [samples[0].node_ns - SECOND + step * 997 * MS for step in range(100)]
    corrected = [t_ns - ahead_ns(pieces, t_ns) for t_ns in times]
    assert all(one < other for one, other in pairwise(corrected))


def test_a_clock_set_back_leaves_a_run_that_can_be_read() -> None:
    samples = (
        Offset(NOON_NS, 0, MS),
        Offset(NOON_NS + SECOND, -9 * SECOND, MS),
        Offset(NOON_NS + 60 * SECOND, 0, MS),
    )
    pieces = pieces_of(NodeClock(samples))
    assert all(one.until_ns == other.from_ns for one, other in pairwise(pieces))


def test_births_are_of_the_clock_of_their_source() -> None:
    query = Query(
        "pair",
        (
            OperatorSpec("left", "synthetic_source"),
            OperatorSpec("right", "synthetic_source"),
            OperatorSpec("seen", "synthetic_operator", ("left",)),
            OperatorSpec("both", "synthetic_operator", ("seen", "right"), takes=SameTau()),
            OperatorSpec("sink", "collect", ("both",)),
        ),
    )
    places = {"left": "n1", "right": "n2", "seen": "n3", "both": "n3", "sink": "n4"}
    plan = DeploymentPlan(query, tuple(Replica(name, 0, node) for name, node in places.items()))
    # n2 begins behind n1, and overtakes it.
    ahead = {"n1": (5 * MS, 5 * MS), "n2": (0, 20 * MS), "n3": (SECOND, SECOND)}
    clocks = {
        node: pieces_of(NodeClock((Offset(NOON_NS, first, 0), Offset(NOON_NS + 60 * SECOND, last, 0))))
        for node, (first, last) in ahead.items()
    }
    births = birth_clocks(clocks, plan)
    assert births["left/0"] == clocks["n1"]
    assert births["right/0"] == clocks["n2"]
    assert ahead_ns(births["both"], NOON_NS - 9 * SECOND) == 5 * MS
    assert ahead_ns(births["both"], NOON_NS + 99 * SECOND) == 20 * MS
    assert set(births) == {"left/0", "right/0", "both"}


@dataclass
class FakeNode:
    """Answers by a clock of its own, as many times as it may."""

    ahead_ns: int
    answers: int = 10**9
    now_ns: int = NOON_NS
    asked: int = 0
    twice: asyncio.Event = field(default_factory=asyncio.Event)

    def ours_ns(self) -> int:
        self.now_ns += MS
        return self.now_ns

    async def ask(self) -> Report:
        self.asked += 1
        if self.asked == 16:
            self.twice.set()
        if self.asked > self.answers:
            raise RoveError("the connection is gone")
        return Report(1, State.RUNNING, True, self.ours_ns() + self.ahead_ns)


def test_a_burst_measures_what_was_answered_of_it() -> None:
    node = FakeNode(7 * SECOND, answers=2)
    found = asyncio.run(measure(node.ask, now_ns=node.ours_ns))
    assert node.asked == 3
    assert abs(found.offset_ns - 7 * SECOND) <= found.uncertainty_ns <= 2 * MS
    dead = FakeNode(0, answers=0)
    with pytest.raises(NoAnswer, match="the connection is gone"):
        asyncio.run(measure(dead.ask))


async def hanging() -> Report:
    await asyncio.Event().wait()
    raise AssertionError


def test_the_watch_measures_before_during_and_after_and_outlives_dead_nodes() -> None:
    async def watched() -> ClockBook:
        node, mortal = FakeNode(0), FakeNode(0, answers=8)
        asks = {"n1": node.ask, "n2": mortal.ask, "n3": hanging}
        book = ClockBook()
        watch = ClockWatch(book, asks, period=0.01, timeout=0.05, now_ns=node.ours_ns)
        await watch.before()
        assert node.asked == 8
        watch.start()
        await node.twice.wait()
        await watch.after()
        await watch.close()
        return book

    book = asyncio.run(watched())
    assert book.of("n1").measured == {When.BEFORE, When.DURING, When.AFTER}
    assert book.of("n2").measured == {When.BEFORE}
    assert "n3 was not measured before the run: no answer within 0.05 s" in str(book.doubts(1.0, ["n3"]))
    assert "n2 was not measured after the run: the connection is gone" in str(book.doubts(1.0, ["n2"]))
