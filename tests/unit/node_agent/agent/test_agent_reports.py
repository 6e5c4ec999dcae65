"""What a node says on its control stream: bounded, checked, and its own failure where it is not a report."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from node_agent.agent.control import AskMetrics, AskStatus, Report, State
from node_agent.agent.control_lines import encode
from node_agent.telemetry.metrics import Sample
from orchestrator.backends import agent_channel
from orchestrator.backends.agent_channel import MOST_UNASKED, AgentChannel, AgentLost, AgentRefused

GOOD = b'{"id": 1, "state": "running", "ready": true, "now_ns": 5}\n'
UNASKED = b'{"id": 0, "state": "running", "ready": true, "now_ns": 5}\n'
LIMIT = 64 * 1024


def with_node(say: bytes, act: Callable[[AgentChannel], Awaitable[None]], after: int = 1) -> None:
    """``act`` with the channel to a node that says this after so many requests, whatever they are."""

    async def use() -> None:
        ours, theirs = socket.socketpair()
        channel = AgentChannel(*await asyncio.open_unix_connection(sock=ours, limit=LIMIT))
        reader, writer = await asyncio.open_unix_connection(sock=theirs)

        async def answer() -> None:
            for _ in range(after):
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


def test_a_line_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_channel, "MOST_PASSED_BYTES", 2 * LIMIT)
    with_node(b"x" * (4 * LIMIT), fails)


@pytest.mark.parametrize("size", [LIMIT - 10, LIMIT, LIMIT + 1, 3 * LIMIT, 20 * LIMIT])
def test_an_answer_that_is_too_long_is_refused_and_the_next_one_arrives(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_channel, "MOST_REPORT_BYTES", LIMIT // 2)

    async def act(channel: AgentChannel) -> None:
        long = asyncio.create_task(channel.ask(AskMetrics(), 5))
        short = asyncio.create_task(channel.ask(AskStatus(), 5))
        with pytest.raises(AgentRefused, match="its answer is longer than 32768 bytes"):
            await long
        assert (await short).now_ns == 5
        assert not channel.lost and not channel.failure

    samples = (Sample("x" * size, (), 1.0),)
    long = encode(Report(1, State.RUNNING, True, 5, samples=samples))
    with_node(long + encode(Report(2, State.RUNNING, True, 5)), act, after=2)


def test_long_lines_that_nobody_asked_for_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_channel, "MOST_UNASKED", 3)
    with_node((b"x" * (2 * LIMIT) + b"\n") * 4, fails)


def test_a_failure_is_told_as_one_line_of_text() -> None:
    async def act(channel: AgentChannel) -> None:
        with pytest.raises(AgentLost) as told:
            await channel.ask(AskStatus(), 5)
        assert str(told.value) == channel.failure == r"disk\x1b[2J full\nn2: fine"

    failure = rb'"failure": "disk\u001b[2J full\nn2: fine"'
    with_node(b'{"id": 1, "state": "new", "ready": false, "now_ns": 5, %b}\n' % failure, act)


def test_answers_that_come_too_late_are_not_held_against_the_node() -> None:
    async def act(channel: AgentChannel) -> None:
        for _ in range(3):
            with pytest.raises(AgentLost, match="no answer"):
                await channel.ask(AskStatus(), 0.01)
        assert len(channel._given_up) == 3
        assert (await channel.ask(AskStatus(), 5)).now_ns == 5
        assert not channel._given_up

    answers = b"".join(GOOD.replace(b'"id": 1', b'"id": %d' % number) for number in (1, 2, 3, 4))
    with_node(answers, act, after=4)
