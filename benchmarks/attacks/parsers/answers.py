"""Hostile answers of a node, its supervisor or CORE's host to questions of the orchestrator."""

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from benchmarks.attacks.mutation import changed_bytes, changed_message
from node_agent.agent.control import AskMetrics, AskStatus, Command, Report, State
from node_agent.agent.metrics import LINK_COST, REFUSED
from node_agent.supervisor.commands import MOST_PICTURE, MOST_TAIL
from node_agent.supervisor.place import Ended
from node_agent.supervisor.status import PlaceStatus
from node_agent.telemetry.metrics import Exemplar, Sample
from orchestrator.backends.agent_channel import AgentChannel
from orchestrator.backends.core.driver_client import CoreDriver, left_of
from orchestrator.backends.core.marks import Mark
from orchestrator.backends.remote import leftovers
from orchestrator.backends.remote.ledger import NodeEntry
from orchestrator.backends.remote.records import SupervisedRecords
from orchestrator.backends.remote.requirements import require_free
from orchestrator.backends.samples import SampleCheck
from orchestrator.clocks.book import ClockBook, When, read_book
from orchestrator.clocks.correction import ahead_ns, pieces_of
from orchestrator.clocks.watch import measure
from orchestrator.deployment import facts_on_node
from orchestrator.deployment.bundle import Bundle
from orchestrator.deployment.deploy import Deployed, deploy
from orchestrator.deployment.facts import probe, read_facts
from orchestrator.deployment.layers import Layer
from orchestrator.errors import RoveError
from orchestrator.runs.backend import Cursor
from orchestrator.spec.core import Core
from orchestrator.ssh.command import Completed

PLACE = "/home/pi/.rove/runs/r/n1"
ENTRY = NodeEntry(1, "n1", PLACE, ("python3", "-m", "node_agent.supervisor"), 60.0)


class _Host:
    name = "n1"


class Answering:
    """Stands for a Connection: every command gets the same answer."""

    host = _Host()

    def __init__(self, stdout: bytes, status: int = 0, stderr: bytes = b"") -> None:
        self._done = Completed(status, stdout, stderr)

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        return self._done

    async def output(self, argv: Sequence[str], **options: Any) -> str:
        return self._done.stdout.decode(errors="replace")

    async def upload(self, local: Path, remote: str, **options: Any) -> None:
        pass


class NoWriter:
    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        pass

    async def wait_closed(self) -> None:
        pass


class Answers:
    """``ask`` gets a hostile answer; it may raise RoveError."""

    def __init__(self, sound: Sequence[Any], ask: Callable[[bytes], Awaitable[object]]) -> None:
        self._sound = tuple(msgspec.json.decode(msgspec.json.encode(each)) for each in sound)
        self._ask = ask
        self._runner = asyncio.Runner()

    def draw(self, rng: random.Random) -> bytes:
        data = changed_message(self._sound, "json", rng)
        if rng.random() < 0.1:
            data = changed_bytes((json.dumps(rng.choice(self._sound)).encode(),), rng)
        return (
            data
            if rng.random() < 0.5
            else data + rng.choice((b"\n", b"\n\x1b[2Jmore\n", b"\0", b"\n" + data))
        )

    def feed(self, message: bytes) -> None:
        with contextlib.suppress(RoveError):
            self._runner.run(self._bounded(message))

    async def _bounded(self, message: bytes) -> None:
        await self._ask(message)

    def close(self) -> None:
        self._runner.close()


def facts(directory: Path) -> Answers:
    async def ask(answer: bytes) -> None:
        connection: Any = Answering(answer)
        str(await probe(connection))

    return Answers([facts_on_node.facts()], ask)


def store(directory: Path) -> Answers:
    about = read_facts("n1", json.dumps(facts_on_node.facts()).encode())
    layer = Layer("numpy", "1", "ab" * 32, 1000, 2000)
    bundle = Bundle((layer,), (), ("node_agent",))
    sound = (
        {"missing": {}, "free": 10**9, "checked": True},
        {"missing": {layer.digest: 0}, "free": 10**9, "checked": False},
        {"full": "no room"},
        {"damaged": "x"},
        {"failed": "y"},
    )

    async def ask(answer: bytes) -> None:
        connection: Any = Answering(answer)
        await deploy(connection, about, bundle)

    return Answers(sound, ask)


def reports(directory: Path) -> Answers:
    """Returns reports of an agent or a supervisor: its state, and its clock."""
    sound = (
        Report(1, State.RUNNING, True, 1_700_000_000_000_000_000, reaches=("a", "b")),
        Report(2, State.STOPPED, False, 1, failure="it fell", error="no"),
        Report(1, State.NEW, False, 2**62),
    )

    async def ask(answer: bytes) -> None:
        reader = asyncio.StreamReader(limit=1 << 20)
        reader.feed_data(answer + b"\n")
        writer: Any = NoWriter()
        channel = AgentChannel(reader, writer)
        book = ClockBook()
        try:
            times = iter(range(1_700_000_000_000_000_000, 2**63, 1_000_000))
            for when in (When.BEFORE, When.DURING, When.AFTER):
                question = lambda: channel.ask(AskStatus(), 0.02)  # noqa: E731
                book.add("n1", await measure(question, 2, 0.02, lambda: next(times)), when)
        finally:
            await channel.close()
            book.doubts(0.005, ("n1",))
            document = json.loads(json.dumps(book.document()))
            for name in read_book(document).nodes:
                ahead_ns(pieces_of(read_book(document).of(name)), 1_700_000_000_000_000_000)

    return Answers(sound, ask)


def watched(directory: Path) -> Answers:
    """Returns reports with metrics of an agent, and with pieces of a node's record."""
    latency = Sample("rove_tuple_latency_seconds", ("screen/0",), 1.5, "query", (1,) * 16)
    samples = (
        Sample(LINK_COST, ("n2", "etx"), 1.5),
        Sample(REFUSED, ("connection", "forged"), 3.0),
        replace(latency, exemplar=Exemplar({"origin": "camera", "tau": "7"}, 0.5, 10)),
    )
    sound = (
        Report(1, State.RUNNING, True, 5, samples=samples),
        Report(1, State.RUNNING, True, 5, at=(1, 1, 10), data=b"{}"),
        Report(1, State.RUNNING, True, 5, at=(7,), data=b"jpeg"),
    )
    check = SampleCheck({"query": "query"}, ("n1", "n2"))

    async def ask(answer: bytes) -> None:
        for question in (_metrics, _tail, _picture):
            reader = asyncio.StreamReader(limit=1 << 20)
            reader.feed_data(answer + b"\n")
            reader.feed_eof()
            writer: Any = NoWriter()
            channel = AgentChannel(reader, writer)
            try:
                with contextlib.suppress(RoveError):
                    await question(channel, check)
            finally:
                await channel.close()

    return Answers(sound, ask)


class _Reading:
    """Stands for a node's supervisor, at the other end of ``channel``."""

    def __init__(self, channel: AgentChannel) -> None:
        self._channel = channel

    async def ask_quietly(self, command: Command, timeout: float) -> Report:
        return await self._channel.ask(command, 0.02)


async def _metrics(channel: AgentChannel, check: SampleCheck) -> None:
    for sample in check.checked("n1", (await channel.ask(AskMetrics(), 0.02)).samples):
        assert sample.name.startswith("rove_") and sample.value == sample.value


async def _tail(channel: AgentChannel, check: SampleCheck) -> None:
    supervisor: Any = _Reading(channel)
    at, data = await SupervisedRecords({}, {"n1": supervisor}).tail("n1", Cursor(1, 1, 10))
    assert at >= (1, 1, 10) and len(data) <= MOST_TAIL


async def _picture(channel: AgentChannel, check: SampleCheck) -> None:
    supervisor: Any = _Reading(channel)
    _, data = await SupervisedRecords({}, {"n1": supervisor}).picture("n1", "screen-0", 0)
    assert len(data) <= MOST_PICTURE


def supervisor(directory: Path) -> Answers:
    status = PlaceStatus("other", "n1", PLACE, "running", None, (1, 2), 10, None)
    sound = ({"places": [status]}, {"left": [1, 2], "error": "e", "trouble": "t"}, Ended("x", 1, True))

    async def ask(answer: bytes) -> None:
        deployed = Deployed("/home/pi", "/home/pi/.rove", "python3", ())
        for status in (0, 1):
            connection: Any = Answering(answer, status, answer[:100])
            for question in (
                require_free(connection, deployed, "r"),
                leftovers.end_supervisor(ENTRY, connection, "siege"),
                leftovers._is_supervised(ENTRY, connection),
            ):
                with contextlib.suppress(RoveError):
                    await question

    return Answers(sound, ask)


class Driving:
    """Stands for the process of CORE's driver."""

    def __init__(self, answer: bytes) -> None:
        self.reader = asyncio.StreamReader(limit=1 << 20)
        self.reader.feed_data(answer + b"\n")
        self.reader.feed_eof()
        self.writer = NoWriter()

    async def wait(self) -> int | None:
        return 1

    async def close(self) -> None:
        pass


def core(directory: Path) -> Answers:
    sound = (
        {"id": 1, "state": "runtime", "failure": "", "rounds": 3, "late_s": 0.1},
        {"id": 1, "version": "9.2.1", "emane": ["a"], "sessions": 1},
        {"id": 0, "sessions": [1, 2]},
        {"id": 1, "error": "no"},
    )

    async def ask(answer: bytes) -> None:
        connection: Any = Answering(answer)
        process: Any = Driving(answer)
        driver = CoreDriver(process, "python3", directory / "core.log")
        for question in (
            driver.status(),
            left_of(connection, Core.model_construct(python="p", daemon="d"), Mark("r", "token")),
        ):
            with contextlib.suppress(RoveError):
                await question

    return Answers(sound, ask)
