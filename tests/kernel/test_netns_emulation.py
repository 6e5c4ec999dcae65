"""The network of a topology as nodes see it: routes follow the true links, over TAP or without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from node_agent.model.cost_graph import CostGraph
from orchestrator.backends.netns import executor, network
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio.client import RadioFailed
from orchestrator.radio.changes import AirChanges, Weakened
from orchestrator.runs import processes
from orchestrator.runs.journal import Journal
from orchestrator.services.base import TrueRoutes
from orchestrator.spec.topology import Topology
from tests.kernel.inside import answered, icmp_socket, send_ping

PATIENCE_S = 60.0


def topology(**mobility: object) -> Topology:
    return Topology.model_validate(
        {
            "name": "few",
            "nodes": ["a", "b", "c"],
            "area": "1000 m x 100 m",
            "mobility": mobility or {"model": "static", "grid": {"columns": 3, "spacing": "200 m"}},
            "radio": {"model": "disc", "range": "250 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
        }
    )


@asynccontextmanager
async def emulated(mark: Mark, nodes: Topology, costs: list[CostGraph]) -> AsyncIterator[Emulation]:
    with Journal.create(mark.directory / "journal.jsonl") as journal:
        told = asyncio.Event()

        def tell(graph: CostGraph) -> None:
            costs.append(graph)
            told.set()

        emulation = Emulation(nodes, 1, 60.0, mark, journal, on_costs=tell)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await emulation.up()
                await told.wait()
                yield emulation
        finally:
            await emulation.down()
            assert network.leftovers(mark) == []


def pings(mark: Mark, emulation: Emulation, here: str, there: str) -> bool:
    with icmp_socket(mark, here) as icmp:
        send_ping(icmp, emulation.hosts[there])
        return answered(icmp, emulation.hosts[there])


@pytest.mark.parametrize("device", [executor.TUN_DEVICE, Path("/dev/there/is/no/tun")])
def test_a_relay_forwards(mark: Mark, device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "TUN_DEVICE", device)
    costs: list[CostGraph] = []

    async def scenario() -> None:
        async with emulated(mark, topology(), costs) as emulation:
            assert await asyncio.to_thread(pings, mark, emulation, "a", "c")
            await emulation.stop_radio()
            await emulation.stop_radio()
            await emulation.down()  # may be repeated

    asyncio.run(scenario())
    assert (costs[0].source, costs[0].metric) == ("ground_truth", "etx")
    assert costs[0].costs == {"a": {"b": 1.0}, "b": {"a": 1.0, "c": 1.0}, "c": {"b": 1.0}}


def test_a_node_out_of_range_has_no_route(mark: Mark) -> None:
    positions = {"a": ["0 m", "0 m"], "b": ["200 m", "0 m"], "c": ["900 m", "0 m"]}

    async def scenario() -> None:
        async with emulated(mark, topology(model="static", positions=positions), []) as emulation:
            assert await asyncio.to_thread(pings, mark, emulation, "a", "b")
            with pytest.raises(OSError, match="unreachable"):
                pings(mark, emulation, "a", "c")

    asyncio.run(scenario())


def test_changes_of_the_air_hold_until_they_are_taken_back(mark: Mark) -> None:
    """Alone in the middle, b relays: a split, a cut, a silence and a move each take c away from a."""
    changes = [
        AirChanges(splits=((("c",),),)),
        AirChanges(links=(Weakened("b", "c"),)),
        AirChanges(silent=("b",)),
        AirChanges(places={"c": (900.0, 0.0)}),
    ]

    async def scenario() -> None:
        async with emulated(mark, topology(), []) as emulation:
            for change in changes:
                await emulation.change_air(change)
                with pytest.raises(OSError, match="unreachable"):
                    pings(mark, emulation, "a", "c")
                await emulation.change_air(AirChanges())
                assert await asyncio.to_thread(pings, mark, emulation, "a", "c")

    asyncio.run(scenario())


def test_without_relays_a_node_reaches_its_neighbours_only(mark: Mark) -> None:
    async def scenario() -> None:
        with Journal.create(mark.directory / "journal.jsonl") as journal:
            told = asyncio.Event()
            routes = TrueRoutes("etx", relays=False)
            emulation = Emulation(topology(), 1, 60.0, mark, journal, routes, lambda graph: told.set())
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await emulation.up()
                    await told.wait()
                assert await asyncio.to_thread(pings, mark, emulation, "a", "b")
                with pytest.raises(OSError, match="unreachable"):
                    pings(mark, emulation, "a", "c")
            finally:
                await emulation.down()

    asyncio.run(scenario())


def test_a_radio_that_ended_is_noticed(mark: Mark) -> None:
    async def scenario() -> None:
        async with emulated(mark, topology(), []) as emulation:
            emulation.check()
            processes.end(mark.processes(), 5.0)
            await asyncio.sleep(0.2)
            with pytest.raises(RadioFailed, match="the radio ended"):
                emulation.check()

    asyncio.run(scenario())


def test_a_network_that_is_cancelled_on_its_way_up_is_taken_down(mark: Mark) -> None:
    async def scenario() -> None:
        for moment in (0.0, 0.01, 0.05, 0.3):
            with Journal.create(mark.directory / f"{moment}.jsonl") as journal:
                emulation = Emulation(topology(), 1, 60.0, mark, journal)
                rising = asyncio.create_task(emulation.up())
                await asyncio.sleep(moment)
                rising.cancel()
                await asyncio.wait([rising])
                await emulation.down()
                assert network.leftovers(mark) == []

    asyncio.run(scenario())
