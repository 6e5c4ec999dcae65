"""The source's state of a TCP flow."""

from node_agent.apps.flows import transfer as transfers
from node_agent.apps.flows.account import SentAccount
from node_agent.apps.flows.model import Flow, OnOff
from node_agent.apps.flows.schedule import NS
from node_agent.apps.flows.transfer import Transfer
from node_agent.apps.flows.wire import UNKNOWN


def made(**changes: object) -> tuple[Transfer, SentAccount]:
    flow = Flow(**{"name": "f", "source": "a", "sink": "b", "protocol": "tcp", "size": 1000, **changes})  # type: ignore[arg-type]
    account = SentAccount("f", 0)
    return Transfer(flow, account, 0), account


def test_as_fast_as_it_goes() -> None:
    transfer, account = made(bytes=2500)
    chunks = [transfer.next_chunk(5) for _ in range(4)]
    assert [chunk.size for chunk in chunks if chunk] == [1000, 1000, 500]
    assert (transfer.has_more, transfer.done) == (False, False)
    assert transfer.acknowledge(3)
    assert (transfer.has_more, transfer.done) == (False, True)
    assert account.acknowledged == 2500


def test_nothing_before_the_start_or_after_the_end() -> None:
    transfer, _ = made(start=2.0, stop=4.0)
    assert transfer.next_chunk(NS) is None
    assert transfer.wake_ns() == 2 * NS
    assert transfer.next_chunk(2 * NS) is not None
    assert transfer.next_chunk(4 * NS) is None
    assert transfer.wake_ns() is None and not transfer.has_more


def test_on_and_off() -> None:
    transfer, _ = made(on_off=OnOff(1.0, 2.0))
    assert transfer.next_chunk(0) is not None
    assert transfer.next_chunk(NS) is None
    assert transfer.wake_ns() == 3 * NS


def test_what_comes_due_counts_even_if_it_cannot_be_written() -> None:
    transfer, account = made(rate=8000.0)
    transfer.offer(10 * NS)
    assert account.packets == 11
    chunk = transfer.next_chunk(10 * NS)
    assert chunk is not None and (chunk.number, chunk.second, chunk.sent_ns) == (0, 0, 0)


def test_a_backlog_is_bounded() -> None:
    transfer, account = made(rate=8_000_000.0)
    transfer.offer(100 * NS)
    assert account.packets == transfers.MOST_WAITING
    assert account.skipped == 100_001 - transfers.MOST_WAITING


def test_what_cannot_be_written_is_skipped_at_once() -> None:
    """One by one it would take longer than the time in which it came due."""
    transfer, account = made(rate=1e12)
    transfer.offer(20 * NS)
    assert account.packets == transfers.MOST_WAITING
    assert account.packets + account.skipped == 20 * 125_000_000 + 1


def test_a_new_connection_goes_on_where_the_sink_is() -> None:
    transfer, account = made(bytes=5000)
    chunks = [transfer.next_chunk(0) for _ in range(5)]
    assert transfer.acknowledge(1)
    assert transfer.reconnected(3) == 3
    assert [transfer.next_chunk(9 * NS) for _ in range(3)] == [*chunks[3:], None]
    assert account.packets == 5, "a chunk that is written again was sent once"
    assert transfer.acknowledge(5) and transfer.done


def test_a_sink_that_was_started_anew_gets_what_nobody_acknowledged() -> None:
    transfer, _ = made(bytes=5000)
    chunks = [transfer.next_chunk(0) for _ in range(5)]
    assert transfer.acknowledge(2)
    assert transfer.reconnected(UNKNOWN) == 2
    assert transfer.next_chunk(0) == chunks[2]


def test_an_impossible_acknowledgement_is_refused() -> None:
    transfer, account = made()
    transfer.next_chunk(0)
    assert not transfer.acknowledge(2)
    assert transfer.acknowledge(1)
    assert not transfer.acknowledge(0)
    assert transfer.reconnected(7) is None
    assert account.acknowledged == 1000


def test_what_is_not_acknowledged_is_bounded() -> None:
    transfer, _ = made()
    written = 0
    while (chunk := transfer.next_chunk(0)) is not None:
        written += chunk.size
    assert written < transfers.MOST_UNACKNOWLEDGED + 1000
    assert transfer.wake_ns() is None
    assert transfer.acknowledge(1) and transfer.next_chunk(0) is not None
