"""Messages of migrations as bytes: they come back as they were, and rubbish is refused."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Appointed,
    Begins,
    Chunk,
    Copy,
    Expect,
    Expecting,
    Fetch,
    Finished,
    Hail,
    Here,
    Items,
    Kept,
    Message,
    Migrate,
    Moved,
    Offer,
    Outputs,
    Ready,
    Refused,
    Release,
    Released,
    Standpoint,
    Start,
    StateKept,
    StopTo,
    StreamsTo,
    StreamTo,
    Succeed,
    Superseded,
    Trim,
    Welcome,
)
from node_agent.migration.live.values import Item, Method, Order, Savepoint, card_of
from node_agent.migration.live.wire import MOST_BYTES, decode, encode
from node_agent.model import checked

pytestmark = pytest.mark.unit

ORDER = Order(3, "h0", "h1", card_of(b"state"), ("s",), ("d",), 12.5, Method.STOP_AND_COPY, 1.0, 1e6)
AT = Savepoint((("s", 7),), 6, b"note")
ITEMS = (Item(1, b"a"), Item(2, b""))
MESSAGES: list[Message] = [
    Expect(ORDER),
    Migrate(replace(ORDER, deadline=math.inf)),
    Appoint(7, "h1"),
    Expecting(3),
    Finished(3, "moved"),
    Appointed(7),
    Here(0),
    Offer(3, AT),
    Refused(3, "busy"),
    Fetch(3, 0, 16),
    Chunk(3, 5, b"bytes"),
    StateKept(3),
    Copy(3, "s", ITEMS),
    Standpoint(3, AT),
    Kept(3, AT),
    Ready(3),
    Start(3, AT, (b"one", b"")),
    Release(3),
    Released(3),
    StreamTo("h1", 4),
    StreamsTo("h1", 4),
    Begins(4),
    StopTo("h1"),
    Items(ITEMS),
    Trim(0),
    Hail(1),
    Succeed(6, "h1"),
    Moved(6, True),
    Welcome(6, 1),
    Superseded(6, "h1"),
    Outputs(1, (b"x", b"y")),
    Ack(0),
]


def test_every_kind_is_here() -> None:
    assert {type(each) for each in MESSAGES} == set(get_args(Message))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: type(each).__name__)
def test_what_is_said_comes_back(message: Message) -> None:
    assert decode(encode(message)) == message


def changed(message: Message, path: tuple[str | int, ...], value: object) -> bytes:
    document = msgspec.msgpack.decode(encode(message))
    inner = document[1]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return msgspec.msgpack.encode(document)


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        bytes(MOST_BYTES + 1),
        nested(100_000),
        b"\x92\xa4Here" + nested(100_000),
        msgspec.msgpack.encode(("Keep", {})),
        msgspec.msgpack.encode(("Ack", {})),
        msgspec.msgpack.encode(("Ack", {"upto": 1}, 3)),
        changed(Ack(1), ("upto",), -1),
        changed(Ack(1), ("upto",), 2**63),
        changed(Ack(1), ("upto",), "1"),
        changed(Ack(1), ("upto",), 1.5),
        changed(Welcome(1, 1), ("following",), 0),
        changed(Appoint(1, "h"), ("host",), ""),
        changed(Appoint(1, "h"), ("host",), "h" * 201),
        changed(Items(ITEMS), ("items", 0, 0), 0),
        changed(Items(ITEMS), ("items", 0), [1]),
        changed(Items(ITEMS), ("items",), [[1, b""]] * 8193),
        changed(Outputs(1, (b"",)), ("payloads",), [b""] * 8193),
        changed(Offer(3, AT), ("savepoint", "inputs"), [["s", -1]]),
        changed(Offer(3, AT), ("savepoint", "inputs"), [["s", 1]] * 257),
        changed(Offer(3, AT), ("savepoint", "at"), bytes(64 * 1024 + 1)),
        changed(Migrate(ORDER), ("order", "deadline"), math.nan),
        changed(Migrate(ORDER), ("order", "deadline"), -1.0),
        changed(Migrate(ORDER), ("order", "bandwidth"), 0.0),
        changed(Migrate(ORDER), ("order", "method"), "teleport"),
        changed(Migrate(ORDER), ("order", "streams"), ["s"] * 257),
        changed(Migrate(ORDER), ("order", "card", "chunk"), 0),
        changed(Migrate(ORDER), ("order", "card", "digest"), "../../etc/passwd"),
    ],
)
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(checked.Refused):
        decode(data)


def test_what_is_too_large_is_not_made() -> None:
    with pytest.raises(checked.Refused):
        encode(Chunk(1, 0, bytes(MOST_BYTES)))


@settings(max_examples=300, deadline=None)
@given(some.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    with suppress(checked.Refused):
        assert type(decode(data)) in get_args(Message)


@settings(max_examples=500, deadline=None)
@given(some.sampled_from(MESSAGES), some.data())
def test_damage_is_refused_or_read_as_something_else(message: Message, draw: some.DataObject) -> None:
    data = bytearray(encode(message))
    places = some.integers(0, len(data) - 1)
    for place, value in draw.draw(
        some.lists(some.tuples(places, some.integers(0, 255)), min_size=1, max_size=4)
    ):
        data[place] = value
    end = draw.draw(some.integers(1, len(data)))
    with suppress(checked.Refused):
        read = decode(bytes(data[:end]))
        assert decode(encode(read)) == read
