"""What a node says on its control stream: bounded, checked, and its own failure where it is not a report."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from node_agent.agent.control import AskStatus
from orchestrator.backends.agent_channel import MOST_UNASKED, AgentChannel, AgentLost

GOOD = b'{"id": 1, "state": "running", "ready": true, "now_ns": 5}\n'
UNASKED = b'{"id": 0, "state": "running", "ready": true, "now_ns": 5}\n'
LIMIT = 64 * 1024


def with_node(say: bytes, act: Callable[[AgentChannel], Awaitable[None]]) -> None:
    """``act`` with the channel to a node that says this to whatever it is asked."""

    async def use() -> None:
        ours, theirs = socket.socketpair()
        channel = AgentChannel(*await asyncio.open_unix_connection(sock=ours, limit=LIMIT))
        reader, writer = await asyncio.open_unix_connection(sock=theirs)

        async def answer() -> None:
            await reader.readline()
            writer.write(say)

        answering = asyncio.create_task(answer())
        try:
            async with asyncio.timeout(10):
                await act(channel)
        finally:
            answering.cancel()
            writer.close()
            await channel.close()

    asyncio.run(use())


async def fails(channel: AgentChannel) -> None:
    with pytest.raises(AgentLost):
        await channel.ask(AskStatus(), 5)
    assert channel.lost and channel.failure.startswith("it says what cannot be understood")


def test_an_answer_arrives() -> None:
    async def act(channel: AgentChannel) -> None:
        assert (await channel.ask(AskStatus(), 5)).now_ns == 5

    with_node(GOOD, act)


@pytest.mark.parametrize(
    "said",
    [
        b"[" * 20_000 + b"\n",
        b'{"id": 1, "x": ' + b'{"a":' * 5_000 + b"\n",
        b"\xff\xfe\n",
        GOOD.replace(b"5}", b"9" * 400 + b"}"),
        GOOD.replace(b'"id": 1', b'"id": 1e400'),
        GOOD.replace(b"running", b"dancing"),
    ],
    ids=["deep", "deep inside", "no text", "huge number", "infinite", "unknown state"],
)
def test_what_is_no_report_is_the_nodes_failure(said: bytes) -> None:
    with_node(said, fails)


def test_a_flood_of_reports_that_nobody_asked_for_is_the_nodes_failure() -> None:
    with_node(UNASKED * (MOST_UNASKED + 10), fails)


def test_a_line_that_does_not_end_is_given_up() -> None:
    async def act(channel: AgentChannel) -> None:
        with pytest.raises(AgentLost, match="control lost"):
            await channel.ask(AskStatus(), 5)

    with_node(b"x" * (4 * LIMIT), act)


def test_a_failure_is_told_as_one_line_of_text() -> None:
    async def act(channel: AgentChannel) -> None:
        with pytest.raises(AgentLost) as told:
            await channel.ask(AskStatus(), 5)
        assert str(told.value) == channel.failure == r"disk\x1b[2J full\nn2: fine"

    failure = rb'"failure": "disk\u001b[2J full\nn2: fine"'
    with_node(b'{"id": 1, "state": "new", "ready": false, "now_ns": 5, %b}\n' % failure, act)
