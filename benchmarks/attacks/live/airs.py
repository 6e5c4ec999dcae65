"""Runs routing daemons as processes in namespaces, over the emulated radio, with mallory among them."""

import asyncio
import resource
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.radio.tap import Network, inside, network_of
from orchestrator.backends.netns import names
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch
from orchestrator.backends.netns.layout import RADIO_LINK, RADIO_NETWORK, numbered
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import radio_config
from orchestrator.mobility.static import grid_paths
from orchestrator.model.trace import Trace
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac
from orchestrator.services.program import Entry

HONEST = ("n1", "n2", "n3")
MALLORY = "n4"
SPACING_M = 100.0
EVERYBODY = "255.255.255.255"

Route = tuple[str, str, str]
"""Destination, mask and gateway, as the kernel prints them."""


class Air:
    """A network of daemons. Its asyncio loop runs only inside ``wait``."""

    def __init__(
        self, runner: asyncio.Runner, radio: RadioProcess, net: Network, daemons: dict[str, Child]
    ) -> None:
        self._runner, self._radio, self._net = runner, radio, net
        self.daemons = daemons
        self.address = {node: net.address(node) for node in (*HONEST, MALLORY)}
        self.query_ports: tuple[int, ...] = ()
        """Where the daemons answer questions of their own node."""

    def wait(self, seconds: float) -> None:
        self._radio.check()
        self._runner.run(asyncio.sleep(seconds))

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return True
            self.wait(0.2)
        return holds()

    def log(self, node: str) -> Path:
        return self._net.mark.directory / f"{node}.stderr"

    def ended(self) -> list[str]:
        return [
            node
            for node, daemon in self.daemons.items()
            if not Path(f"/proc/{daemon.pid}/net/route").exists()
        ]

    def routes(self, node: str) -> set[Route]:
        lines = Path(f"/proc/{self.daemons[node].pid}/net/route").read_text().splitlines()[1:]
        return {(words[1], words[7], words[2]) for words in map(str.split, lines)}

    def outside_routes(self, node: str) -> set[Route]:
        """Returns routes that do not lead into the ad-hoc network."""
        return {route for route in self.routes(node) if not _within(route, RADIO_NETWORK)}

    def routes_to_others(self, node: str) -> set[Route]:
        """Returns routes to, or over, hosts of the network that are not honest nodes."""
        honest = {self.address[each] for each in HONEST}
        return {
            route
            for route in self.routes(node)
            if route[1] == "FFFFFFFF"
            and _within(route, RADIO_NETWORK)
            and (_dotted(route[0]) not in honest or _dotted(route[2]) not in {"0.0.0.0", *honest})
        }

    def complete(self) -> bool:
        """Says whether every honest node has a route to every other, over allowed nodes only."""
        return all(
            any(
                _dotted(to) == self.address[other] and mask == "FFFFFFFF" for to, mask, _ in self.routes(node)
            )
            for node in HONEST
            for other in HONEST
            if other != node
        )

    def resident_mb(self) -> float:
        pages = [int(Path(f"/proc/{d.pid}/statm").read_text().split()[1]) for d in self.daemons.values()]
        return max(pages) * resource.getpagesize() / 1e6

    def descriptors(self) -> int:
        return max(len(list(Path(f"/proc/{daemon.pid}/fd").iterdir())) for daemon in self.daemons.values())

    def radio_socket(self, port: int) -> socket.socket:
        """Opens mallory's socket on the radio."""

        def bound() -> socket.socket:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, RADIO_LINK.encode())
            udp.bind(("", port))
            udp.setblocking(False)
            return udp

        return inside(self._net.mark, MALLORY, bound)

    def raw_socket(self) -> socket.socket:
        """Opens a raw socket of mallory, which writes its own IP headers."""

        def opened() -> socket.socket:
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, RADIO_LINK.encode())
            return raw

        return inside(self._net.mark, MALLORY, opened)

    def local(self, node: str, port: int) -> socket.socket:
        """Connects to a query server of that node, from the node itself."""
        return inside(self._net.mark, node, lambda: socket.create_connection(("127.0.0.1", port), 2.0))


@contextmanager
def daemons(module: str, config: Mapping[str, Any], seed: int = 1) -> Iterator[Air]:
    """Starts the daemons. ``module``: the daemon's, with ``run(config=FILE)`` in it."""
    nodes = [*HONEST, MALLORY]
    trace = Trace(grid_paths(nodes, SPACING_M))
    layout = numbered(nodes)
    with network_of(layout) as net, asyncio.Runner() as runner:
        radio = RadioProcess()

        async def start() -> tuple[ForkServer, dict[str, Child]]:
            await radio.start(radio_config(net.mark, layout, trace, RadioChoice(), Mac(), seed), net.ends)
            server = await ForkServer.start(net.mark, preload=(module,))
            file = net.mark.directory / "daemon.json"
            file.write_bytes(msgspec.json.encode(config))
            program = Entry(f"{module}:run", {"config": str(file)})
            running = {}
            for node in HONEST:
                stderr = net.mark.directory / f"{node}.stderr"
                launch = Launch(program, names.HOST_NAMES / net.mark.namespace(node), stderr=stderr)
                running[node] = await server.spawn(launch)
            return server, running

        try:
            server, running = runner.run(start())
            try:
                yield Air(runner, radio, net, running)
            finally:
                runner.run(server.close())
        finally:
            runner.run(radio.close())


def spoofed(source: str, port: int, data: bytes, to: str = EVERYBODY) -> bytes:
    """Builds an IPv4 packet with a UDP datagram, from any given source; without a UDP checksum."""
    udp = struct.pack("!HHHH", port, port, 8 + len(data), 0)
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    return (
        struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(data), 0, 0, 1, socket.IPPROTO_UDP, 0)
        + addresses
        + udp
        + data
    )


def _within(route: Route, network: IPv4Network) -> bool:
    to, mask = (int.from_bytes(bytes.fromhex(text)[::-1], "big") for text in route[:2])
    return mask >= int(network.netmask) and to & int(network.netmask) == int(network.network_address)


def _dotted(little_endian_hex: str) -> str:
    return socket.inet_ntoa(struct.pack("<I", int(little_endian_hex, 16)))
