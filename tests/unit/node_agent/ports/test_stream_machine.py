"""The stream machine alone, over a channel that loses, repeats, delays and reorders at will."""

import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.ports.virtual.congestion import CongestionWindow, RetransmissionTimeout
from node_agent.ports.virtual.reassembly import Reassembly
from node_agent.ports.virtual.segment import RST, SYN, Segment, StreamConfig, reset_in_answer_to
from node_agent.ports.virtual.stream import Ending, Phase, StreamMachine

MS = 1_000_000
SECOND = 1_000_000_000
Fate = Callable[[Segment, int], list[int]]
"""For a segment sent now: how long each copy of it travels. No copy, and it is lost."""


def steady(segment: Segment, now_ns: int) -> list[int]:
    return [5 * MS]


class Pair:
    """Two machines, a channel, and the time. ``client`` connects; ``server`` comes with the first SYN."""

    def __init__(self, fate: Fate = steady, config: StreamConfig | None = None, reads: bool = True) -> None:
        self.config = config or StreamConfig()
        self.now_ns = 0
        self.reads = reads
        self.fate = fate
        self.got = bytearray()
        self.sent: list[Segment] = []
        self._on_the_way: list[tuple[int, int, bool, Segment]] = []
        self._count = 0
        self.server: StreamMachine | None = None
        self.client = StreamMachine.connect(self.config, 1000, 80, 0)
        self.flush()

    def flush(self) -> None:
        for machine, to_server in ((self.client, True), (self.server, False)):
            if machine is None:
                continue
            if machine is self.server and self.reads:
                self.got += machine.read(1 << 30, self.now_ns)
            outbox, machine.outbox = machine.outbox, []
            for segment in outbox:
                self.sent.append(segment)
                for delay in self.fate(segment, self.now_ns):
                    self._put(delay, to_server, segment)

    def _put(self, delay: int, to_server: bool, segment: Segment) -> None:
        self._count += 1
        heappush(self._on_the_way, (self.now_ns + delay, self._count, to_server, segment))

    def step(self) -> bool:
        """The next thing that happens; False if nothing ever will."""
        times = [self._on_the_way[0][0]] if self._on_the_way else []
        machines = [m for m in (self.client, self.server) if m is not None]
        times += [m.deadline_ns for m in machines if m.deadline_ns is not None]
        if not times:
            return False
        assert min(times) >= self.now_ns
        self.now_ns = min(times)
        while self._on_the_way and self._on_the_way[0][0] == self.now_ns:
            _, _, to_server, segment = heappop(self._on_the_way)
            self._arrive(segment, to_server)
        for machine in machines:
            if machine.deadline_ns is not None and machine.deadline_ns <= self.now_ns:
                machine.on_timer(self.now_ns)
        self.flush()
        return True

    def _arrive(self, segment: Segment, to_server: bool) -> None:
        machine = self.server if to_server else self.client
        if to_server and machine is None and segment.flags == SYN:
            self.server = StreamMachine.accept(self.config, segment, self.now_ns)
        elif machine is None or machine.phase is Phase.CLOSED:
            if reset := reset_in_answer_to(segment):
                self._put(5 * MS, not to_server, reset)
        else:
            machine.on_segment(segment, self.now_ns)

    def run(self, until: Callable[[], bool], limit_s: float = 3600) -> None:
        while not until():
            assert self.now_ns < limit_s * SECOND, "it hangs"
            assert self.step(), "nothing left to happen"

    def open(self) -> StreamMachine:
        self.run(lambda: self.client.phase is Phase.OPEN and self.server is not None)
        assert self.server is not None
        self.run(lambda: self.server is not None and self.server.phase is Phase.OPEN)
        return self.server

    def write(self, data: bytes) -> None:
        self.client.write(data, self.now_ns)
        self.flush()

    def close(self, *machines: StreamMachine) -> None:
        for machine in machines:
            machine.close(self.now_ns)
        self.flush()

    def finished(self) -> bool:
        return self.client.phase is Phase.CLOSED and (
            self.server is None or self.server.phase is Phase.CLOSED
        )


def data_segments(pair: Pair) -> list[Segment]:
    return [segment for segment in pair.sent if segment.data]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    loss=st.floats(0, 0.4),
    repeats=st.floats(0, 0.3),
    jitter_ms=st.integers(0, 200),
    writes=st.lists(st.integers(0, 30_000), max_size=8),
    window=st.sampled_from([500, 4_000, 65_536]),
)
def test_bytes_arrive_intact_and_in_order_or_the_stream_is_lost(
    seed: int, loss: float, repeats: float, jitter_ms: int, writes: list[int], window: int
) -> None:
    rng = random.Random(seed)

    def fate(segment: Segment, now_ns: int) -> list[int]:
        if rng.random() < loss:
            return []
        copies = 2 if rng.random() < repeats else 1
        return [MS + rng.randrange(jitter_ms * MS + 1) for _ in range(copies)]

    pair = Pair(fate, StreamConfig(receive_buffer=window))
    payload = rng.randbytes(sum(writes))
    at = 0
    for size in writes:
        pair.write(payload[at : at + size])
        at += size
        for _ in range(rng.randrange(20)):
            pair.step()
    server_closes = rng.random() < 0.5
    pair.run(lambda: pair.client.phase is not Phase.CONNECTING, limit_s=100_000)
    pair.close(pair.client)
    while not pair.finished():
        assert pair.now_ns < 200_000 * SECOND, "it hangs"
        assert pair.step(), "nothing left to happen"
        server = pair.server
        if server is not None and server.eof and (server_closes or pair.client.phase is Phase.CLOSED):
            pair.close(server)
    assert payload.startswith(pair.got)
    assert pair.server is not None
    if pair.client.ending is Ending.IN_ORDER and pair.server.eof:
        assert pair.got == payload
    if loss < 0.01:
        assert pair.got == payload


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.randoms(use_true_random=False), st.integers(1, 60))
def test_reassembly_of_any_overlapping_pieces(data: bytes, rng: random.Random, longest: int) -> None:
    reassembly = Reassembly(capacity=100)
    got = bytearray()
    for _ in range(5000):
        start = max(reassembly.next - rng.randrange(longest), 0) + rng.choice([0, rng.randrange(60)])
        reassembly.add(start, data[start : start + rng.randrange(1, longest + 1)])
        assert reassembly.window >= 0
        if rng.random() < 0.5:
            got += reassembly.take(rng.randrange(80))
        if len(got) == len(data):
            break
    assert got == data


def test_opening_takes_one_round_trip_and_survives_lost_segments() -> None:
    losses = [SYN, SYN]

    def fate(segment: Segment, now_ns: int) -> list[int]:
        if losses and segment.flags == losses[0]:
            losses.pop(0)
            return []
        return [5 * MS]

    pair = Pair()
    pair.open()
    assert pair.now_ns <= 15 * MS
    pair = Pair(fate)
    pair.open()
    assert pair.now_ns == 3 * SECOND + 15 * MS  # one second, then two


def test_slow_start_from_ten_segments_with_every_second_acknowledged() -> None:
    pair = Pair(lambda segment, now_ns: [50 * MS])
    pair.open()
    pair.sent.clear()
    opened = pair.now_ns
    pair.write(b"x" * 100 * 1448)
    assert len(data_segments(pair)) == 10
    pair.run(lambda: pair.now_ns >= opened + 100 * MS)
    acknowledgements = [s for s in pair.sent if s.source_port == 80]
    assert len(acknowledgements) == 5
    assert len(data_segments(pair)) == 25  # 10, and 15 more: the window grew by one for each acknowledgement


def test_a_single_segment_is_acknowledged_after_the_delay() -> None:
    pair = Pair()
    pair.open()
    pair.sent.clear()
    before = pair.now_ns
    pair.write(b"x")
    pair.run(lambda: len(pair.sent) == 2)
    assert pair.now_ns - before == 5 * MS + pair.config.delayed_ack_ns


def test_a_lost_segment_is_sent_again_before_the_timeout_and_halves_the_window() -> None:
    lost: list[int] = []

    def fate(segment: Segment, now_ns: int) -> list[int]:
        if len(segment.data) == 1448 and segment.sequence == 1 + 5 * 1448 and not lost:
            lost.append(segment.sequence)
            return []
        return [5 * MS]

    pair = Pair(fate)
    pair.open()
    started = pair.now_ns
    payload = random.Random(1).randbytes(40 * 1448)
    pair.write(payload)
    pair.run(lambda: len(pair.got) == len(payload))
    assert pair.got == payload
    assert pair.now_ns - started < pair.config.min_rto_ns
    copies = [s for s in data_segments(pair) if s.sequence == lost[0]]
    assert len(copies) == 2
    assert len(data_segments(pair)) == 41


def test_many_losses_in_one_window_are_mended_without_a_timeout() -> None:
    lost: set[int] = set()

    def fate(segment: Segment, now_ns: int) -> list[int]:
        index = segment.sequence // 1448
        if segment.data and index in (20, 22, 23, 27) and index not in lost:
            lost.add(index)
            return []
        return [5 * MS]

    pair = Pair(fate)
    pair.open()
    started = pair.now_ns
    payload = bytes(60 * 1448)
    pair.write(payload)
    pair.run(lambda: len(pair.got) == len(payload))
    assert len(lost) == 4
    assert pair.now_ns - started < pair.config.min_rto_ns
    assert len(data_segments(pair)) == 64


def test_a_dead_path_is_given_up_in_time() -> None:
    dead = False
    pair = Pair(lambda segment, now_ns: [] if dead else [5 * MS])
    server = pair.open()
    dead = True
    started = pair.now_ns
    pair.write(b"x")
    pair.run(lambda: pair.client.phase is Phase.CLOSED)
    assert pair.client.ending is Ending.DEAD_PATH
    assert pair.now_ns - started == pair.config.give_up_ns
    retries = [s.sent_ns - started for s in data_segments(pair)]
    gaps = [b - a for a, b in pairwise(retries)]
    assert gaps == [200 * MS, 400 * MS, 800 * MS, 1600 * MS]
    # The reader has nothing outstanding: it finds out by asking.
    pair.run(lambda: server.phase is Phase.CLOSED)
    assert server.ending is Ending.DEAD_PATH
    assert pair.now_ns - started <= pair.config.idle_ns + pair.config.give_up_ns


def test_an_idle_stream_stays_open_while_the_peer_answers() -> None:
    pair = Pair()
    server = pair.open()
    pair.run(lambda: pair.now_ns > 100 * SECOND)
    assert pair.client.phase is server.phase is Phase.OPEN


def test_a_reader_that_pauses_is_not_a_dead_path() -> None:
    pair = Pair(reads=False)
    server = pair.open()
    payload = random.Random(2).randbytes(400_000)
    pair.write(payload)
    pair.run(lambda: pair.now_ns > 60 * SECOND)
    assert pair.client.phase is Phase.OPEN
    assert len(server.unread) == pair.config.receive_buffer
    assert not pair.client.has_room
    pair.reads = True
    resumed = pair.now_ns
    pair.flush()
    pair.run(lambda: len(pair.got) == len(payload))
    assert pair.got == payload
    assert pair.now_ns - resumed < SECOND  # the reader said so itself, no probe had to ask


def test_a_reader_that_pauses_and_then_vanishes_is_given_up() -> None:
    dead = False
    pair = Pair(lambda segment, now_ns: [] if dead else [5 * MS], reads=False)
    pair.open()
    pair.write(bytes(400_000))
    pair.run(lambda: pair.now_ns > 60 * SECOND)
    dead = True
    pair.run(lambda: pair.client.phase is Phase.CLOSED)
    assert pair.client.ending is Ending.DEAD_PATH
    assert pair.now_ns < 69 * SECOND


def test_both_sides_close_in_order() -> None:
    pair = Pair()
    server = pair.open()
    pair.write(b"bye")
    pair.close(pair.client)
    pair.run(lambda: server.eof)
    assert pair.got == b"bye"
    pair.close(server)
    pair.run(pair.finished)
    assert pair.client.ending is server.ending is Ending.IN_ORDER


def test_both_sides_close_at_once() -> None:
    pair = Pair()
    server = pair.open()
    pair.close(pair.client, server)
    pair.run(pair.finished)
    assert pair.client.ending is server.ending is Ending.IN_ORDER


def test_a_peer_that_never_closes_is_let_go() -> None:
    pair = Pair()
    server = pair.open()
    pair.close(pair.client)
    pair.run(pair.finished)
    assert pair.client.ending is Ending.IN_ORDER
    assert server.eof


def test_an_abort_resets_the_peer_and_leaves_what_had_arrived() -> None:
    pair = Pair(reads=False)
    server = pair.open()
    pair.write(b"kept")
    pair.run(lambda: len(server.unread) == 4)
    pair.client.abort(pair.now_ns)
    pair.flush()
    pair.run(pair.finished)
    assert pair.client.ending is Ending.ABORTED
    assert server.ending is Ending.RESET
    assert server.read(10, pair.now_ns) == b"kept"


def test_a_reset_that_does_not_fit_is_ignored() -> None:
    pair = Pair()
    server = pair.open()
    stray = Segment(1000, 80, len(server.unread) + 10_000_000, 1, 0, RST, b"", 0, -1)
    server.on_segment(stray, pair.now_ns)
    assert server.phase is Phase.OPEN


def test_nobody_listens() -> None:
    client = StreamMachine.connect(StreamConfig(), 1000, 80, 0)
    reset = reset_in_answer_to(client.outbox[0])
    assert reset is not None
    client.on_segment(reset, 5 * MS)
    assert client.ending is Ending.REFUSED
    assert reset_in_answer_to(reset) is None


def test_the_timeout_follows_the_round_trip_and_backs_off() -> None:
    rto = RetransmissionTimeout(StreamConfig(min_rto_ns=SECOND // 5))
    assert rto.current_ns == SECOND
    for _ in range(100):
        rto.sample(400 * MS)
    assert rto.current_ns == pytest.approx(400 * MS, rel=0.01)
    rto.back_off()
    rto.back_off()
    assert rto.current_ns == pytest.approx(1600 * MS, rel=0.01)
    for _ in range(20):
        rto.back_off()
    assert rto.current_ns == 60 * SECOND
    rto.sample(10 * MS)
    assert rto.current_ns < SECOND


def test_congestion_avoidance_adds_one_segment_a_round_trip() -> None:
    config = StreamConfig(mss=1000, initial_window=10)
    window = CongestionWindow(config)
    window.timed_out(flight=40_000, sent=40_000, repeated=False)
    assert window.size == 1000
    sent = 40_000
    while window.size < 20_000:
        window.acknowledged(1000, sent, flight_before=window.size)
        sent += 1000
    for _ in range(20):
        window.acknowledged(1000, sent, flight_before=window.size)
        sent += 1000
    assert 20_900 < window.size <= 21_000


def test_a_window_that_is_not_used_does_not_grow() -> None:
    window = CongestionWindow(StreamConfig(mss=1000, initial_window=10))
    for sent in range(100):
        window.acknowledged(1000, sent * 1000, flight_before=1000)
    assert window.size == 10_000
