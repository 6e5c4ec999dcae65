"""A reader as the agent sees it: names, metrics, node costs, and old graphs while reads fail."""

import asyncio
from math import log

import pytest

from node_agent.linkstate.base import LinkStateUnavailable
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.measured import MeasuredLinkState, graph_of
from node_agent.linkstate.node_costs import with_node_costs
from node_agent.linkstate.pushed import PushedLinkState
from node_agent.linkstate.reader import Edge, NotOffered, Reading, TimedOut
from node_agent.linkstate.registry import LINK_STATE_READERS, open_link_state, problems
from node_agent.linkstate.source import Downstream
from node_agent.model.cost_graph import CostGraph
from node_agent.ports.os_port import OsPort

NAMES = {"10.0.0.1": "a", "10.0.0.2": "b", "10.1.0.3": "c"}
READING = Reading(
    {
        "10.0.0.1": {"10.0.0.2": Edge(2.0, delivery=0.5, latency=0.004)},
        "10.0.0.2": {"10.0.0.1": Edge(4.0, delivery=0.25), "10.0.0.3": Edge(1.0, delivery=1.0)},
        "10.0.0.3": {"10.0.0.9": Edge(1.0, delivery=1.0)},
    },
    "etx",
    "test",
    {"10.1.0.3": "10.0.0.3"},
)
SECOND = 10**9


class ScriptedReader:
    def __init__(self) -> None:
        self.now_ns = 0
        self.reads = True

    async def read(self) -> Reading:
        if not self.reads:
            raise TimedOut("the daemon is silent")
        return READING


def test_nodes_have_names_by_any_of_their_addresses() -> None:
    graph = graph_of(READING, NAMES, None, 7)
    assert graph == CostGraph(
        {"a": {"b": 2.0}, "b": {"a": 4.0, "c": 1.0}, "c": {"10.0.0.9": 1.0}, "10.0.0.9": {}}, "etx", "test", 7
    )


def test_metrics() -> None:
    assert graph_of(READING, NAMES, "hops", 0).costs["b"] == {"a": 1.0, "c": 1.0}
    assert graph_of(READING, NAMES, "log_delivery", 0).costs["b"] == {
        "a": pytest.approx(-log(0.25)),
        "c": 0.0,
    }
    latency = graph_of(READING, NAMES, "latency", 0)
    assert latency.metric == "latency"
    assert latency.costs == {
        "a": {"b": 0.004},
        "b": {},
        "c": {},
        "10.0.0.9": {},
    }  # what is not known is no link


@pytest.mark.parametrize("metric", ["etx", "latency"])
def test_a_metric_that_the_source_does_not_know(metric: str) -> None:
    hops = Reading({"10.0.0.1": {"10.0.0.2": Edge(1.0)}}, "hops", "kernel")
    with pytest.raises(NotOffered, match=metric):
        graph_of(hops, NAMES, metric, 0)


def test_own_costs_are_taken_for_both_ways() -> None:
    reading = Reading({"10.0.0.1": {"10.0.0.2": Edge(2.0)}}, "etx", "babeld", own_only=True)
    assert graph_of(reading, NAMES, None, 0).costs == {"a": {"b": 2.0}, "b": {"a": 2.0}}


def test_node_costs_count_for_the_node_that_is_entered() -> None:
    graph = CostGraph({"a": {"b": 1.0}, "b": {"a": 1.0, "c": 2.0}, "c": {}}, "etx", "test", 3)
    dearer = with_node_costs(graph, {"b": 0.5, "nobody": 9.0})
    assert dearer == CostGraph({"a": {"b": 1.5}, "b": {"a": 1.0, "c": 2.0}, "c": {}}, "etx", "test", 3)


def test_the_last_good_graph_is_kept_with_its_age() -> None:
    async def scenario() -> None:
        reader = ScriptedReader()
        state = MeasuredLinkState(reader, NAMES, lambda: reader.now_ns, keep=10.0)
        reader.reads = False
        with pytest.raises(LinkStateUnavailable):  # there has been none yet
            await state.cost_graph()
        reader.reads = True
        reader.now_ns = 5 * SECOND
        good = await state.cost_graph()
        assert good.taken_ns == 5 * SECOND
        assert good.costs["a"] == {"b": 2.0}
        reader.reads = False
        reader.now_ns = 15 * SECOND
        assert await state.cost_graph() == good
        assert isinstance(state.failure, TimedOut)
        reader.now_ns += 1
        with pytest.raises(TimedOut):
            await state.cost_graph()
        reader.reads = True
        assert (await state.cost_graph()).taken_ns == reader.now_ns
        assert state.failure is None

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", LINK_STATE_READERS)
def test_every_kind_can_be_opened(kind: str) -> None:
    async def scenario() -> None:
        config = LinkStateConfig(kind, port=9)  # nobody listens there
        assert problems(config) == []
        async with open_link_state(config, OsPort("127.0.0.1"), {}, Downstream(["127.0.0.2"]), {}) as state:
            if isinstance(state, PushedLinkState):
                state.push(CostGraph({}, "hops", "test", 1))
            try:
                assert (await state.cost_graph()).costs is not None
            except LinkStateUnavailable as error:
                assert "9" in str(error)

    asyncio.run(scenario())


def test_what_cannot_be_used_is_said_before() -> None:
    assert "olsrd_jsoninfo" in problems(LinkStateConfig("olsr"))[0]
    assert "not etx" in problems(LinkStateConfig("kernel", metric="etx"))[0]
    assert len(problems(LinkStateConfig("babeld", None, 70000, "hops", -1))) == 3
