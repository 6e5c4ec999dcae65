"""Connections: greeting, back-pressure, batches, reconnecting, and ends that fall silent."""

import asyncio
from itertools import pairwise

import pytest

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.wire.messages import Acknowledgement, Ask, Batch, DataDetails, PassedOn, Settled
from node_agent.apps.dataflow.wire.packing import MAX_PAYLOADS
from node_agent.ports import PortError, Stream, TimedOut
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Alive, Pair
from node_agent.transport.outgoing import BACKOFF_FIRST
from node_agent.transport.server import SUPERSEDED_GRACE
from tests.unit.connection_ends import (
    AT,
    NODES,
    PAIR,
    POISON,
    Receiver,
    Sender,
    ends,
    greeted,
    item,
    post_items,
    run,
)
from tests.unit.networks import RadioNetwork


def test_tuples_arrive_once_and_in_order() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends()
        for tau in range(1, 201):
            await sender.send(item(tau, size=tau * 50))
        await asyncio.sleep(1)
        assert receiver.taken == list(range(1, 201))
        assert receiver.batches[-1].items == [item(200, size=10_000)]
        await sender.connection.close()
        await sender.connection.close()
        await asyncio.sleep(1)
        await receiver.server.close()
        await receiver.server.close()
        assert not receiver.failures and not sender.failures
        assert not receiver.refused

    run(scenario())


def test_what_was_sent_before_an_orderly_close_is_taken() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends()
        receiver.open.clear()
        await sender.send(*map(item, range(1, 21)))
        await sender.connection.close()
        await asyncio.sleep(5)
        assert receiver.taken == []
        receiver.open.set()
        await asyncio.sleep(1)
        assert receiver.taken == list(range(1, 21))
        assert sender.lost == []
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize(("size", "fits"), [(100, 32), (8192, 8), (40_000, 2), (200_000, 1)])
def test_a_slow_receiver_stops_the_sender(size: int, fits: int) -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends(ConnectionLimits(window_items=32, window_bytes=64 * 1024))
        receiver.open.clear()
        sent = 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                while True:
                    await sender.send(item(sent + 1, size))
                    sent += 1
        assert sent == fits
        assert sender.connected()  # slow is not dead
        receiver.open.set()
        await asyncio.sleep(1)
        await sender.send(item(sent + 1, size))
        await asyncio.sleep(1)
        assert receiver.taken == list(range(1, sent + 2))
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_what_gathers_is_sent_in_one_frame_within_bounds() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends(ConnectionLimits(window_items=64, batch_bytes=2000))
        waiting = [item(tau) for tau in range(1, 101)]
        while waiting:
            await sender.connection.ready()
            del waiting[: await sender.connection.send(waiting)]
        await asyncio.sleep(1)
        assert receiver.taken == list(range(1, 101))
        assert {len(batch.items) for batch in receiver.batches} == {12, 4}
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_a_sibling_passes_items_on_in_the_name_of_their_sender() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        sibling = Sender(network.port("up"), pair=Pair("detect/1", "detect/0"))
        assert await sibling.connection.send([item(1)], DataDetails({}, PassedOn("camera/0", [(2, 4)]))) == 1
        await asyncio.sleep(1)
        assert receiver.batches == [Batch("camera/0", [item(1)], {}, [(2, 4)])]
        await sibling.connection.close()
        await receiver.server.close()

    run(scenario())


def test_both_ends_can_say_something_besides() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends()
        acknowledgement = Acknowledgement({"camera/0": [(1, 3)]}, {})
        ask = Ask()
        settled = Settled({"camera/0": 3}, [])
        assert not sender.connection.send_message(settled)
        assert not receiver.server.send_message(PAIR, ask)
        await sender.connection.ready()
        assert sender.connection.send_message(settled)
        assert await sender.connection.send([item(1)], DataDetails({"camera/0": 7})) == 1
        await asyncio.sleep(1)
        assert receiver.server.send_message(PAIR, acknowledgement)
        assert receiver.server.send_message(PAIR, ask)
        await asyncio.sleep(1)
        assert receiver.messages == [settled]
        assert sender.messages == [acknowledgement, ask]
        assert receiver.batches == [Batch("camera/0", [item(1)], {"camera/0": 7})]
        await sender.connection.close()
        await asyncio.sleep(1)
        assert not receiver.server.send_message(PAIR, ask)
        await receiver.server.close()

    run(scenario())


@pytest.mark.parametrize("busy", [False, True])
def test_a_peer_that_is_gone_is_noticed_within_the_time_given(busy: bool) -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends(ConnectionLimits(dead_after=2.0))
        loop = asyncio.get_running_loop()
        await sender.send(item(1))
        await asyncio.sleep(10)
        assert sender.connected()  # keep-alives held it while nothing was sent
        network.move(down=1e6)
        gone = loop.time()
        if busy:
            await sender.send(*map(item, range(2, 10)))
        await asyncio.sleep(2.0 - (loop.time() - gone))
        assert not sender.connected()
        assert sender.lost == (list(range(2, 10)) if busy else [])
        assert sender.reasons == ["silent"]
        await asyncio.sleep(1)
        assert not receiver.server.send_message(PAIR, Ask())
        await receiver.server.close()

    run(scenario())


def test_a_long_item_on_a_slow_path_is_no_silence() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends(ConnectionLimits(dead_after=1.0))
        await sender.send(item(1, size=8_000_000))  # about six seconds on this radio
        await asyncio.sleep(15)
        assert receiver.taken == [1]
        assert sender.connected()
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_a_broken_connection_reports_what_it_had_under_way() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends(ConnectionLimits(window_items=4))
        await sender.send(item(1), item(2))
        await asyncio.sleep(2)
        receiver.open.clear()
        await sender.send(item(3), item(4))
        await asyncio.sleep(0.1)
        await receiver.server.close()
        await asyncio.sleep(1)
        assert sender.lost == [3, 4]
        assert sender.reasons == ["broken"]

    run(scenario())


def test_several_may_wait_for_the_same_connection() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends()
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(sender.connection.ready())
        await sender.send(item(1))
        await asyncio.sleep(1)
        assert len(receiver.server._connections) == 1
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_a_sender_that_waits_hears_of_the_end() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends(ConnectionLimits(window_items=1))
        receiver.open.clear()
        await sender.send(item(1))
        waiting = asyncio.create_task(sender.connection.ready())
        await asyncio.sleep(1)
        await receiver.server.close()
        with pytest.raises(PortError):
            await waiting
        await sender.connection.close()

    run(scenario())


def test_a_connection_in_place_of_another_leaves_it_time_to_be_taken() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        receiver.open.clear()
        old, _ = await greeted(network)
        post_items(old, [item(1)])
        new, _ = await greeted(network)
        post_items(new, [item(2)])
        old.watch(Alive, 1000)
        new.watch(Alive, 4)
        await asyncio.sleep(SUPERSEDED_GRACE / 2)
        receiver.open.set()
        await asyncio.sleep(1)
        assert sorted(receiver.taken) == [1, 2]
        new.abort()
        await receiver.server.close()

    run(scenario())


def test_what_a_superseded_connection_brought_does_not_wait_for_ever() -> None:
    async def scenario() -> None:
        network, receiver, _ = await ends()
        receiver.open.clear()
        for _ in range(3):
            connection, _ = await greeted(network)
            post_items(connection, [item(1)])
            await asyncio.sleep(1)
            connection.abort()
        await asyncio.sleep(2 * SUPERSEDED_GRACE)
        receiver.open.set()
        await asyncio.sleep(1)
        assert receiver.taken == [1]
        await receiver.server.close()

    run(scenario())


def test_an_error_of_our_own_is_reported_not_swallowed() -> None:
    async def scenario() -> None:
        _, receiver, sender = await ends()
        await sender.send(StreamTuple("camera/0", POISON, POISON - 1, 1, 0))
        await asyncio.sleep(1)
        assert [str(failure) for failure in receiver.failures] == ["a bug in the agent"]
        assert sender.silences == 1
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())


def test_a_peer_that_comes_back_is_found_again() -> None:
    async def scenario() -> None:
        network, first, sender = await ends()
        await sender.send(item(1))
        await asyncio.sleep(1)
        await first.server.close()
        await asyncio.sleep(1)
        assert not sender.connected()  # noticed without sending anything
        with pytest.raises(PortError):
            await sender.send(item(2))
        second = Receiver(network.port("down"))
        await second.server.open(AT.port)
        await sender.send(item(3))
        await asyncio.sleep(1)
        assert (first.taken, second.taken) == ([1], [3])
        await sender.connection.close()
        await second.server.close()

    run(scenario())


def test_failed_attempts_are_spaced_out() -> None:
    async def scenario() -> None:
        network = RadioNetwork(NODES)
        loop = asyncio.get_running_loop()
        sender = Sender(network.port("up"))
        failed_at = []
        for _ in range(10):
            with pytest.raises(PortError):
                await sender.send(item(1))
            failed_at.append(loop.time())
        pauses = [b - a for a, b in pairwise(failed_at)]
        assert pauses[0] >= BACKOFF_FIRST / 2
        assert 1.0 < max(pauses) <= 3.1

    run(scenario())


def test_a_peer_that_never_answers_the_hello_is_given_up() -> None:
    async def scenario() -> None:
        network = RadioNetwork(NODES)

        async def silent(stream: Stream) -> None:
            await asyncio.sleep(1000)

        await network.port("down").listen(AT.port, silent)
        with pytest.raises(TimedOut):
            await Sender(network.port("up")).send(item(1))

    run(scenario())


@pytest.mark.parametrize("payload", [b"", b"xy"])
def test_items_of_very_many_payloads_go_in_frames_that_they_fit_into(payload: bytes) -> None:
    async def scenario() -> None:
        limits = ConnectionLimits(window_items=400, window_bytes=2**24, batch_items=100, batch_bytes=2**19)
        _, receiver, sender = await ends(limits)
        items = [
            StreamTuple("camera/0", tau, tau - 1, tau, tau, (payload,) * MAX_PAYLOADS) for tau in range(1, 21)
        ]
        await sender.send(*items)
        await asyncio.sleep(10)
        assert receiver.taken == list(range(1, 21))
        assert {each.payloads for batch in receiver.batches for each in batch.items} == {items[0].payloads}
        assert sender.failures == [] and receiver.failures == []
        await sender.connection.close()
        await receiver.server.close()

    run(scenario())
