"""The AODV daemon on real kernels: packets wait in a TUN for their route; nothing is left afterwards."""

import asyncio
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv4Network
from typing import Any

import pytest

from node_agent.aodv.reader import INFO_PORT, parse
from node_agent.aodv.traffic import MOST_PAIRS, Pair, TrafficWatch
from node_agent.linkstate.ask import body
from orchestrator.backends.netns import network
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.runs.journal import Journal
from orchestrator.services.program import Entry
from orchestrator.spec.topology import Topology
from tests.kernel.inside import answered, icmp_socket, inside, path_of, send_ping, udp_socket

LINE = [("a", "b"), ("b", "c"), ("c", "d")]
TWO_WAYS = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")]
NODES = ("a", "b", "c", "d")
SIOCGIFHWADDR = 0x8927
QUICK = {"detection": "hello", "net_diameter": 7, "rreq_retries": 0}


class Air:
    """Carries frames between the nodes' TAPs, along ``links``."""

    def __init__(self, ends: dict[str, int], links: list[tuple[str, str]]) -> None:
        self.links = set(links)
        self._ends = ends
        for node, end in ends.items():
            asyncio.get_running_loop().add_reader(end, self._carry, node)

    def silence(self, node: str) -> None:
        self.links = {link for link in self.links if node not in link}

    def close(self) -> None:
        for end in self._ends.values():
            asyncio.get_running_loop().remove_reader(end)
            os.close(end)

    def _carry(self, node: str) -> None:
        with suppress(BlockingIOError):
            while True:
                frame = os.read(self._ends[node], 2048)
                for other in NODES:
                    if (node, other) in self.links or (other, node) in self.links:
                        with suppress(OSError):
                            os.write(self._ends[other], frame)


class Testbed:
    __test__ = False

    def __init__(
        self, mark: Mark, server: ForkServer, config: dict[str, Any], network: str | None = None
    ) -> None:
        self.mark = mark
        self._network = network
        first = IPv4Network(network or "10.0.0.0/16").network_address
        self.hosts = {node: first + number for number, node in enumerate(NODES, start=1)}
        self.daemons: dict[str, Child] = {}
        self._server = server
        self._config = config

    async def start(self, node: str) -> None:
        file = self.mark.directory / f"aodv-{node}.json"
        networks = [self._network] if self._network else []
        config = {"interface": "wlan0", "aodv": self._config, "manet": {"networks": networks}}
        file.write_text(json.dumps(config))
        entry = Entry("node_agent.aodv.process:run", {"config": str(file)})
        said = self.mark.directory / f"aodv-{node}.txt"
        launch = Launch(entry, path_of(self.mark, node), stdout=said, stderr=said)
        self.daemons[node] = await self._server.spawn(launch)
        await within(10, lambda: "aodv0" in self.routes(node))

    async def ask(self, node: str, path: str) -> bytes:
        def asked() -> bytes:
            with socket.create_connection(("127.0.0.1", INFO_PORT), 2) as connection:
                connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                answer = b""
                while more := connection.recv(65536):
                    answer += more
            return body(answer, path)

        return await asyncio.to_thread(inside, self.mark, node, asked)

    async def requests(self, node: str) -> int:
        count: int = json.loads(await self.ask(node, "/counters"))["counters"]["RREQ"]["sent"]
        return count

    def routes(self, node: str) -> str:
        return self._ip(node, "route", "show")

    def own_things(self, node: str) -> str:
        links = self._ip(node, "-brief", "link", "show").splitlines()
        own = [link.split()[0] for link in links if not link.startswith(("lo", "ctl0", "wlan0"))]
        return self._ip(node, "route", "show", "proto", "84") + "".join(own)

    def _ip(self, node: str, *words: str) -> str:
        name = self.mark.namespace(node)
        done = subprocess.run(
            ["ip", "-n", name, *words], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout

    async def ping(self, here: str, there: str, seconds: float = 5.0) -> bool:
        def pinged() -> bool:
            with icmp_socket(self.mark, here) as icmp:
                icmp.settimeout(seconds)
                send_ping(icmp, self.hosts[there])
                return answered(icmp, self.hosts[there])

        return await asyncio.to_thread(pinged)


async def within(seconds: float, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(happened):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def running(
    mark: Mark, links: list[tuple[str, str]], **config: object
) -> AsyncIterator[tuple[Testbed, Air]]:
    ends = await asyncio.to_thread(network.up, numbered(NODES), mark)
    air = Air(ends, links)
    try:
        async with await ForkServer.start(mark, ["node_agent.aodv.process"]) as server:
            made = Testbed(mark, server, config or {"detection": "hello"})
            for node in NODES:
                await made.start(node)
            yield made, air
    finally:
        air.close()


def test_over_the_emulated_radio(mark: Mark) -> None:
    """802.11b with contention, and nodes that are alone in their own networks (/32)."""
    topology = Topology.model_validate(
        {
            "name": "line",
            "nodes": list(NODES),
            "area": "1200 m x 100 m",
            "mobility": {"model": "static", "grid": {"columns": 4, "spacing": "300 m"}},
        }
    )

    async def scenario() -> None:
        with Journal.create(mark.directory / "journal.jsonl") as journal:
            emulation = Emulation(topology, 1, 60.0, mark, journal, true_routes=None)
            try:
                await emulation.up()
                async with await ForkServer.start(mark, ["node_agent.aodv.process"]) as server:
                    nodes = Testbed(mark, server, {"detection": "hello"}, "10.77.0.0/16")
                    for node in NODES:
                        await nodes.start(node)
                    replies = [await nodes.ping("a", "d") for _ in range(10)]
                    assert replies == [True] * 10
                    assert parse(await nodes.ask("a", "/routes")).edges["10.77.0.1"]["10.77.0.4"].hops == 3
            finally:
                await emulation.down()

    asyncio.run(scenario())


def test_the_first_packets_wait_for_their_route(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE) as (nodes, _):
            assert await nodes.ping("a", "d")
            sender, receiver = udp_socket(mark, "d"), udp_socket(mark, "a")
            with sender, receiver:
                here = str(nodes.hosts["a"]), receiver.getsockname()[1]
                for number in range(3):
                    sender.sendto(bytes([number]), here)
                heard = [await asyncio.to_thread(receiver.recvfrom, 10) for _ in range(3)]
            assert {data for data, _ in heard} == {b"\0", b"\1", b"\2"}
            assert {source[0] for _, source in heard} == {str(nodes.hosts["d"])}
            reading = parse(await nodes.ask("a", "/routes"))
            assert reading.edges["10.0.0.1"]["10.0.0.4"].hops == 3
            assert "10.0.0.4 via 10.0.0.2 dev wlan0 proto 84" in nodes.routes("a")

    asyncio.run(scenario())


def test_a_route_in_use_is_not_sought_again(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE) as (nodes, _):
            sender, receiver = udp_socket(mark, "a"), udp_socket(mark, "d")
            receiver.settimeout(1)
            with sender, receiver:
                there = str(nodes.hosts["d"]), receiver.getsockname()[1]
                for number in range(40):  # one way only, for longer than two lives of a route
                    sender.sendto(bytes([number]), there)
                    assert (await asyncio.to_thread(receiver.recv, 10)) == bytes([number])
                    await asyncio.sleep(0.2)
            asked = [await nodes.requests(node) for node in NODES]
            assert asked[0] <= 3 and asked[1:] == [0, 0, 0]
            # Unused, it ends.
            await within(15, lambda: "10.0.0.4" not in nodes.routes("a"))

    asyncio.run(scenario())


def test_a_silenced_relay_is_routed_around(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, TWO_WAYS) as (nodes, air):
            for _ in range(5):
                assert await nodes.ping("a", "d")
            relay = "b" if "10.0.0.4 via 10.0.0.2" in nodes.routes("a") else "c"
            air.silence(relay)
            cut = time.monotonic()
            while not await nodes.ping("a", "d", 0.5):
                assert time.monotonic() - cut < 10
            other = "10.0.0.3" if relay == "b" else "10.0.0.2"
            assert f"10.0.0.4 via {other}" in nodes.routes("a")

    asyncio.run(scenario())


def test_a_lost_destination_is_reported_to_the_source(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE, **QUICK) as (nodes, air):
            assert await nodes.ping("a", "d")
            air.silence("d")
            with udp_socket(mark, "a") as sender:
                deadline = time.monotonic() + 10
                while "10.0.0.4 via" in nodes.routes("a"):
                    assert time.monotonic() < deadline
                    with suppress(OSError):  # the search has ended already
                        sender.sendto(b"x", (str(nodes.hosts["d"]), 7))
                    await asyncio.sleep(0.1)
            counters = json.loads(await nodes.ask("a", "/counters"))["counters"]
            assert counters["RERR"]["received"] >= 1

    asyncio.run(scenario())


def test_who_connects_to_nowhere_is_told(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE, **QUICK) as (nodes, _):
            tcp = inside(mark, "a", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            with tcp:
                tcp.settimeout(15)
                with pytest.raises(OSError) as caught:
                    await asyncio.to_thread(tcp.connect, ("10.0.0.99", 7))
            assert caught.value.errno == errno.EHOSTUNREACH
            assert json.loads(await nodes.ask("a", "/counters"))["drops"]["no_route"] >= 1

    asyncio.run(scenario())


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_it_ends(mark: Mark, end: signal.Signals) -> None:
    async def scenario() -> None:
        async with running(mark, LINE) as (nodes, _):
            assert await nodes.ping("a", "d")
            before = nodes.own_things("b")
            assert "aodv0" in before and "10.0.0.1" in before
            await nodes.daemons["b"].signal(end)
            assert await nodes.daemons["b"].wait() == 0
            assert nodes.own_things("b") == ""
            assert (mark.directory / "aodv-b.txt").read_text() == ""

    asyncio.run(scenario())


def test_what_a_killed_daemon_left_is_gone_after_the_next_start(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE) as (nodes, air):
            assert await nodes.ping("a", "d")
            await nodes.daemons["b"].signal(signal.SIGKILL)
            await nodes.daemons["b"].wait()
            left = nodes.own_things("b")
            assert "10.0.0.1" in left and "aodv0" not in left
            air.silence("b")
            await nodes.start("b")
            assert "dev wlan0" not in nodes.own_things("b")

    asyncio.run(scenario())


def test_a_second_daemon_is_refused_and_harms_nothing(mark: Mark) -> None:
    async def scenario() -> None:
        async with running(mark, LINE) as (nodes, _):
            assert await nodes.ping("a", "d")
            before = nodes.own_things("b")
            first = nodes.daemons["b"]
            await nodes.start("b")
            assert await nodes.daemons["b"].wait() == 1
            assert "in use" in (mark.directory / "aodv-b.txt").read_text()
            assert nodes.own_things("b") == before
            await first.signal(signal.SIGTERM)
            assert await first.wait() == 0

    asyncio.run(scenario())


def test_a_flood_of_conversations_does_not_keep_the_watch_busy(mark: Mark) -> None:
    ends = network.up(numbered(["a"]), mark)
    (end,) = ends.values()
    own, seen = bytes((10, 0, 0, 1)), list[Pair]()

    def hears(first: int, count: int) -> None:
        with socket.socket() as any_socket:
            told = fcntl.ioctl(any_socket, SIOCGIFHWADDR, struct.pack("16s24x", b"wlan0"))
        ethernet = told[18:24] + b"\x02\0\0\0\0\x09" + b"\x08\0"
        for number in range(first, first + count):
            source = (0x0A01_0000 + number).to_bytes(4, "big")
            os.write(end, ethernet + b"\x45\0\0\x14\0\0\0\0\x40\x11\0\0" + source + own)

    def scenario() -> bool:
        watch = TrafficWatch("wlan0", seen.append)
        for first in range(0, 2 * MOST_PAIRS, 32):
            hears(first, 32)
            watch.read()
        hears(9999, 1)
        busy, _, _ = select.select([watch], [], [], 0)
        watch.next_period()
        hears(9999, 1)
        watch.read()
        watch.close()
        return bool(busy)

    try:
        assert not inside(mark, "a", scenario)
    finally:
        os.close(end)
    strangers = [pair.source for pair in seen if pair.source >> 16 == 0x0A01]
    assert MOST_PAIRS - 8 < len(strangers) <= MOST_PAIRS + 1, "others may speak on a fresh interface too"
    assert strangers[-1] == 0x0A01_0000 + 9999
