"""Messages of brokers and clients as bytes: they come back as they were, and rubbish is refused."""

import math
import random
from contextlib import suppress

import msgspec
import pytest

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Log, Marker
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Box, Circle, Point, Polygon, Region
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Placed,
    Results,
    Said,
    Seen,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import BEGINNING, END, Event, Shared, atomic, just_before
from node_agent.apps.mcep.packed import MOST_BYTES
from node_agent.apps.mcep.reuse.offers import Covered, Offer, Offered
from node_agent.apps.mcep.reuse.results import Results as SharedResults
from node_agent.apps.mcep.reuse.results import Share
from node_agent.apps.mcep.switching import Held, Hold, Switch
from node_agent.apps.mcep.wire import decode, encode
from node_agent.model.checked import Refused

ATOMIC = atomic("speed", 1.5, Point(3, 4), 7, "car", {"speed": 12.5, "lane": "a", "fast": True, "n": 3})
COMPLEX = Event(2.0, 0, "slow", "jam", Box(0, 1, 2, 3), {}, 4, 3, frozenset({("car", 7), ("bus", 1)}))


def marker(region: Region | None) -> Marker:
    return Marker(3.0, 5, region, {"speed": 1.25}, frozenset({"speed", "lane"}))


SHARED = COMPLEX._replace(
    shared=Shared(("q/slow", 3, 2.0, 0), frozenset({("car", 8)}), {(1, -2, 3): 4}, {(0, 0, 0): 1})
)
OFFERED = Offered(
    "q/slow", 2, 1.0, Circle(1, 2, 3), (ATOMIC, SHARED), (Offer(2.0, (("w", (0, 1)),)),), 0, math.inf
)
SHARES = (Share("q/slow", 3), Share("r/slow", 4, 1.0, frozenset({("car", 8)}), {(0, 0, 0): 1}))
COVERED = Covered("slow", SharedResults((SHARED, COMPLEX), SHARES, {(1, 2, 3): 4}, (("q/slow", 5),)))
CHANNEL = ChannelId("speed", "b1")
SAID: list[Said] = [
    Seen((ATOMIC,)),
    UpTo(2.5),
    UpTo(math.inf),
    Located("q", Point(1, 2), 3.0),
    Located("q", None, 3.0),
    Placed("q", 3.0),
    Known((("car", 1.0), ("bus", math.inf))),
    Ordered("q", Hold(3)),
    *(
        Ordered("q", Switch(marker(region)))
        for region in (
            None,
            Box(0, 0, 1, 1),
            Circle(1, 2, 3),
            Polygon((Point(0, 0), Point(1, 0), Point(0, 1))),
        )
    ),
    Answered("q", Held(3, -math.inf)),
    *(
        Streamed("q", "slow", CHANNEL, message)
        for message in (
            ATOMIC,
            Heartbeat(1.0),
            marker(None),
            Log(ATOMIC.key, COMPLEX.key),
            Log(BEGINNING, END),
            Log(just_before(1.0), END),
        )
    ),
    Results("q", (Delivered(4, COMPLEX, True), Delivered(4, ATOMIC, False))),
    OFFERED,
    OFFERED._replace(region=None, fresh=(), selections=()),
    COVERED,
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: type(said).__name__)
def test_what_is_said_comes_back(said: Said) -> None:
    assert decode(encode(said)) == said


def changed(said: Said, path: tuple[int | str, ...], value: object) -> bytes:
    document = msgspec.msgpack.decode(encode(said))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return msgspec.msgpack.encode(document)


BOX = Ordered("q", Switch(marker(Box(0, 0, 1, 1))))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        bytes(MOST_BYTES + 1),
        changed(UpTo(1.0), (1,), math.nan),
        changed(UpTo(1.0), (0,), "unknown"),
        changed(Located("q", Point(1, 2), 3.0), (2,), [1.0, math.inf]),
        changed(Located("q", Point(1, 2), 3.0), (1,), "x" * 201),
        changed(Seen((ATOMIC,)), (1, 0, 5), [1.0]),
        changed(Seen((ATOMIC,)), (1, 0, 5), [1.0, math.nan]),
        changed(Seen((ATOMIC,)), (1, 0, 2), -1),
        changed(Seen((ATOMIC,)), (1, 0, 6), {"a": {"deep": 1}}),
        changed(Seen((ATOMIC,)), (1,), [[]] * 20_000),
        changed(BOX, (2, 3), ["box", [0.0, 0.0]]),
        changed(OFFERED, (8,), math.nan),
        changed(OFFERED, (6, 0, 0), math.inf),
        changed(OFFERED, (6, 0, 1, 0, 1), [0, -1]),
        changed(OFFERED, (6, 0, 1), [["w", [0]]] * 101),
        changed(OFFERED, (4,), ["circle", [1.0, 2.0, -3.0]]),
        changed(OFFERED, (5, 1, 10, 0, 2), math.nan),
        changed(COVERED, (5,), [["q/slow", -1]]),
        changed(COVERED, (4,), [[1, 2, 3, 1.5]]),
        changed(COVERED, (3,), [["q/slow", 3, None, None]] * 10_001),
        changed(BOX, (2, 3), ["box", [5.0, 0.0, 1.0, 1.0]]),
        changed(BOX, (2, 3), ["ellipse", [1.0, 2.0, 3.0]]),
        changed(BOX, (2, 3), ["circle", [1.0, 2.0, -3.0]]),
        changed(BOX, (2, 3), ["polygon", [1.0, 2.0, 3.0, 4.0]]),
        changed(Streamed("q", "s", CHANNEL, Log(END, END)), (5, 1), ["a", 1]),
        changed(Streamed("q", "s", CHANNEL, Log(END, END)), (5, 1), [math.nan]),
        changed(Streamed("q", "s", CHANNEL, Log(END, END)), (5, 1), [1.0, 2.0, "a", "b"]),
    ],
)
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode(data)


def test_random_damage_is_refused_or_read_as_something_else() -> None:
    draw = random.Random(1)
    for _ in range(5000):
        data = bytearray(encode(draw.choice(SAID)))
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with suppress(Refused):
            decode(bytes(data[: draw.randint(1, len(data))] if draw.random() < 0.2 else data))
