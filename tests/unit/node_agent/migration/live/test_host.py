"""An operator moves: what is copied, when it is handed over, who is believed, who goes on after a loss."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Begins,
    Chunk,
    Copy,
    Expect,
    Finished,
    Items,
    Offer,
    Outputs,
    Refused,
    Release,
    Released,
    Start,
    StreamTo,
    Succeed,
    Superseded,
    Trim,
)
from node_agent.migration.live.values import Item, Limits, Method, Savepoint
from tests.unit.node_agent.migration.live.exchange import LIMITS, STATE, Exchange, Tagger

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]


def tagged(*payloads: bytes) -> list[bytes]:
    return [b"1000:" + payload for payload in payloads]


def letters(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_the_operator_moves_and_sinks_get_every_output_once_in_order() -> None:
    ex = Exchange()
    ex.emit(b"a", b"b")
    ex.migrate()
    ex.emit(b"c")
    assert ex.owners == ["h1"]
    assert ex.delivered == tagged(b"a", b"b", b"c")
    assert (ex.stream.owner, ex.sink.owner, ex.stream.streams) == ("h1", "h1", {"h1"})
    assert ex.hosts["h0"].state is None, "the old host forgets it"
    assert (ex.coordinator.journal.owner, ex.coordinator.journal.outcome) == ("h1", "moved")


def test_it_moves_back_and_on_again() -> None:
    ex = Exchange()
    for number, (source, target) in enumerate([("h0", "h1"), ("h1", "h0"), ("h0", "h1")]):
        ex.emit(b"%d" % number)
        ex.migrate(source=source, target=target)
        assert ex.owners == [target]
    assert ex.delivered == tagged(b"0", b"1", b"2")


def test_the_old_host_copies_only_what_its_upstream_does_not_stream_to_the_new_one() -> None:
    ex = Exchange(Limits(grain=1000))
    ex.emit(*letters(5))
    ex.held = lambda sender, to, message: isinstance(message, Start)
    ex.migrate()
    ex.emit(*letters(2))
    copied = [item.position for message in ex.of(Copy) for item in message.items]
    assert copied == [1, 2, 3, 4, 5]
    assert ex.of(Begins)[-1] == Begins(6)
    ex.let_go()
    assert ex.delivered == tagged(*letters(5), *letters(2))


def test_immutable_state_goes_in_bounded_chunks_and_few_are_under_way() -> None:
    ex = Exchange(Limits(grain=1, window=2))
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    assert len(ex.of(Chunk)) == 2
    ex.let_go()
    assert all(len(chunk.data) <= 100 for chunk in ex.of(Chunk))
    assert ex.hosts["h1"].state == STATE


def test_a_selection_that_is_open_is_not_cut() -> None:
    ex = Exchange()
    ex.emit(b"(")
    ex.migrate()
    assert ex.owners == ["h0"]
    ex.emit(b"a")
    assert ex.owners == ["h0"]
    ex.emit(b")")
    assert ex.owners == ["h1"]
    assert ex.delivered == tagged(b"(", b"a", b")")


def test_a_selection_that_stays_open_is_made_again_at_the_new_host() -> None:
    ex = Exchange(Limits(grain=1, patience=5.0))
    ex.emit(b"x", b"(", b"a")
    ex.migrate()
    ex.tick(4.0)
    assert ex.owners == ["h0"]
    ex.tick(5.0)
    assert ex.owners == ["h1"]
    ex.emit(b")")
    assert ex.delivered == tagged(b"x", b"(", b"a", b")")


def test_copying_of_buffers_begins_when_the_time_left_is_what_it_takes() -> None:
    ex = Exchange(Limits(grain=1000, step=1.0))
    ex.emit(*[b"0123456789"] * 10)
    ex.migrate(deadline=50.0, bandwidth=10.0)
    ex.tick(38.9)
    assert not ex.of(StreamTo)
    ex.tick(39.0)
    assert len(ex.of(StreamTo)) == 1
    assert ex.owners == ["h1"]


def test_copying_begins_when_the_plan_says() -> None:
    ex = Exchange()
    ex.migrate(begin_at=7.0)
    ex.tick(6.9)
    assert not ex.of(Offer)
    ex.tick(7.0)
    assert ex.owners == ["h1"]


def test_a_missed_deadline_is_noted_once_and_the_old_host_works_on() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate(deadline=10.0)
    ex.tick(10.0)
    ex.tick(11.0)
    ex.emit(b"a")
    assert [what for what, _ in ex.notes].count("deadline_missed") == 1
    assert ex.delivered == tagged(b"a")
    ex.let_go()
    assert ("handed_over", "late") in ex.notes
    assert ex.owners == ["h1"]


def test_a_migration_that_takes_too_long_is_given_up() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate(give_up_at=20.0)
    ex.emit(b"a")
    ex.tick(20.0)
    ex.let_go()
    ex.emit(b"b")
    assert (ex.owners, ex.coordinator.journal.outcome) == (["h0"], "given_up")
    assert ex.delivered == tagged(b"a", b"b")
    ex.migrate()
    assert ex.owners == ["h1"], "the next one may go well"


def test_a_target_that_is_dead_while_the_migration_is_given_up_is_released_when_it_is_back() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate(give_up_at=20.0)
    ex.dead.add("h1")
    ex.tick(20.0)
    assert ex.coordinator.journal.phase == "ordered"
    ex.let_go()
    ex.restart("h1")
    assert ex.coordinator.journal.outcome == "given_up"
    assert ex.hosts["h1"].journal.order is None


@pytest.mark.parametrize("kind", [Released, Refused])
def test_what_a_target_said_last_may_be_lost_with_it(kind: type) -> None:
    ex = Exchange()
    ex.hosts["h0"].state = bytes(1000)
    lost = [kind]
    ex.held = lambda sender, to, message: sender == "h1" and isinstance(message, tuple(lost))
    ex.migrate()
    assert ex.coordinator.journal.phase == "ordered"
    lost.clear()
    ex.restart("h1")
    ex.emit(b"a")
    assert (ex.owners, ex.coordinator.journal.phase) == (["h0"], "idle")


def test_stop_and_copy_stops_first() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate(method=Method.STOP_AND_COPY)
    ex.emit(b"a", b"b")
    assert ex.delivered == []
    ex.let_go()
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a", b"b"))


def test_state_with_another_digest_is_refused() -> None:
    ex = Exchange()
    ex.hosts["h0"].state = bytes(1000)
    ex.migrate()
    assert (ex.owners, ex.coordinator.journal.outcome) == (["h0"], "wrong_digest")
    assert ex.hosts["h1"].state is None


def test_a_target_without_room_refuses_before_anything_is_copied() -> None:
    ex = Exchange(Limits(grain=1, most_state=999))
    ex.migrate()
    assert (ex.owners, ex.coordinator.journal.outcome) == (["h0"], "too_large")
    assert not ex.of(Offer)


def test_a_host_takes_no_operator_that_it_does_not_expect() -> None:
    ex = Exchange()
    ex.say("h0", "h1", Offer(1, Savepoint((("s", 0),))))
    ex.say("h0", "h1", Start(1, Savepoint((("s", 0),))))
    ex.say("h0", "h1", Expect(ex.order()))
    assert ex.owners == ["h0"]
    assert ex.hosts["h1"].journal.order is None


def test_only_the_other_host_of_a_migration_is_listened_to() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    for message in (
        Chunk(1, 0, bytes(100)),
        Start(1, Savepoint((("s", 0),))),
        Release(1),
        Copy(1, "s", (Item(1, b"?"),)),
        Appoint(2, "h1"),
        Items((Item(1, b"?"),)),
    ):
        ex.say("stranger", "h1", message)
        ex.say("stranger", "h0", message)
    ex.let_go()
    ex.emit(b"a")
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a"))


def test_neighbours_believe_the_owner_and_the_coordinator_only() -> None:
    ex = Exchange()
    ex.emit(b"a")
    for to in ("s", "d"):
        for message in (Succeed(9, "h1"), Appoint(9, "h1"), Trim(1), Outputs(2, (b"?",)), StreamTo("h1")):
            ex.say("h1", to, message)
    assert (ex.stream.owner, ex.sink.owner, ex.stream.streams) == ("h0", "h0", {"h0"})
    assert ex.delivered == tagged(b"a")
    assert Superseded(1, "h0") in ex.of(Superseded)


@pytest.mark.parametrize("inputs", [(), (("other", 3),), (("s", -1),), (("s", 0), ("s", 0))])
def test_a_savepoint_of_the_wrong_form_is_refused(inputs: tuple[tuple[str, int], ...]) -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Offer)
    ex.migrate()
    ex.say("h0", "h1", Offer(1, Savepoint(inputs)))
    assert ex.hosts["h1"].journal.order is None


def test_a_note_that_is_too_long_is_refused() -> None:
    ex = Exchange(Limits(grain=1, note=10))
    ex.held = lambda sender, to, message: isinstance(message, Offer)
    ex.migrate()
    ex.say("h0", "h1", Offer(1, Savepoint((("s", 0),), 0, bytes(11))))
    assert ex.hosts["h1"].journal.order is None


def test_more_input_than_there_is_room_for_ends_the_migration() -> None:
    ex = Exchange(Limits(grain=1, items=3))
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    ex.say("h0", "h1", Copy(1, "s", tuple(Item(n, b"x") for n in range(5, 9))))
    assert ex.coordinator.journal.outcome == "buffer_full"
    assert ex.owners == ["h0"]


def test_a_window_longer_than_the_buffer_moves_too() -> None:
    ex = Exchange(Limits(grain=1000, items=4))
    ex.emit(*letters(3))
    ex.stream.limits = Limits()
    ex.emit(*letters(9))
    assert ex.delivered == tagged(*letters(3), *letters(9))


def test_the_target_goes_on_if_the_old_host_is_gone() -> None:
    ex = Exchange()
    ex.emit(b"a")
    ex.held = lambda sender, to, message: isinstance(message, Chunk) and message.index > 3
    ex.migrate()
    ex.emit(b"b")
    ex.dead.add("h0")
    ex.emit(b"c")
    ex.let_go()
    ex.do("c", ex.coordinator.gone("h0"))
    ex.emit(b"d")
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a", b"b", b"c", b"d"))
    assert ex.coordinator.journal.owner == "h1"


def test_the_old_host_goes_on_if_the_target_is_gone_after_the_hand_over() -> None:
    ex = Exchange()
    ex.emit(b"a")
    ex.held = lambda sender, to, message: isinstance(message, Start)
    ex.migrate()
    ex.emit(b"b")
    assert ex.owners == []
    ex.dead.add("h1")
    ex.do("c", ex.coordinator.gone("h1"))
    ex.emit(b"c")
    assert (ex.owners, ex.delivered) == (["h0"], tagged(b"a", b"b", b"c"))
    assert ex.coordinator.journal.outcome == "target_gone"


def test_a_host_that_was_taken_for_gone_stops_when_it_comes_back() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    ex.dead.add("h0")
    ex.let_go()
    ex.do("c", ex.coordinator.gone("h0"))
    ex.restart("h0")
    ex.emit(b"a")
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a"))


def test_an_old_host_that_was_taken_for_gone_but_is_alive_stops() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    ex.do("c", ex.coordinator.gone("h0"))
    ex.let_go()
    assert ex.owners == ["h1"]
    ex.emit(b"a")
    assert ex.delivered == tagged(b"a")


@pytest.mark.parametrize("victim", ["h0", "h1"])
def test_a_host_that_is_killed_goes_on_from_its_journal(victim: str) -> None:
    ex = Exchange()
    ex.emit(b"a")
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    ex.dead.add(victim)
    ex.emit(b"b")
    ex.let_go()
    ex.restart(victim)
    ex.emit(b"c")
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a", b"b", b"c"))


def test_hosts_finish_without_their_coordinator() -> None:
    ex = Exchange()
    ex.held = lambda sender, to, message: isinstance(message, Chunk)
    ex.migrate()
    ex.dead.add("c")
    ex.let_go()
    ex.emit(b"a")
    assert (ex.owners, ex.delivered) == (["h1"], tagged(b"a"))
    assert ex.coordinator.journal.phase == "ordered"
    ex.dead.clear()
    ex.do("c", ex.coordinator.restart())
    assert (ex.coordinator.journal.owner, ex.coordinator.journal.outcome) == ("h1", "moved")


def test_an_order_that_is_said_again_is_answered_with_how_it_ended() -> None:
    ex = Exchange()
    order = replace(ex.order(), deadline=inf)
    ex.migrate()
    ex.say("c", "h0", Expect(order))
    assert ex.of(Finished)[-1] == Finished(1, "moved")


class Slow(Tagger):
    """Takes an item once it has had time for it."""

    done = 0

    def push(self, stream: str, item: Item) -> Sequence[bytes] | None:
        return super().push(stream, item) if item.position <= self.done else None


def test_an_operator_that_takes_its_time_is_asked_again() -> None:
    exchange = Exchange(build=Slow)

    def work(name: str, upto: int) -> None:
        host = exchange.hosts[name]
        assert host.work is not None and isinstance(host.work.operator, Slow)
        host.work.operator.done = upto
        exchange.do(name, host.go_on(exchange.now))

    exchange.emit(b"a", b"b")
    assert exchange.delivered == []
    work("h0", 1)
    assert exchange.delivered == tagged(b"a")
    exchange.migrate()
    exchange.emit(b"c")
    assert exchange.owners == ["h1"] and exchange.delivered == tagged(b"a")
    work("h1", 3)
    assert exchange.delivered == tagged(b"a", b"b", b"c")


def test_outputs_that_are_too_many_bytes_are_made_again_by_the_new_host() -> None:
    exchange = Exchange(replace(LIMITS, start_bytes=5))
    exchange.held = lambda sender, to, message: isinstance(message, Ack)
    exchange.emit(b"a", b"b", b"c")
    exchange.migrate()
    (start,) = exchange.of(Start)
    assert start.outputs == () and start.savepoint.outputs == 0
    assert [each[-1:] for each in exchange.delivered] == [b"a", b"b", b"c"]
    exchange.let_go()
    exchange.emit(b"d")
    assert [each[-1:] for each in exchange.delivered] == [b"a", b"b", b"c", b"d"]


def test_hosts_finish_what_the_coordinator_had_given_up() -> None:
    exchange = Exchange()
    exchange.emit(b"a")
    exchange.held = lambda sender, to, message: isinstance(message, Offer)
    exchange.migrate()
    exchange.do("c", exchange.coordinator.gone("h0"))
    assert exchange.coordinator.journal.outcome == "nothing_to_start_from"
    assert exchange.coordinator.journal.owner == "h0"
    exchange.let_go()
    assert exchange.owners == ["h1"]
    assert (exchange.coordinator.journal.owner, exchange.coordinator.journal.outcome) == ("h1", "moved")
    exchange.say("stranger", "c", Finished(1, "moved"))
    exchange.migrate(source="h1", target="h0")
    exchange.emit(b"b")
    assert exchange.owners == ["h0"] and exchange.delivered == tagged(b"a", b"b")
