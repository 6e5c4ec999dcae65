"""Who may say what while an operator moves."""

from dataclasses import replace

import pytest

from node_agent.migration.live.claims import Parties, refusal
from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Chunk,
    Copy,
    Expect,
    Fetch,
    Finished,
    Hail,
    Here,
    Items,
    Message,
    Migrate,
    Offer,
    Outputs,
    Release,
    Start,
    StreamTo,
    Succeed,
    Superseded,
    Trim,
)
from node_agent.migration.live.values import Item, Order, Savepoint, card_of
from tests.unit.node_agent.migration.live.exchange import Exchange

pytestmark = pytest.mark.unit

PARTIES = Parties("c", frozenset({"h0", "h1", "h2"}), frozenset({"s"}), frozenset({"d"}))
ORDER = Order(1, "h0", "h1", card_of(b""), ("s",), ("d",))
AT = Savepoint((("s", 1),))


def test_all_that_is_said_in_a_migration_is_believed() -> None:
    exchange = Exchange()
    exchange.emit(b"a", b"b")
    exchange.migrate()
    exchange.emit(b"c")
    assert exchange.owners == ["h1"] and len({type(each) for *_, each in exchange.sent}) > 20
    wrong = [each for each in exchange.sent if refusal(PARTIES, *each) is not None]
    assert wrong == []


@pytest.mark.parametrize(
    ("sender", "receiver", "message", "word"),
    [
        ("h0", "h1", Expect(ORDER), "sender"),
        ("s", "h0", Migrate(ORDER), "sender"),
        ("stranger", "h0", Migrate(ORDER), "sender"),
        ("h0", "s", Appoint(4, "h0"), "sender"),
        ("c", "h0", Expect(ORDER), "order"),
        ("c", "h1", Migrate(ORDER), "order"),
        ("c", "h1", Expect(replace(ORDER, source="stranger")), "order"),
        ("c", "h1", Expect(replace(ORDER, streams=("t",))), "order"),
        ("c", "h1", Expect(replace(ORDER, sinks=("d", "d"))), "order"),
        ("c", "s", Appoint(4, "stranger"), "host"),
        ("c", "s", Trim(9), "sender"),
        ("s", "c", Finished(1, "moved"), "sender"),
        ("h0", "s", Finished(1, "moved"), "receiver"),
        ("stranger", "h1", Here(1), "sender"),
        ("stranger", "h0", Fetch(1, 0, 9), "sender"),
        ("s", "h1", Chunk(1, 0, b""), "sender"),
        ("h0", "h0", Release(1), "sender"),
        ("d", "h1", Start(1, AT), "sender"),
        ("h0", "h1", Start(1, Savepoint((("t", 1),))), "stream"),
        ("h0", "h1", Offer(1, Savepoint((("d", 1),))), "stream"),
        ("h0", "h1", Copy(1, "t", ()), "stream"),
        ("h0", "s", StreamTo("stranger"), "host"),
        ("h0", "s", Succeed(2, "stranger"), "host"),
        ("h0", "d", StreamTo("h1"), "receiver"),
        ("d", "s", Hail(2), "sender"),
        ("d", "h0", Items((Item(1, b""),)), "sender"),
        ("s", "d", Outputs(1, (b"",)), "sender"),
        ("h0", "s", Outputs(1, (b"",)), "receiver"),
        ("s", "h0", Ack(1), "sender"),
        ("s", "h0", Superseded(2, "stranger"), "host"),
        ("h1", "h0", Superseded(2, "h1"), "sender"),
    ],
)
def test_all_else_is_refused(sender: str, receiver: str, message: Message, word: str) -> None:
    assert refusal(PARTIES, sender, receiver, message) == word
