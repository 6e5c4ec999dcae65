"""An agent that can be watched: its tallies, what it reads when asked, and how soon others can read it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from node_agent.agent import metrics
from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig, Watch
from node_agent.agent.control import AskMetrics, Report, Request, State
from node_agent.agent.control_lines import encode
from node_agent.agent.controlled_agent import ControlledAgent
from node_agent.agent.metrics import AGENT_METRICS, AgentTally
from node_agent.agent.taps import MOST_SAMPLE_BYTES, MOST_SAMPLES, Taps, within_bounds
from node_agent.apps.base import AppConfig, AppKind
from node_agent.apps.registry import APPLICATIONS
from node_agent.extensions.failures import Failures
from node_agent.model.telemetry import ExtensionFailed, RefusalCount, RoutingOverhead
from node_agent.telemetry.kinds import RecordKinds
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.telemetry.segments import read_records
from tests.unit.networks import Network, RadioNetwork
from tests.unit.node_agent.agent.test_agent import run
from tests.unit.node_agent.agent.test_applications import Tick, Ticker, TickerConfig

TICKS = "rove_ticks_total"
WATCHED = Watch(flush_period=0.25, neighbours_period=2.0)


class TickTally:
    def __init__(self) -> None:
        self.taken: list[tuple[str, int, int]] = []

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        self.taken.append((kind, record.number, t_ns))

    def samples(self) -> Iterator[Sample]:
        yield Sample(TICKS, (), len(self.taken))
        yield Sample(TICKS, (), float("nan"))


class BadTally(TickTally):
    calls = 0

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        BadTally.calls += 1
        raise ZeroDivisionError("no")


class SilentTally(TickTally):
    def samples(self) -> Iterator[Sample]:
        raise ValueError("cannot say")


def kinds(tally: Any = TickTally) -> MetricKinds:
    return MetricKinds((Metric(TICKS, MetricKind.COUNTER, "Ticks."),), tally)


@pytest.fixture(autouse=True)
def _kinds() -> Iterator[None]:
    named = {"ticks": kinds(), "bad": kinds(BadTally), "silent": kinds(SilentTally), "none": None}
    for name, found in named.items():
        APPLICATIONS.register(name, AppKind(TickerConfig, Ticker, RecordKinds((Tick,)), metrics=found))
    yield
    for name in named:
        APPLICATIONS.unregister(name)


def agent_of(tmp_path: Path, network: Network, *apps: str, **settings: Any) -> Agent:
    port = network.port("n1")
    nodes = ("n1", "n2")
    configs = tuple(AppConfig.of(name, name, TickerConfig()) for name in apps)
    config = AgentConfig(
        "run",
        "n1",
        {node: network.address(node) for node in nodes},
        {node: bytes(32) for node in nodes},
        configs,
        **{"watch": WATCHED, **settings},
    )
    return Agent(config, port, network, SegmentLog(tmp_path, "run", "n1", port.now_ns))


def after(seconds: float, tmp_path: Path, *apps: str, **settings: Any) -> tuple[Agent, tuple[Sample, ...]]:
    """The agent that has run for so long, and what it reported before it stopped."""
    found: list[Any] = []

    async def scenario() -> None:
        agent = agent_of(tmp_path, RadioNetwork(("n1", "n2")), *apps, **settings)
        await agent.start()
        await asyncio.sleep(seconds)
        found.extend((agent, await agent.metrics()))
        await agent.stop("done")

    run(scenario)
    return found[0], found[1]


def of(samples: tuple[Sample, ...], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.name == name]


def test_records_are_counted_as_they_are_written(tmp_path: Path) -> None:
    agent, samples = after(3.5, tmp_path, "ticks", "none")
    assert of(samples, TICKS) == [Sample(TICKS, (), 3, "ticks")]
    assert agent.failure is None
    ticks = [r for r in read_records(tmp_path) if r["kind"] == "test_tick"]
    assert sum(r["app"] == "none" for r in ticks) == sum(r["app"] == "ticks" for r in ticks) == 4


def test_the_time_of_a_record_is_that_of_its_line(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, "run", "n1", iter(range(100, 200)).__next__)
    taps, tallies = Taps(log, Failures()), list[TickTally]()

    def made() -> TickTally:
        tallies.append(TickTally())
        return tallies[-1]

    record = taps.recorder("clock", kinds(made))
    record(Tick(7))
    record(Tick(8))
    log.close()
    assert tallies[0].taken == [("test_tick", 7, 100), ("test_tick", 8, 101)]
    assert [r["t_ns"] for r in read_records(tmp_path)] == [100, 101]


def test_what_the_agent_reads_when_it_is_asked(tmp_path: Path) -> None:
    _, samples = after(2.0, tmp_path, "ticks")
    assert [s.labels[0] for s in of(samples, metrics.LINK_COST)] == ["n2"]
    assert [s.value for s in of(samples, metrics.BOOT)] == [1]
    for name in (metrics.CPU, metrics.RESIDENT, metrics.OPEN_FDS, metrics.RECORDS):
        (sample,) = of(samples, name)
        assert sample.value > 0
    assert of(samples, metrics.INFO) and of(samples, metrics.BUFFERED)
    declared = {metric.name: metric for metric in AGENT_METRICS} | {TICKS: kinds().metrics[0]}
    assert all(len(s.labels) == len(declared[s.name].labels) for s in samples)
    # What an application sends besides its data is counted under its name.
    assert {s.app for s in of(samples, metrics.MESSAGES_SENT)} <= {"ticks"}


def test_a_lost_neighbour_vanishes(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n1", "n2"))
        agent = agent_of(tmp_path, network)
        await agent.start()
        assert of(await agent.metrics(), metrics.LINK_COST)
        network.blind = True
        assert not of(await agent.metrics(), metrics.LINK_COST)
        await agent.stop("done")

    run(scenario)


@pytest.mark.parametrize("kind", ["bad", "silent"])
def test_a_tally_that_fails_is_left_out_and_does_not_end_the_agent(tmp_path: Path, kind: str) -> None:
    BadTally.calls = 0
    agent, samples = after(3.5, tmp_path, kind, "ticks")
    assert agent.failure is None
    assert of(samples, TICKS) == [Sample(TICKS, (), 3, "ticks")]
    records = list(read_records(tmp_path))
    assert [(r["what"], r["name"], r["count"]) for r in records if r["kind"] == "extension_failed"] == [
        ("tally of metrics", kind, 1)
    ]
    assert sum(r["kind"] == "test_tick" and r["app"] == kind for r in records) == 4
    assert BadTally.calls == (1 if kind == "bad" else 0)


def test_no_more_samples_than_the_limit(tmp_path: Path) -> None:
    class Endless(TickTally):
        def samples(self) -> Iterator[Sample]:
            while True:
                yield Sample(TICKS, (), 1)

    log = SegmentLog(tmp_path, "run", "n1", lambda: 0)
    taps = Taps(log, Failures())
    taps.recorder("clock", kinds(Endless))
    assert len(list(taps.samples())) == MOST_SAMPLES


def test_samples_are_bounded_in_number_and_in_bytes() -> None:
    short = [Sample(TICKS, (str(number),), 1) for number in range(MOST_SAMPLES + 10)]
    assert list(within_bounds(short)) == short[:MOST_SAMPLES]
    long = [Sample(TICKS, (str(number), "ü\n" * 3000), 1) for number in range(MOST_SAMPLES)]
    taken = list(within_bounds(long))
    assert taken == long[: len(taken)]
    size = len(encode(Report(1, State.RUNNING, True, 2**62, samples=tuple(taken))))
    assert MOST_SAMPLE_BYTES - 20_000 < size < 4 * 1024 * 1024


def test_an_agent_in_virtual_time_counts_nothing(tmp_path: Path) -> None:
    _, samples = after(1.5, tmp_path, "ticks", watch=None)
    assert samples == ()
    assert "neighbours" not in {r["kind"] for r in read_records(tmp_path)}


def test_the_owner_asks_and_gets_samples(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n1", "n2"))
        agent = agent_of(tmp_path, network, "ticks")
        await agent.start()
        report = await ControlledAgent(agent, network.port("n1"), None).handle(Request(AskMetrics(), 3))
        assert report.id == 3 and of(report.samples, TICKS)
        await agent.stop("done")

    run(scenario)


def test_the_agents_own_counters() -> None:
    tally = AgentTally()
    for source, count in (("10.0.0.9", 3), ("10.0.0.8", 2), ("10.0.0.9", 5)):
        tally.take("refused", RefusalCount("connection", source, "forged", count), 1)
    tally.take("extension_failed", ExtensionFailed("policy", "mine", "f:1", "no", 4, False), 1)
    for sent in (1, 9):
        tally.take("routing_overhead", RoutingOverhead("olsr", "TC", sent, 10 * sent, 2, 20), 1)
    tally.take("agent_stop", object(), 1)
    found = {(s.name, s.labels): s.value for s in tally.samples()}
    assert found == {
        (metrics.REFUSED, ("connection", "forged")): 7,
        (metrics.EXTENSION_FAILURES, ("policy", "mine")): 4,
        (metrics.MESSAGES_SENT, ("olsr", "TC")): 9,
        (metrics.BYTES_SENT, ("olsr", "TC")): 90,
        (metrics.MESSAGES_FORWARDED, ("olsr", "TC")): 2,
        (metrics.BYTES_FORWARDED, ("olsr", "TC")): 20,
    }


def test_records_can_be_read_soon(tmp_path: Path) -> None:
    async def scenario() -> None:
        agent = agent_of(tmp_path, RadioNetwork(("n1", "n2")), sample_period=100.0)
        await agent.start()
        await asyncio.sleep(0.3)
        assert [r["kind"] for r in read_records(tmp_path)] == ["agent_start"]
        await agent.stop("done")

    run(scenario)


def test_own_links_are_recorded_when_they_have_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = RadioNetwork(("n1", "n2"))
        agent = agent_of(tmp_path, network)
        await agent.start()
        await asyncio.sleep(7.0)
        await agent.stop("done")
        (seen,) = (r for r in read_records(tmp_path) if r["kind"] == "neighbours")
        assert list(seen["costs"]) == ["n2"] and seen["app"] == ""

    run(scenario)
