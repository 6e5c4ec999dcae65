"""What queries promise, kept by whole agents: through crashes, restarts, partitions and flapping links."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from benchmarks.faults.schedules import FAULTS_FOR, QUERIES, Fault, Schedule, schedule
from benchmarks.faults.world import Outcome, outcome
from node_agent.apps.dataflow.config import Switching
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query, Reliability
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.apps.dataflow.wire.messages import Acknowledgement, Batch, Settled
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
from tests.unit.query_agents import replica_of

LEVELS: tuple[Reliability, ...] = ("at_least_once", "exactly_once")


def reliable(query: Query, level: Reliability = "exactly_once") -> Query:
    return msgspec.structs.replace(query, reliability=level)


def on_nodes(name: str, replicas: int, level: Reliability) -> DeploymentPlan:
    """A node for every replica, named like it without the slash."""
    query = Query(name, QUERIES[name], level)
    ends = [Replica(end, 0, end) for end in (*query.sources(), *query.sinks())]
    inner = [Replica(op, i, f"{op}{i}") for op in query.inner() for i in range(replicas)]
    return DeploymentPlan(query, (*ends, *inner))


def suffering(name: str, replicas: int, *faults: Fault, level: Reliability = "exactly_once") -> Outcome:
    deployment = on_nodes(name, replicas, level)
    return outcome(Schedule(1, name, deployment, "shortest_path", 0.5, 1.0, 2.0, faults))


@pytest.mark.parametrize("name", QUERIES)
def test_an_operator_that_dies_and_comes_back_costs_nothing(name: str) -> None:
    """With one replica of each operator there is nobody to turn to: all waits, and is sent again."""
    inner = [r.node for r in on_nodes(name, 1, "exactly_once").replicas if r.node.endswith("0")]
    faults = [Fault("crash", 2.0 + 3.0 * i, 1.5, (node,)) for i, node in enumerate(inner)]
    assert suffering(name, 1, *faults).clean


@pytest.mark.parametrize("name", QUERIES)
def test_the_other_replicas_take_over(name: str) -> None:
    """They never come back within the time that tuples are made."""
    inner = [r.node for r in on_nodes(name, 2, "exactly_once").replicas if r.node.endswith("0")]
    faults = [Fault("crash", 3.0, FAULTS_FOR, (node,)) for node in inner]
    result = suffering(name, 2, *faults)
    assert result.clean
    assert result.finished_after < 20.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("down", [0.05, 1.0, 8.0])
def test_partitions_and_flapping_links_lose_nothing(level: Reliability, down: float) -> None:
    result = suffering(
        "join in windows",
        2,
        Fault("partition", 2.0, down, ("s", "a0", "b1")),
        Fault("flap", 5.0, 4.0, ("a0", "j0"), 0.3),
        Fault("flap", 5.5, 4.0, ("z", "j0"), 0.7),
        Fault("slow", 1.0, 4.0, ("b0", "j0"), 20_000),
        level=level,
    )
    assert (result.lost, result.mismatches, result.failures) == ((), (), ())
    if level == "exactly_once":
        assert result.duplicated == ()


@pytest.mark.parametrize("seed", range(12))
def test_drawn_schedules(seed: int) -> None:
    """A few of the fault campaign (``benchmarks/fault_campaign.py``), which plays hundreds."""
    result = outcome(schedule(seed))
    assert result.clean, f"python -m benchmarks.fault_campaign --seed {seed}"


def test_a_schedule_gives_the_same_twice() -> None:
    assert outcome(schedule(2)) == outcome(schedule(2))


def test_best_effort_does_lose_under_the_same_faults() -> None:
    """Else these tests would show nothing."""
    faults = (Fault("crash", 3.0, 2.0, ("a0",)), Fault("crash", 6.0, 2.0, ("b0",)))
    assert suffering("chain", 1, *faults, level="best_effort").lost


@pytest.mark.parametrize("level", LEVELS)
def test_the_records_tell_the_way_of_every_tuple(tmp_path: Path, level: Reliability) -> None:
    async def scenario() -> None:
        deployment = plan(reliable(finite_chain(200), level), TWICE)
        testbed = RadioTestbed(tmp_path, deployment, switching=Switching(period=1.0))
        await testbed.start()
        await asyncio.sleep(3)
        testbed.network.move(n2=FAR)
        await asyncio.sleep(25)
        await testbed.stop()
        every = list(range(1, 201))
        assert testbed.taus("tuple_emitted") == every
        assert sorted(set(testbed.taus("tuple_delivered"))) == every
        if level == "exactly_once":
            assert sorted(testbed.taus("tuple_delivered")) == every
        assert testbed.records("tuple_dropped") == []
        sent = testbed.taus("tuple_sent", replica="camera/0")
        again = [tau for tau in every if sent.count(tau) > 1]
        assert 0 < len(again) < 60, "what the lost replica had was sent to the other"
        assert set(testbed.taus("tuple_sent", replica="camera/0", to="detect/1")) >= set(again)
        assert {r["to"] for r in testbed.records("tuple_sent", replica="camera/0")} == {
            "detect/0",
            "detect/1",
        }
        queues = {(r["replica"], r["queue"]) for r in testbed.records("queue", node="n5")}
        assert queues == {("detect/1", "input"), ("detect/1", "output:recognise")}

    run(scenario)


def test_windows_and_filters_account_for_their_inputs(tmp_path: Path) -> None:
    query = Query(
        "windows",
        (
            OperatorSpec("camera", "synthetic_source", (), {"rate": 20.0, "limit": 50, "payload": 100}),
            OperatorSpec("sums", "work", ("camera",), {"output": 10}, CountWindow(10, 5)),
            OperatorSpec("screen", "sink", ("sums",)),
        ),
        "exactly_once",
    )

    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(query, {"camera": ("n1",), "sums": ("n2",), "screen": ("n1",)}))
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered", origin="sums") == list(range(1, 10))
        assert testbed.taus("tuple_dropped", reason="absorbed") == list(range(1, 51))

    run(scenario)


def test_replicas_of_one_node_need_no_network(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(reliable(finite_chain(50)), dict.fromkeys(ALONE, ("n1",)))
        testbed = RadioTestbed(tmp_path, deployment)
        await testbed.start()
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 51))

    run(scenario)


@pytest.mark.parametrize("waits", [True, False])
def test_a_source_without_a_way_waits_or_drops_as_configured(tmp_path: Path, waits: bool) -> None:
    async def scenario() -> None:
        limits = DeliveryLimits(items=10, in_flight=4, sources_wait=waits)
        testbed = RadioTestbed(tmp_path, plan(reliable(finite_chain(100)), ALONE), delivery=limits)
        testbed.network.move(n1=FAR)
        await testbed.start()
        await asyncio.sleep(10)
        assert len(testbed.taus("tuple_emitted")) == (10 if waits else 100)
        testbed.network.move(n1=0)
        await asyncio.sleep(20)
        await testbed.stop()
        delivered = testbed.taus("tuple_delivered")
        dropped = testbed.taus("tuple_dropped", reason="source_buffer_full")
        assert sorted(delivered + dropped) == list(range(1, 101))
        assert (dropped == []) is waits

    run(scenario)


def test_what_a_replica_cannot_say_is_ignored(tmp_path: Path) -> None:
    """Streams that do not exist, replicas that are not its neighbours: no memory is spent on them."""

    async def scenario() -> None:
        testbed = RadioTestbed(tmp_path, plan(reliable(finite_chain(20)), ALONE))
        detect = replica_of(testbed.agents["n2"], "detect/0")
        await testbed.start()
        item = StreamTuple("camera/0", 1, 0, 0, 0, (b"x",))
        await detect.take(Batch("camera/0", [item], {"nobody/0": 7}))
        detect.receive_message("recognise/0", Acknowledgement({"nobody/0": [(1, 9)]}, {}))
        detect.receive_message("camera/0", Acknowledgement({"camera/0": [(1, 20)]}, {}))
        detect.receive_message("screen/0", Settled({"camera/0": 20}))
        await asyncio.sleep(5)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 21))
        assert all(agent.failure is None for agent in testbed.agents.values())

    run(scenario)


def test_on_real_sockets_nothing_is_lost_with_a_replica(tmp_path: Path) -> None:
    async def scenario() -> None:
        deployment = plan(reliable(finite_chain(200, rate=100.0, cpu=0.001)), TWICE)
        network = LoopbackNetwork(nodes_of(deployment))
        switching = Switching(period=0.1)
        testbed = Testbed(tmp_path, deployment, network, switching=switching, sample_period=0.05)
        await testbed.start()
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 20)
        network.gone.add("n2")
        await testbed.agents["n2"].stop("crashed")
        await until(lambda: len(testbed.taus("tuple_delivered")) >= 200)
        await testbed.stop()
        assert sorted(testbed.taus("tuple_delivered")) == list(range(1, 201))
        assert all(agent.failure is None for agent in testbed.agents.values())

    on_loopback(scenario)


@pytest.mark.parametrize("room", [1 << 20, 100_000])
def test_what_memory_has_no_room_for_goes_to_a_file(tmp_path: Path, room: int) -> None:
    """Without a way for ten seconds at twenty tuples of 8 KB; then all of them arrive, the file is empty."""

    async def scenario() -> None:
        limits = DeliveryLimits(items=10, in_flight=4, overflow=Overflow.SPILL, spill_bytes=room)
        testbed = RadioTestbed(tmp_path, plan(reliable(finite_chain(100)), ALONE), delivery=limits)
        testbed.network.move(n1=FAR)
        await testbed.start()
        await asyncio.sleep(10)
        kept = len(testbed.taus("tuple_emitted"))
        assert kept == 100 if room == 1 << 20 else 10 < kept < 30
        testbed.network.move(n1=0)
        await asyncio.sleep(20)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 101))
        samples = testbed.records("spill", node="n1")
        assert 50_000 < max(sample["size"] for sample in samples) <= room
        assert (samples[-1]["refused"] > 0) is (room == 100_000)
        assert samples[-1]["size"] == 0

    run(scenario)
    assert all(path.suffix == ".jsonl" for path in tmp_path.rglob("*") if path.is_file())


def test_a_spill_without_a_disk_pushes_back_until_it_has_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        limits = DeliveryLimits(items=10, in_flight=4, overflow=Overflow.SPILL, unacknowledged=0.5)
        testbed = RadioTestbed(tmp_path, plan(reliable(finite_chain(100)), ALONE), delivery=limits)
        testbed.network.move(n1=FAR)
        (tmp_path / "n1").rename(tmp_path / "elsewhere")
        await testbed.start()
        await asyncio.sleep(3)
        (tmp_path / "elsewhere").rename(tmp_path / "n1")
        assert len(testbed.taus("tuple_emitted")) == 10
        assert testbed.records("spill")[-1]["reason"] == "No such file or directory"
        await asyncio.sleep(10)
        assert len(testbed.taus("tuple_emitted")) == 100
        testbed.network.move(n1=0)
        await asyncio.sleep(20)
        await testbed.stop()
        assert testbed.taus("tuple_delivered") == list(range(1, 101))

    run(scenario)


def test_an_edge_may_have_a_buffer_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        chain = finite_chain(100)
        detect = msgspec.structs.replace(chain.operators[1], buffers={"camera": 7})
        query = msgspec.structs.replace(chain, operators=(chain.operators[0], detect, *chain.operators[2:]))
        testbed = RadioTestbed(tmp_path, plan(reliable(query), ALONE))
        testbed.network.move(n1=FAR)
        await testbed.start()
        await asyncio.sleep(10)
        assert len(testbed.taus("tuple_emitted")) == 7
        await testbed.stop()

    run(scenario)
