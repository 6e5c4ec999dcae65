"""What a malicious node says under its own keys to a whole agent: every message type, with anything in it.

One target for each promise of a query and each rule of its operator's windows: they parse the same frames, and
do other things with them.
"""

import asyncio
import random
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.attacks.mutation import changed_message, encoded
from benchmarks.attacks.speaking import Refused, Session, Speaker, frame
from benchmarks.attacks.worlds import HOSTS, MALLORY, NODES, PAIR, PORT, SIBLING, VICTIM, victim_agent
from node_agent.ports import Address, PortError, Stream
from node_agent.transport.messages import Alive, Pair

_ROUNDS = 15
BIG = 2**62


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
    [1, [["op/0", ["cost_update", "sink/0", 1, 1, 3.5, 2, None, None]]]],
    [1, [["op/0", ["cost_report", "a/0", 1, 2, 1.0, "op/0"]]]],
    [1, [["op/0", ["cost_update", "sink/0", 2**40, 2**62, 0.0, 0, 1.0, "op/1"]]]],
    [1, [["op/0", ["cost_report", "b/0", 1, 2, 1.0, "op/1"]], ["op/1", ["cost_report", "a/0", 1, 1, None, None]]]],
)


class Act(NamedTuple):
    """``over``: a pair that mallory opens a connection for, ``sink`` for the one that the victim opened, or
    ``datagram``. ``parts``: headers or datagrams."""

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
        sound = tuple(encoded(each, "msgpack") for each in rng.choices(FRAMES, k=rng.randint(0, 2)))
        return Act(over, (*sound, changed_message(FRAMES, "msgpack", rng)))

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


__all__ = ["Alive", "Path", "frames"]
