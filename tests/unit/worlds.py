"""Small networks for tests: the same two ports on loopback sockets and on virtual hosts."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from node_agent.ports import Address, Port
from node_agent.ports.os_port import OsPort
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from node_agent.ports.virtual.segment import StreamConfig
from orchestrator.radio.disc import DiscRadio

Scenario = Callable[[Port, Port], Awaitable[None]]


class World(Protocol):
    def run(self, scenario: Scenario) -> None: ...

    def black_hole(self) -> Address:
        """An address that swallows every attempt to connect."""
        ...

    def close(self) -> None: ...


class OsWorld:
    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
        self._new_loop = new_loop
        self._sockets: list[socket.socket] = []

    def run(self, scenario: Scenario) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await scenario(OsPort("127.0.0.1"), OsPort("127.0.0.2"))
                await asyncio.sleep(0.01)  # what was closed last is only let go in the next turns of the loop

        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(bounded())

    def black_hole(self) -> Address:
        listener = socket.create_server(("127.0.0.3", 0), backlog=0)
        self._sockets.append(listener)
        host, port = listener.getsockname()
        for _ in range(3):  # fill the queue of connections that nobody accepts
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((host, port))
            self._sockets.append(filler)
        return Address(host, port)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


class VirtualWorld:
    """Nodes on a plane with a range of 100 m; routes follow the true links, as next hops along a chain."""

    def __init__(
        self,
        positions: Mapping[str, tuple[float, float]] | None = None,
        seed: int = 1,
        bandwidth_bps: int = 11_000_000,
        latency_ns: int = 100_000,
        streams: StreamConfig | None = None,
    ) -> None:
        self.loop = VirtualLoop()
        self.radio = DiscRadio(self.loop, 100.0, bandwidth_bps, latency_ns)
        self.routes: dict[tuple[str, str], str] = {}
        self.hosts: dict[str, VirtualHost] = {}
        self.ports: dict[str, VirtualPort] = {}
        positions = positions or {"a": (0, 0), "b": (50, 0)}
        for node in positions:
            host = VirtualHost(node, node, self.loop, self.radio, self._next_hop_from(node), streams)
            self.hosts[node] = host
            self.ports[node] = VirtualPort(host, seed)
        self.radio.move(positions)

    def _next_hop_from(self, node: str) -> Callable[[str], str | None]:
        def next_hop(destination: str) -> str | None:
            if (node, destination) in self.routes:
                return self.routes[node, destination]
            return destination if destination in self.radio.links()[node] else None

        return next_hop

    def chain(self, *nodes: str) -> None:
        """Route along the nodes in both directions."""
        for line in (nodes, nodes[::-1]):
            for index, node in enumerate(line):
                for destination in line[index + 2 :]:
                    self.routes[node, destination] = line[index + 1]

    def run(self, scenario: Scenario) -> None:
        first, second = list(self.ports.values())[:2]
        self.loop.run_until_complete(_awaited(scenario(first, second)))

    def black_hole(self) -> Address:
        self.routes["a", "nowhere"] = "b"
        return Address("nowhere", 7)

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()
        self.loop.run_until_ns(self.loop.now_ns() + 1)
        self.loop.close()


async def _awaited(scenario: Awaitable[None]) -> None:
    await scenario
