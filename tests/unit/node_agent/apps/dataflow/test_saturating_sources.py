"""Sources that saturate: as much as the path takes, nothing shed, nothing stale."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.best_effort.dispatcher import Limits
from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.model.query import Query, Reliability
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.apps.dataflow.operators.pace import LEAST_GAP, SATURATE, Pace
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.query.build import Query as QueryBuilder
from node_agent.apps.dataflow.query.functions import source
from node_agent.ports.virtual.loop import VirtualLoop
from tests.unit.networks import LoopbackNetwork
from tests.unit.node_agent.agent.test_agent import (
    ALONE,
    FAR,
    TWICE,
    RadioTestbed,
    Testbed,
    finite_chain,
    nodes_of,
    on_loopback,
    plan,
    run,
    until,
)

LEVELS: tuple[Reliability, ...] = ("best_effort", "at_least_once", "exactly_once")


def saturating(level: Reliability, cpu: float = 0.005, limit: int = 0) -> Query:
    chain = finite_chain(limit, rate=SATURATE, cpu=cpu)
    return msgspec.structs.replace(chain, reliability=level)


def after(seconds: float, query: Query, where: Mapping[str, tuple[str, ...]], path: Path) -> Testbed:
    beds: list[Testbed] = []

    async def scenario() -> None:
        testbed = RadioTestbed(path, plan(query, where), limits=Limits())
        beds.append(testbed)
        await testbed.start()
        await asyncio.sleep(seconds)
        await testbed.stop()

    run(scenario)
    return beds[0]


def latencies(testbed: Testbed) -> list[float]:
    return [(r["t_ns"] - r["born_ns"]) / 1e9 for r in testbed.records("tuple_delivered")]


@pytest.mark.parametrize("level", LEVELS)
def test_it_takes_all_that_the_slowest_operator_can_do(tmp_path: Path, level: Reliability) -> None:
    testbed = after(10, saturating(level, cpu=0.1), ALONE, tmp_path)
    delivered = testbed.records("tuple_delivered")
    assert 90 <= len(delivered) <= 105, "ten a second"
    assert testbed.records("tuple_dropped") == []
    assert len(testbed.records("tuple_emitted", replica="camera/0")) <= len(delivered) + 70


@pytest.mark.parametrize("level", LEVELS)
def test_it_takes_what_the_air_carries_and_little_waits_at_the_source(
    tmp_path: Path, level: Reliability
) -> None:
    testbed = after(5, saturating(level), ALONE, tmp_path)
    steady = msgspec.structs.replace(finite_chain(0, rate=100), reliability=level)
    fixed = after(5, steady, ALONE, tmp_path / "fixed")
    assert len(testbed.taus("tuple_delivered")) >= 0.95 * len(fixed.taus("tuple_delivered"))
    assert testbed.records("tuple_dropped") == []
    waiting = [r["length"] for r in testbed.records("queue", queue="output:detect")]
    assert max(waiting) <= 1
    assert sorted(latencies(testbed))[-10] < 2.0


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_route_it_makes_nothing(tmp_path: Path, level: Reliability) -> None:
    async def scenario() -> None:
        testbed = RadioTestbed(
            tmp_path, plan(saturating(level), ALONE), switching=Switching(period=0.5), limits=Limits()
        )
        testbed.network.move(n1=FAR)
        await testbed.start()
        await asyncio.sleep(10)
        assert testbed.records("tuple_emitted") == []
        testbed.network.move(n1=0)
        await asyncio.sleep(5)
        await testbed.stop()
        assert len(testbed.taus("tuple_delivered")) > 50
        assert testbed.records("tuple_dropped") == []
        assert max(latencies(testbed)) < 3.0, "nothing is left from the outage"

    run(scenario)


@pytest.mark.parametrize("level", LEVELS)
def test_replicas_of_one_node_where_nothing_takes_time(tmp_path: Path, level: Reliability) -> None:
    testbed = after(0.05, saturating(level, cpu=0.0), dict.fromkeys(ALONE, ("n1",)), tmp_path)
    assert 40 <= len(testbed.taus("tuple_delivered")) <= 0.05 / LEAST_GAP + 1
    assert testbed.records("tuple_dropped") == []


@pytest.mark.parametrize("level", LEVELS)
def test_slow_replicas_of_one_node_get_no_more_than_they_can_do(tmp_path: Path, level: Reliability) -> None:
    testbed = after(10, saturating(level, cpu=0.05), dict.fromkeys(ALONE, ("n1",)), tmp_path)
    assert 95 <= len(testbed.taus("tuple_delivered")) <= 101
    if level == "best_effort":
        assert max(latencies(testbed)) < 1.0


def test_windows_larger_than_what_may_be_open_are_filled(tmp_path: Path) -> None:
    chain = saturating("exactly_once")
    detect = msgspec.structs.replace(chain.operator("detect"), takes=CountWindow(50, 50))
    operators = tuple(detect if o.name == "detect" else o for o in chain.operators)
    testbed = after(10, msgspec.structs.replace(chain, operators=operators), ALONE, tmp_path)
    assert len(testbed.taus("tuple_delivered")) >= 2


@pytest.mark.parametrize("level", LEVELS)
def test_it_ends_where_it_is_limited(tmp_path: Path, level: Reliability) -> None:
    testbed = after(20, saturating(level, limit=50), TWICE, tmp_path)
    assert testbed.taus("tuple_delivered") == list(range(1, 51))


def test_the_same_run_again_is_the_same(tmp_path: Path) -> None:
    runs = [after(5, saturating("best_effort"), TWICE, tmp_path / name) for name in ("one", "other")]
    one, other = (
        [testbed.records(kind) for kind in ("tuple_emitted", "tuple_delivered")] for testbed in runs
    )
    assert one == other and one[0]


@pytest.mark.parametrize("level", LEVELS)
def test_on_sockets(tmp_path: Path, level: Reliability) -> None:
    async def scenario() -> None:
        deployment = plan(saturating(level, cpu=0.002), ALONE)
        testbed = Testbed(
            tmp_path, deployment, LoopbackNetwork(nodes_of(deployment)), limits=Limits(), sample_period=0.05
        )
        await testbed.start()
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 100)
        await testbed.stop()
        assert testbed.records("tuple_dropped", reason="source_buffer_full") == []
        assert all(agent.failure is None for agent in testbed.agents.values())

    on_loopback(scenario)


@source(rate=SATURATE)
def counting(tau: int) -> bytes:
    return b"%d" % tau


def test_a_users_function_saturates_as_decorated_or_as_the_step_says(tmp_path: Path) -> None:
    @source
    def steady(tau: int) -> bytes:
        return b"%d" % tau

    for name, made in (("decorated", {}), ("step", {"rate": SATURATE})):
        query = QueryBuilder(name)
        function: Any = counting if name == "decorated" else steady
        query.source(function, name="camera", **made).map("work", cpu=0.01, name="detect").sink(name="screen")
        where = {"camera": ("n1",), "detect": ("n2",), "screen": ("n1",)}
        testbed = after(5, query.build(), where, tmp_path / name)
        assert 400 <= len(testbed.taus("tuple_delivered")) <= 505


class _Clock(Context):
    """A context whose time passes only while it sleeps."""

    def __init__(self) -> None:
        self.at = 0.0

    def time(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_a_pace_counts_from_the_start_and_never_stops_the_clock() -> None:
    async def dues(rate: Any) -> list[float]:
        clock = _Clock()
        pace, found = Pace(rate, clock), []
        for tau in range(1, 4):
            await pace.until_due(tau)
            found.append(clock.at)
        return found

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(dues(4.0)) == [0.0, 0.25, 0.5]
        assert runner.run(dues(SATURATE)) == pytest.approx([0.0, LEAST_GAP, 2 * LEAST_GAP])
