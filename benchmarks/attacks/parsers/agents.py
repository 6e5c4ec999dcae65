"""Messages of a malicious node, under its own keys, to a whole agent: every message type with random content.

There is one target for each reliability and each kind of window: they parse the same frames, and process them
differently.
"""

import asyncio
import random
from typing import Any, NamedTuple

from benchmarks.attacks.mutation import changed_message, encoded
from benchmarks.attacks.speaking import Refused, Session, Speaker, frame, notice_packet
from benchmarks.attacks.worlds import (
    HOSTS,
    MALLORY,
    NODES,
    PAIR,
    PORT,
    SIBLING,
    VICTIM,
    VICTIM_EPOCH,
    victim_agent,
)
from node_agent.ports import Address, PortError, Stream
from node_agent.transport.messages import Pair

_ROUNDS = 15
BIG = 2**62
STREAMS = ("a/0", "b/0", "op")


def item(origin: str, tau: int, payload: bytes = b"x" * 20, last: bool = False) -> list[Any]:
    return [origin, tau, tau - 1, tau * 1000, (tau - 1) * 1000, [payload] if payload else [], last]


FRAMES: tuple[Any, ...] = (
    ["alive", 0],
    ["alive", 5],
    ["data", [item("a/0", 1)], [], {}, None],
    ["data", [item("a/0", tau) for tau in range(1, 20)], [], {"a/0": 3}, None],
    ["data", [item("b/0", 3), item("a/0", 7, b""), item("a/0", 8, b"", True)], [], {}, None],
    ["data", [item("a/0", 4, b"")], [[0, 10, bytes(32)]], {}, None],
    ["data", [item("a/0", 4, b"")], [[0, 16 << 20, bytes(32)]], {}, None],
    ["data", [item("a/0", 5)], [], {"a/0": 2, "b/0": 1}, ["b/0", [[1, 3], [5, 9]]]],
    ["data", [item("a/0", BIG)], [], {"a/0": BIG}, ["a/0", [[0, BIG]]]],
    ["acknowledgement", {"a/0": [[1, 3]], "b/0": [[1, 1]]}, {"a/0": [[4, 9]]}],
    ["acknowledgement", {"a/0": [[1, BIG]]}, {"a/0": [[0, BIG]], "op": [[1, 2]]}],
    ["acknowledgement", {"a/0": [[tau, tau] for tau in range(1, 400, 2)]}, {}],
    ["ask"],
    ["settled", {"a/0": 3}, []],
    ["settled", {"a/0": BIG, "nobody/7": 1}, [item("a/0", BIG, b"", True)]],
    ["settled", {}, [item("b/0", 2, b"", True)]],
)
NOTICES: tuple[Any, ...] = (
    notice_packet(VICTIM_EPOCH, [["op/0", ["cost_update", "sink/0", 1, 1, 3.5, 2, None, None]]]),
    notice_packet(VICTIM_EPOCH, [["op/0", ["cost_report", "a/0", 1, 2, 1.0, "op/0"]]]),
    notice_packet(VICTIM_EPOCH, [["op/0", ["cost_update", "sink/0", 2**40, 2**50, 0.0, 0, 1.0, "op/1"]]]),
    notice_packet(VICTIM_EPOCH, [["op/0", ["cost_report", "b/0", 1, 2, 1.0, "op/1"]]] * 2),
    notice_packet(b"other ep", []),
)


def _position(rng: random.Random) -> int:
    return BIG if rng.random() < 0.02 else rng.randrange(1, 60)


def _ranges(rng: random.Random) -> dict[str, Any]:
    """Returns ranges of any stream; they may overlap and be out of order."""
    made = {}
    for stream in rng.sample(STREAMS, k=rng.choice((0, 1, 1, 2))):
        starts = [_position(rng) for _ in range(rng.choice((1, 1, 2, 5)))]
        made[stream] = [[start, start + rng.choice((0, 0, 1, 5, 40))] for start in starts]
    return made


def _item(origin: str, rng: random.Random) -> list[Any]:
    tau = _position(rng)
    prev = tau - 1 if rng.random() < 0.8 else rng.randrange(tau)
    payloads = [rng.randbytes(rng.choice((0, 8, 500)))] * rng.choice((0, 1, 1, 1, 2))
    if rng.random() < 0.01:  # as many as fit a frame, or more than the next frame can hold
        payloads = [bytes(rng.choice((1, 40)))] * rng.choice((1_000, 8_000, 8_192, 40_000))
    last = rng.random() < 0.03
    return [origin, tau, prev, tau * 1000, prev * 1000, [] if last else payloads, last]


def plausible(over: Pair | str, rng: random.Random) -> Any:
    """Returns a frame of the right types that this pair may send, with arbitrary positions."""
    if over == "sink":
        return rng.choice(
            (["acknowledgement", _ranges(rng), _ranges(rng)], ["ask"], ["alive", rng.randrange(4)])
        )
    floors = {stream: _position(rng) for stream in rng.sample(STREAMS, k=rng.choice((0, 0, 1, 2)))}
    if rng.random() < 0.2:
        ends = [[*_item("a/0", rng)[:5], [], True] for _ in range(rng.choice((0, 1, 2)))]
        return ["settled", floors, ends]
    origin = rng.choice(("a/0", "a/0", "b/0")) if over == SIBLING else "a/0"
    first = rng.randrange(1, 40)
    items = [item(origin, first + n) for n in range(rng.randrange(1, 12))]
    if rng.random() < 0.5:
        items = [_item(origin, rng) for _ in range(rng.randrange(1, 8))]
    passed_on = [origin, [[1, rng.randrange(1, 9)]] * rng.choice((0, 1, 2))] if over == SIBLING else None
    return ["data", items, [], floors, passed_on]


class Act(NamedTuple):
    """``over``: a pair that mallory opens a connection for, ``sink`` for the one that the victim opened, or
    ``datagram``. ``parts``: headers or datagrams.
    """

    over: Pair | str
    parts: tuple[bytes, ...]


class Frames:
    def __init__(self, variant: str) -> None:
        self._runner = asyncio.Runner()
        self._mallory = Speaker(MALLORY, NODES)
        self._world = self._runner.run(victim_agent(variant))

    def draw(self, rng: random.Random) -> Act:
        over = rng.choice((PAIR, PAIR, SIBLING, "sink", "datagram"))
        if over == "datagram":
            return Act(over, (changed_message(NOTICES, "msgpack", rng),))
        sound = tuple(encoded(plausible(over, rng), "msgpack") for _ in range(rng.randint(0, 3)))
        return Act(over, (*sound, changed_message(FRAMES, "msgpack", rng)) if rng.random() < 0.4 else sound)

    def feed(self, act: Act) -> None:
        self._runner.run(self._do(act))
        self._world.check()

    async def _do(self, act: Act) -> None:
        world = self._world
        if act.over == "datagram":
            assert world.port.hear is not None
            for part in act.parts:
                world.port.hear(self._mallory.datagram(VICTIM, part), Address(HOSTS[MALLORY], PORT))
        elif act.over == "sink":
            if world.session is not None:
                await self._say(*world.session, act.parts)
        else:
            assert isinstance(act.over, Pair)
            stream = world.connect()
            try:
                session = await self._mallory.open(stream, VICTIM, act.over, world.nonce())
                stream.put(frame(encoded(["alive", 0], "msgpack"), session.sending))
                await self._say(stream, session, act.parts)
            except (PortError, Refused):
                pass
            stream.close()
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def _say(self, stream: Stream, session: Session, parts: tuple[bytes, ...]) -> None:
        try:
            for part in parts:
                stream.put(frame(part, session.sending))
                for _ in range(_ROUNDS):
                    await asyncio.sleep(0)
        except PortError:
            pass

    def close(self) -> None:
        self._runner.run(self._world.close())
        self._runner.close()


def frames(variant: str) -> Any:
    return lambda directory: Frames(variant)
