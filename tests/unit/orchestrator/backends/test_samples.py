"""What a node reports of itself while it runs: a hostile answer is refused with one line."""

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from node_agent.agent.control import AskMetrics, Report, State
from node_agent.agent.metrics import CPU, LINK_COST, REFUSED
from node_agent.agent.taps import MOST_SAMPLES
from node_agent.apps.base import AppKind
from node_agent.apps.registry import APPLICATIONS
from node_agent.telemetry.metrics import Exemplar, Metric, MetricKind, MetricKinds, Sample
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from orchestrator.backends.samples import SampleCheck
from orchestrator.runs.backend import NodeNotSeen
from tests.unit.node_agent.agent.test_agent_reports import with_node
from tests.unit.node_agent.agent.test_applications import Ticker, TickerConfig
from tests.unit.node_agent.agent.test_watching import TickTally

LATENCY = Metric("rove_tick_seconds", MetricKind.HISTOGRAM, "Ticks.", buckets=(0.1, 1.0))
GOOD = Sample(LATENCY.name, (), 1.5, "clock", (1, 0, 2), Exemplar({"tick": "7"}, 0.3, 5))


@pytest.fixture
def check() -> Any:
    kind = AppKind(TickerConfig, Ticker, metrics=MetricKinds((LATENCY,), TickTally))
    APPLICATIONS.register("test_ticks", kind)
    yield SampleCheck({"clock": "test_ticks", "other": "flows"}, ("n1", "n2"))
    APPLICATIONS.unregister("test_ticks")


def test_good_ones_pass(check: SampleCheck) -> None:
    samples = (GOOD, Sample(LINK_COST, ("n2", "etx"), 1.5), Sample(CPU, (), 0.1), Sample(CPU, (), 1, "other"))
    assert check.checked("n1", samples) == samples


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (replace(GOOD, name="rove_invented_total"), "no such metric"),
        (replace(GOOD, app=""), "no such metric"),
        (replace(GOOD, app="other"), "no such metric"),
        (replace(GOOD, app="x" * 100_000), "no such metric"),
        (replace(GOOD, labels=("a",)), "1 labels instead of 0"),
        (replace(GOOD, value=float("nan")), "not a finite number"),
        (replace(GOOD, value=float("inf")), "not a finite number"),
        (replace(GOOD, value=-1.0), "negative"),
        (replace(GOOD, counts=(1, 2)), "do not fit its buckets"),
        (replace(GOOD, counts=(1, 2, -3)), "out of range"),
        (replace(GOOD, exemplar=Exemplar({"tick": "7" * 300}, 0.3, 5)), "exemplar"),
        (replace(GOOD, exemplar=Exemplar({str(i): "7" for i in range(99)}, 0.3, 5)), "exemplar"),
        (replace(GOOD, exemplar=Exemplar({}, float("nan"), 5)), "exemplar"),
        (Sample(REFUSED, ("what", "y" * 201), 1), "a label is longer than 200"),
        (Sample(LINK_COST, ("n3", "etx"), 1.5), "not a node of the run"),
        (Sample("rove\n\x1b[2J" * 1000, (), 1), "no such metric"),
    ],
)
def test_bad_ones_are_refused_with_one_line(check: SampleCheck, bad: Sample, reason: str) -> None:
    with pytest.raises(NodeNotSeen, match=reason) as told:
        check.checked("n1", (Sample(CPU, (), 0.1), bad))
    text = str(told.value)
    assert text.isprintable() and len(text) < 300 and text.startswith("the metrics of n1 are refused")


def test_too_many_and_doubled_ones_are_refused(check: SampleCheck) -> None:
    with pytest.raises(NodeNotSeen, match="more than 4096"):
        check.checked("n1", (GOOD,) * (MOST_SAMPLES + 1))
    with pytest.raises(NodeNotSeen, match="there twice"):
        check.checked("n1", (GOOD, GOOD))


@pytest.mark.parametrize(
    "samples",
    [b'[["x", [], null]]', b'[["x", [], "1"]]', b"[[1, [], 1.0]]", b'[["x", ["a", 2], 1.0]]', b'{"x": 1}'],
)
def test_what_is_no_sample_is_the_nodes_failure(samples: bytes) -> None:
    async def fails(channel: AgentChannel) -> None:
        with pytest.raises(AgentLost):
            await channel.ask(AskMetrics(), 5)
        assert channel.failure.startswith("it says what cannot be understood")

    report = msgspec.json.encode(Report(1, State.RUNNING, True, 5))
    with_node(report[:-1] + b', "samples": ' + samples + b"}\n", fails)


def test_an_older_agent_does_not_answer_and_stays(check: SampleCheck) -> None:
    """It says that this is no request, and answers the next one."""
    refusal = Report(0, State.RUNNING, True, 5, error="not a request: unknown command")

    async def asks(channel: AgentChannel) -> None:
        with pytest.raises(AgentLost, match="no answer within"):
            await channel.ask(AskMetrics(), 0.2)
        await asyncio.sleep(0)
        assert not channel.lost and not channel.failure

    with_node(msgspec.json.encode(refusal) + b"\n", asks)
