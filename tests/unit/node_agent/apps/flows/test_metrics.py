"""The live figures of flows follow from their records; a second that is listed again counts once."""

import pytest

from node_agent.apps.flows.account import ReceivedAccount, SentAccount
from node_agent.apps.flows.events import FlowReceived, FlowSent
from node_agent.apps.flows.metrics import METRIC_KINDS, FlowsTally
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import Sample

pytestmark = pytest.mark.unit

SECOND, MS = 1_000_000_000, 1_000_000


def take(tally: FlowsTally, record: FlowSent | FlowReceived | None) -> None:
    assert record is not None
    tally.take(tag_of(type(record)), record, 0)


def by_name(tally: FlowsTally) -> dict[str, Sample]:
    return {sample.name: sample for sample in tally.samples()}


def test_the_source_counts_what_it_sent() -> None:
    account, tally = SentAccount("video", 0), FlowsTally()
    for number in range(5):
        account.send(number * SECOND, 100)
    account.skipped = 2
    take(tally, account.sample(5 * SECOND))
    found = by_name(tally)
    assert found["rove_flow_sent_packets_total"].value == 5
    assert found["rove_flow_sent_bytes_total"].value == 500
    assert found["rove_flow_skipped_packets_total"].value == 2
    assert found["rove_flow_sent_packets_total"].labels == ("video",)


def test_each_delay_counts_once_however_often_its_second_is_listed() -> None:
    account, tally = ReceivedAccount("video", 1, 0), FlowsTally()
    for number in range(40):
        sent = number * SECOND // 10
        account.take(number, sent // SECOND, 100, sent, sent + (20 + number) * MS)
        take(tally, account.sample(sent))
    account.take(3, 0, 100, 0, 5 * SECOND)
    take(tally, account.sample(5 * SECOND))
    found = by_name(tally)
    assert found["rove_flow_received_packets_total"].value == 40
    assert found["rove_flow_duplicate_packets_total"].value == 1
    delays = found["rove_flow_delay_seconds"]
    assert sum(delays.counts) == 40
    assert delays.value == pytest.approx(sum(20 + n for n in range(40)) / 1000, rel=0.02)
    assert found["rove_flow_jitter_seconds"].value > 0


def test_a_source_that_started_again_adds_to_what_was_received_before() -> None:
    tally = FlowsTally()
    for boot in (1, 2):
        account = ReceivedAccount("video", boot, 0)
        for number in range(3):
            account.take(number, 0, 10, 0, MS)
        take(tally, account.sample(SECOND))
    found = by_name(tally)
    assert found["rove_flow_received_packets_total"].value == 6
    assert found["rove_flow_received_bytes_total"].value == 60
    assert sum(found["rove_flow_delay_seconds"].counts) == 6


def test_a_very_long_flow_takes_bounded_memory() -> None:
    tally = FlowsTally()
    row = (0, 1, 10, 0, MS, 0, 0, 0, 0, 1)
    for second in range(5000):
        heard = ((second, *row[1:]),)
        take(tally, FlowReceived("f", 1, 0, 0, second + 1, 0, 0, 0, 0, heard, ()))
    assert sum(by_name(tally)["rove_flow_delay_seconds"].counts) == 5000
    assert all(len(seconds) <= 1200 for seconds in tally._seconds.values())


def test_ticks_are_kinds_of_flows() -> None:
    assert METRIC_KINDS.ticks == ("flow_sent", "flow_received")
