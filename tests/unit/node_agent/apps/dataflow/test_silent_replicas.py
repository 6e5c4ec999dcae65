"""A replica that does not answer is routed around at once, whatever the network layer thinks of it."""

import asyncio
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from node_agent.agent.agent import Agent
from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.model.decision import Candidate, Situation
from node_agent.apps.dataflow.model.query import Reliability
from node_agent.apps.dataflow.switching.policy import choose
from node_agent.telemetry.segment_log import SegmentLog
from tests.unit.connection_ends import Receiver, ends, item
from tests.unit.connection_ends import run as run_alone
from tests.unit.node_agent.agent.test_agent import FAR, TWICE, RadioTestbed, finite_chain, plan, run

NS = 1_000_000_000
PERIOD = 30.0
"""Seconds between two looks at the network, which therefore cannot be what helps."""


def costing(*paths: float | None, current: str | None = None) -> Situation:
    return Situation(tuple(Candidate(f"d/{i}", path, path) for i, path in enumerate(paths)), current)


def chosen(situation: Situation) -> str | None:
    hop = choose(situation).hop
    return hop.to if hop is not None else None


def test_who_is_silent_is_not_chosen_though_it_is_the_cheapest() -> None:
    situation = costing(1.0, 4.0, 3.0, current="d/0")
    assert chosen(situation) == "d/0"
    assert chosen(situation.without(["d/0"])) == "d/2"
    assert [c.silent for c in situation.without(["d/0"]).candidates] == [True, False, False]
    assert situation.without(["d/0"]).candidates[0].link == 1.0


def test_if_all_that_could_be_used_are_silent_nothing_is_gained_by_waiting() -> None:
    situation = costing(1.0, 4.0, None)
    assert situation.without(["d/0", "d/1"]) == situation
    assert situation.without(["elsewhere/0"]) is situation


def test_a_link_mends_itself_though_nobody_uses_it() -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        await sender.send(item(1))
        await asyncio.sleep(1)
        assert sender.connection.answers
        network.move(down=FAR)
        await asyncio.sleep(3)
        assert (sender.connection.answers, sender.silences) == (False, 1)
        await asyncio.sleep(20)
        network.move(down=1.0)
        await asyncio.sleep(10)
        assert (sender.connection.answers, sender.silences) == (True, 1)
        assert sender.connected()
        await sender.connection.close()
        await receiver.server.close()

    run_alone(scenario())


def test_a_peer_that_was_never_there_is_silent_until_it_comes() -> None:
    async def scenario() -> None:
        network, receiver, sender = await ends()
        await receiver.server.close()
        seeking = asyncio.create_task(sender.connection.ready())
        await asyncio.wait([seeking])
        assert seeking.exception() is not None
        assert (sender.connection.answers, sender.silences) == (False, 1)
        later = Receiver(network.port("down"))
        await later.server.open(7400)
        await asyncio.sleep(10)
        assert sender.connection.answers
        await sender.connection.close()
        await later.server.close()

    run_alone(scenario())


def longest_gap_s(testbed: RadioTestbed) -> float:
    times: list[int] = [record["t_ns"] for record in testbed.records("tuple_delivered")]
    return max(after - before for before, after in pairwise(times)) / NS


@pytest.mark.parametrize("level", ["best_effort", "exactly_once"])
def test_the_stream_goes_on_through_another_replica_before_routing_knows(
    tmp_path: Path, level: Reliability
) -> None:
    async def scenario() -> None:
        query = msgspec.structs.replace(finite_chain(400), reliability=level)
        testbed = RadioTestbed(tmp_path, plan(query, TWICE), switching=Switching(period=PERIOD))
        await testbed.start()
        await asyncio.sleep(5)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(20)
        await testbed.stop()
        assert longest_gap_s(testbed) < 2.5
        [away] = testbed.records("route_switch", replica="camera/0", old="detect/0")
        assert away["new"] == "detect/1"
        if level == "exactly_once":
            assert sorted(testbed.taus("tuple_delivered")) == list(range(1, 401))

    run(scenario)


async def restarted(testbed: RadioTestbed, node: str) -> None:
    """Starts a new agent on a node whose agent was killed."""
    port = testbed.network.port(node)
    log = SegmentLog(testbed.directory / node, "run", node, port.now_ns)
    testbed.agents[node] = Agent(testbed.agents[node].config, port, testbed.network, log)
    await testbed.agents[node].start()


@pytest.mark.parametrize("level", ["best_effort", "exactly_once"])
def test_when_the_replica_in_use_dies_others_that_were_silent_are_sought_at_once(
    tmp_path: Path, level: Reliability
) -> None:
    """The agent of the second replica was dead for so long that it is tried every 3 s only. It is back when
    the agent of the first one is killed; no costs say so.
    """

    async def scenario() -> None:
        query = msgspec.structs.replace(finite_chain(600), reliability=level)
        # The first replica is the cheaper one.
        testbed = RadioTestbed(
            tmp_path, plan(query, TWICE), switching=Switching(period=10.0), node_costs={"n5": 1.0}
        )
        await testbed.start()
        await asyncio.sleep(2)
        await testbed.agents["n2"].stop("killed")
        await asyncio.sleep(1)
        await restarted(testbed, "n2")
        await asyncio.sleep(11)
        await testbed.agents["n5"].stop("killed")
        await asyncio.sleep(8)
        before = testbed.records("route_switch", replica="camera/0")
        await restarted(testbed, "n5")
        died_ns = testbed.network.port("n1").now_ns()
        await testbed.agents["n2"].stop("killed")
        await asyncio.sleep(6)
        await testbed.stop()
        assert [r["new"] for r in before] == ["detect/0", "detect/1", "detect/0"]
        taken = [r["t_ns"] for r in testbed.records("tuple_processed", replica="detect/1")]
        assert min(t_ns for t_ns in taken if t_ns > died_ns) - died_ns < 0.5 * NS

    run(scenario)


def test_whoever_is_back_is_used_again_at_the_next_decision(tmp_path: Path) -> None:
    """Its agent was killed; the node, and so the network layer's view of it, lives on."""

    async def scenario() -> None:
        query = msgspec.structs.replace(finite_chain(400), reliability="exactly_once")
        # The first replica is the cheaper one.
        costs = {"n5": 1.0}
        testbed = RadioTestbed(
            tmp_path, plan(query, TWICE), switching=Switching(period=2.0), node_costs=costs
        )
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.agents["n2"].stop("killed")
        await asyncio.sleep(4)
        await restarted(testbed, "n2")
        await asyncio.sleep(15)
        await testbed.stop()
        switches = testbed.records("route_switch", replica="camera/0")
        assert [(r["old"], r["new"]) for r in switches] == [
            (None, "detect/0"),
            ("detect/0", "detect/1"),
            ("detect/1", "detect/0"),
        ]
        assert longest_gap_s(testbed) < 1.0  # the connection was closed, which needs no waiting for silence
        assert sorted(testbed.taus("tuple_delivered")) == list(range(1, 401))

    run(scenario)
