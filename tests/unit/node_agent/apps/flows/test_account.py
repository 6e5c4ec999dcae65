"""What sources and sinks count."""

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.flows.account import (
    FARTHEST_NS,
    HELD_SECONDS,
    MOST_HELD,
    REPEATS,
    WINDOW,
    ReceivedAccount,
    SentAccount,
)
from node_agent.apps.flows.delays import bucket_of, middle_ns, quantile
from node_agent.apps.flows.events import FlowReceived, Heard
from node_agent.apps.flows.schedule import NS

MS = 1_000_000


@given(st.integers(-(2**61), 2**61))
def test_a_bucket_is_within_2_percent(value: int) -> None:
    assert abs(middle_ns(bucket_of(value)) - value) <= max(abs(value) * 0.016, 1000)


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**40))
def test_buckets_are_in_order(value: int, more: int) -> None:
    assert bucket_of(value) <= bucket_of(value + more)
    assert bucket_of(middle_ns(bucket_of(value))) == bucket_of(value)


def test_quantiles() -> None:
    assert quantile([(30, 1), (10, 18), (20, 1)], 0.5) == 10
    assert quantile([(30, 1), (10, 18), (20, 1)], 0.95) == 20
    assert quantile([(30, 1), (10, 18), (20, 1)], 1.0) == 30
    assert quantile([], 0.5) is None


def test_a_source_counts_by_seconds() -> None:
    account = SentAccount("f", 10 * NS)
    assert account.send(10 * NS, 100) == (0, 0)
    assert account.send(11 * NS - 1, 100) == (1, 0)
    assert account.send(11 * NS, 50) == (2, 1)
    sample = account.sample(0)
    assert sample is not None
    assert (sample.packets, sample.bytes) == (3, 250)
    assert sample.seconds == ((0, 2, 200), (1, 1, 50))


def test_a_lost_record_is_made_up_for() -> None:
    account = SentAccount("f", 0)
    account.send(0, 100)
    listed = [account.sample(0) for _ in range(REPEATS + 1)]
    assert [sample.seconds for sample in listed if sample] == [((0, 1, 100),)] * REPEATS
    assert listed[-1] is None
    account.skipped += 1
    sample = account.sample(0)
    assert sample is not None and sample.skipped == 1 and sample.packets == 1


def sampled(account: ReceivedAccount) -> FlowReceived:
    sample = account.sample(0)
    assert sample is not None
    return sample


def test_duplicates_and_reordering() -> None:
    account = ReceivedAccount("f", 0, 0)
    taken = [account.take(number, 0, 100, 0, 5 * MS) for number in (0, 2, 1, 2, 3, 0)]
    assert taken == [True, True, True, False, True, False]
    sample = sampled(account)
    assert (sample.packets, sample.duplicates, sample.reordered, sample.late) == (4, 2, 1, 0)


def test_what_is_older_than_the_window_is_late() -> None:
    account = ReceivedAccount("f", 0, 0)
    assert account.take(WINDOW + 5, 0, 100, 0, 0)
    assert not account.take(5, 0, 100, 0, 0)
    assert account.take(6, 0, 100, 0, 0)
    assert account.late == 1


def test_packets_of_seconds_long_past_are_late() -> None:
    account = ReceivedAccount("f", 0, 0)
    assert account.take(0, HELD_SECONDS + 7, 100, 0, 0)
    assert not account.take(1, 7, 100, 0, 0)
    assert account.take(2, 8, 100, 0, 0)
    assert account.late == 1


def test_delays_and_jitter() -> None:
    account = ReceivedAccount("f", 0, 0)
    for number, delay in enumerate((10, 30, 20)):
        account.take(number, 0, 100, number * 100 * MS, (number * 100 + delay) * MS)
    (heard,) = map(Heard.of, sampled(account).heard)
    assert heard.base_ns == 10 * MS
    assert (heard.sum_ns, heard.least_ns, heard.most_ns) == (30 * MS, 0, 20 * MS)
    first = 20 * MS / 16
    assert heard.jitter_ns == round(first + (10 * MS - first) / 16)
    assert sum(count for _, count in heard.delays) == 3


def test_clocks_that_disagree_lose_no_precision() -> None:
    account = ReceivedAccount("f", 0, 0)
    apart = 3600 * NS
    for number, delay in enumerate((10, 12, 11)):
        account.take(number, 0, 100, apart, delay * MS)
    (heard,) = map(Heard.of, sampled(account).heard)
    assert heard.base_ns == 10 * MS - apart
    assert [middle_ns(bucket) // MS for bucket, _ in heard.delays] == [0, 1, 2] or heard.most_ns == 2 * MS


def test_a_clock_that_jumps_cannot_spoil_a_record() -> None:
    account = ReceivedAccount("f", 0, 0)
    account.take(0, 0, 100, 2**62, 0)
    account.take(1, 0, 100, 0, 2**62)
    (heard,) = map(Heard.of, sampled(account).heard)
    assert heard.most_ns == FARTHEST_NS
    assert heard.sum_ns <= 2 * FARTHEST_NS


def test_arrivals_are_counted_by_the_sinks_own_seconds() -> None:
    account = ReceivedAccount("f", 0, opened_ns=100 * NS)
    account.take(0, 4, 100, 0, 101 * NS)
    account.take(1, 5, 100, 0, 101 * NS + 1)
    sample = sampled(account)
    assert [Heard.of(row).second for row in sample.heard] == [4, 5]
    assert sample.arrived == ((1, 2, 200),)


def test_memory_stays_bounded() -> None:
    account, rng = ReceivedAccount("f", 0, 0), random.Random(1)
    for number in range(5000):
        account.take(rng.getrandbits(31), rng.getrandbits(31), 100, 0, number * NS)
        sample = account.sample(0)
        assert sample is None or len(sample.heard) <= REPEATS + 1
    assert len(account._heard._values) <= HELD_SECONDS + REPEATS


def test_a_source_that_claims_a_new_second_with_every_packet_costs_little() -> None:
    account, many = ReceivedAccount("f", 0, 0), 50_000
    begun = time.process_time()
    for number in range(many):
        account.take(number, number, 100, 0, 0)
    assert time.process_time() - begun < 5.0, "it took minutes when each packet looked at all seconds"
    assert (
        len(account._heard._values) == len(account._heard._in_order) + MOST_HELD - HELD_SECONDS == MOST_HELD
    )
    assert (account.packets, account.late) == (MOST_HELD, many - MOST_HELD)
    for _ in range(REPEATS * MOST_HELD // 1024):
        assert len(sampled(account).heard) == 1024
    assert account.take(many, many, 100, 0, 0), "there is room again"
    assert len(account._heard._values) <= HELD_SECONDS + 1


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 300)), max_size=200))
def test_every_packet_is_counted_once(packets: list[tuple[int, int]]) -> None:
    account = ReceivedAccount("f", 0, 0)
    for number, second in packets:
        account.take(number, second, 10, 0, 0)
    total = account.packets + account.duplicates + account.late
    assert total == len(packets)
    assert account.packets <= len({number for number, _ in packets})
