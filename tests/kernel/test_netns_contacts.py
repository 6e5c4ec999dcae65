"""Contacts between namespaces: links go up and down by the plan, and carry what their rate allows."""

import asyncio
import json
import time
from contextlib import suppress
from ipaddress import IPv4Address

import pytest

from node_agent.model.cost_graph import CostGraph
from orchestrator.backends.netns import network
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.marks import Mark
from orchestrator.radio.changes import AirChanges, Weakened
from orchestrator.runs.journal import Journal
from orchestrator.services.base import TrueRoutes
from orchestrator.spec.topology import Topology
from tests.kernel.inside import answered, icmp_socket, send_ping, udp_socket

PATIENCE_S = 40.0
UP_S, DOWN_S = 2.0, 8.0
PACKETS, PAYLOAD = 20, 1400
RATE = 500_000
FRAME_BYTES = PAYLOAD + 8 + 20 + 14


def topology() -> Topology:
    links = [
        {"between": ["bus", "base"], "times": [[UP_S, DOWN_S]], "rate": RATE, "latency": "20 ms"},
        {"between": ["field", "bus"], "always": True},
    ]
    return Topology.model_validate(
        {
            "name": "ferry",
            "nodes": ["field", "bus", "base"],
            "area": "1000 m x 100 m",
            "mobility": {"model": "static", "grid": {"columns": 3, "spacing": "200 m"}},
            "radio": {"model": "contacts", "rate": "10 Mb/s", "links": links},
        }
    )


def ping_s(mark: Mark, here: str, to: IPv4Address) -> float:
    """How long an answer takes. Raises OSError if there is no route."""
    with icmp_socket(mark, here) as icmp:
        began = time.monotonic()
        send_ping(icmp, to)
        assert answered(icmp, to)
        return time.monotonic() - began


def burst_s(mark: Mark, there: str, to: IPv4Address) -> float:
    """How long a burst takes from the first packet's arrival to the last one's."""
    with udp_socket(mark, "bus") as sender, udp_socket(mark, there) as receiver:
        for _ in range(PACKETS):
            sender.sendto(bytes(PAYLOAD), (str(to), receiver.getsockname()[1]))
        receiver.recv(2048)
        began = time.monotonic()
        for _ in range(PACKETS - 1):
            receiver.recv(2048)
        return time.monotonic() - began


def test_links_are_up_by_the_plan_and_carry_their_rate(mark: Mark) -> None:
    seen: asyncio.Queue[CostGraph] = asyncio.Queue()

    async def until(is_up: bool) -> None:
        while ("base" in (await seen.get()).costs["bus"]) is not is_up:
            pass

    async def scenario(emulation: Emulation) -> int:
        await emulation.up()
        await until(False)
        base, field = emulation.hosts["base"], emulation.hosts["field"]
        assert await asyncio.to_thread(ping_s, mark, "bus", field) < 1.0
        with pytest.raises(OSError, match="unreachable"):
            ping_s(mark, "bus", base)
        began_ns = await emulation.begin_moving()
        await until(True)
        assert await asyncio.to_thread(ping_s, mark, "bus", base) >= 0.04
        least = (PACKETS - 1) * FRAME_BYTES * 8 / RATE
        # Beside the slow link, the fast one does not wait.
        slow, fast = await asyncio.gather(
            asyncio.to_thread(burst_s, mark, "base", base), asyncio.to_thread(burst_s, mark, "field", field)
        )
        assert 0.95 * least <= slow and fast < slow
        with pytest.raises(OSError, match="unreachable"):
            ping_s(mark, "field", base)  # routes lead to direct neighbours only
        await until(False)
        with pytest.raises(OSError, match="unreachable"):
            ping_s(mark, "bus", base)
        await emulation.change_air(AirChanges(links=(Weakened("field", "bus"),)))
        with pytest.raises(OSError, match="unreachable"):
            ping_s(mark, "bus", field)
        return began_ns

    async def run() -> int:
        with Journal.create(mark.directory / "journal.jsonl") as journal:
            routes = TrueRoutes("hops", relays=False)
            emulation = Emulation(topology(), 1, 60.0, mark, journal, routes, seen.put_nowait, waits=True)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return await scenario(emulation)
            finally:
                with suppress(Exception):
                    await emulation.stop_radio()
                await emulation.down()
                assert network.leftovers(mark) == []

    began_ns = asyncio.run(run())
    lines = (mark.directory / "radio" / "links.jsonl").read_text().splitlines()
    changes = [
        change for change in map(json.loads, lines) if (change["src"], change["dst"]) == ("bus", "base")
    ]
    times = [((change["t_ns"] - began_ns) / 1e9, change["up"]) for change in changes]
    assert times == [(UP_S, True), (DOWN_S, False)]
