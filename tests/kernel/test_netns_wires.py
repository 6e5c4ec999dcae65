"""Cables beside the radio between namespaces; and a town of vehicles and brokers that have both."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect, read_records
from orchestrator.backends.netns import network
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.marks import Mark
from orchestrator.planning.load import load_experiment
from orchestrator.radio.changes import AirChanges, Weakened
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.topology import Topology
from tests.kernel.test_netns_contacts import burst_s, ping_s
from tests.kernel.test_netns_run import assert_nothing_is_left, root_of
from tests.unit.rove_process import RUN_ID, rove, run_under_test

PATIENCE_S = 40.0
EXPERIMENT = Path(__file__).parents[2] / "experiments" / "mcep" / "backbone.yaml"


def topology() -> Topology:
    places = {"field": ["0 m", "0 m"], "bus": ["2000 m", "0 m"], "base": ["4000 m", "0 m"], "car": [0, "9 m"]}
    return Topology.model_validate(
        {
            "name": "wired",
            "nodes": list(places),
            "area": "4000 m x 100 m",
            "mobility": {"model": "static", "positions": places},
            "radio": {"model": "80211b", "tx_power": "-20 dBm"},
            "wires": [
                {"between": ["field", "bus"], "rate": "50 Mb/s", "latency": "1 ms"},
                {"between": ["bus", "base"], "rate": "500 kb/s", "latency": "20 ms"},
            ],
        }
    )


def test_cables_carry_their_rate_and_lead_on_to_who_is_heard_by_radio(mark: Mark) -> None:
    routed = asyncio.Event()

    async def scenario(emulation: Emulation) -> None:
        await emulation.up()
        await routed.wait()
        base, field = emulation.hosts["base"], emulation.hosts["field"]
        assert await asyncio.to_thread(ping_s, mark, "bus", base) >= 0.04
        assert await asyncio.to_thread(ping_s, mark, "car", base) >= 0.042  # by radio, and over two cables
        slow, fast = await asyncio.gather(
            asyncio.to_thread(burst_s, mark, "base", base), asyncio.to_thread(burst_s, mark, "field", field)
        )
        assert slow > 0.4 and fast < slow
        await emulation.change_air(AirChanges(links=(Weakened("bus", "base"),)))
        with pytest.raises(OSError, match="unreachable"):
            ping_s(mark, "bus", base)

    async def run() -> None:
        with Journal.create(mark.directory / "journal.jsonl") as journal:
            emulation = Emulation(topology(), 1, 60.0, mark, journal, on_costs=lambda _: routed.set())
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await scenario(emulation)
            finally:
                with suppress(Exception):
                    await emulation.stop_radio()
                await emulation.down()
                assert network.leftovers(mark) == []

    asyncio.run(run())


def delivered(run: RunDirectory, file: Path, backend: str) -> list[tuple[object, ...]]:
    file.write_text(to_yaml(load_experiment(EXPERIMENT).resolved() | {"backend": backend, "name": "line"}))
    # A busy machine may make the run invalid; what it delivers must be the same.
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=300)
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    nodes = [f"b{number}" for number in range(1, 10)] + [f"car{number}" for number in range(1, 21)]
    assert all(inspect(run.segments(node)).complete for node in nodes)
    found = [each for each in read_records(run.segments("car1")) if each["kind"] == "situation_found"]
    return [(each["epoch"], each["type"], each["at_ns"], *each["ancestors"]) for each in found]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_vehicles_and_nine_brokers_deliver_what_they_do_in_virtual_time(
    tmp_path: Path, run: RunDirectory
) -> None:
    with run_under_test(tmp_path / "virtual") as virtual:
        in_virtual_time = delivered(virtual, tmp_path / "virtual.yaml", "sim")
    in_namespaces = delivered(run, tmp_path / "namespaces.yaml", "netns")
    assert in_namespaces == in_virtual_time and len(in_virtual_time) > 20
    assert_nothing_is_left(run)
