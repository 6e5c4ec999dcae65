"""What waits for another node: sent in order, again after a connection broke, and gone once it arrived."""

import asyncio
from typing import Any

import pytest

from node_agent.apps.mcep.frames import Have, Item, pieces
from node_agent.apps.mcep.link import Link
from node_agent.apps.mcep.messages import Results, Said, UpTo
from node_agent.apps.mcep.wire import decode
from node_agent.ports import ConnectionLost
from node_agent.transport.messages import Pair

pytestmark = [pytest.mark.unit, pytest.mark.timeout(20)]

PAIR = Pair("car1", "b1")


class Wire:
    """A connection that takes at most two items at once."""

    def __init__(self) -> None:
        self.sent: list[Item] = []
        self.broken = False
        self.closed = 0

    async def ready(self) -> None:
        if self.broken:
            raise ConnectionLost("cut")

    async def send(self, items: list[Item]) -> int:
        self.sent += items[:2]
        return len(items[:2])

    async def close(self) -> None:
        self.closed += 1


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_was_not_acknowledged_is_sent_again() -> None:
    async def scenario() -> None:
        wire, arrived = Wire(), []

        def take(to: str, said: Said) -> None:
            arrived.append(said)

        connect: Any = lambda link: wire  # noqa: E731
        link = Link("b1", connect, take)
        running = asyncio.create_task(link.run())
        for t in (1.0, 2.0, 3.0):
            link.add(UpTo(t))
        await _settle()
        assert [item.number for item in wire.sent] == [1, 2, 3] and link.waiting == 3
        link.said(PAIR, Have(1))
        assert arrived == [UpTo(1.0)] and link.waiting == 2
        wire.sent.clear()
        wire.broken = True
        link.lost(PAIR, (), "silence")
        await asyncio.sleep(0.01)
        assert wire.sent == [] and link.waiting == 2
        wire.broken = False
        await asyncio.sleep(0.1)
        assert [(item.number, decode(item.said)) for item in wire.sent] == [(2, UpTo(2.0)), (3, UpTo(3.0))]
        link.said(PAIR, Have(1, again=True))
        await _settle()
        assert [item.number for item in wire.sent] == [2, 3, 2, 3]
        link.said(PAIR, Have(10**9))  # more than was ever sent: it has all that was
        assert link.waiting == 0 and arrived == [UpTo(1.0), UpTo(2.0), UpTo(3.0)]
        running.cancel()
        await asyncio.wait([running])
        assert wire.closed == 1

    asyncio.run(scenario())


def test_many_results_go_in_pieces() -> None:
    whole = Results("near", tuple(range(250)))  # type: ignore[arg-type]
    parts = list(pieces(whole))
    assert [len(part.results) for part in parts if isinstance(part, Results)] == [100, 100, 50]
    assert list(pieces(UpTo(1.0))) == [UpTo(1.0)]
