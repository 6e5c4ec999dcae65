"""Runs AODV on a real machine: UDP port 654 on one interface, routes in the kernel, packets held in a TUN.

The kernel reports neither use of a route nor a broken link. So a route counts as used when its packets are
seen on the interface, and a link as broken when the neighbour falls silent.
"""

import asyncio
import random
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from node_agent.aodv.actions import Action, Drop, Forward, Send
from node_agent.aodv.capture import Captured, CaptureDevice, Reinjector
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.core import Aodv, sequence_at
from node_agent.aodv.counters import Counters
from node_agent.aodv.driver import Driver
from node_agent.aodv.sealed import OVERHEAD, open_message, seal_message
from node_agent.aodv.traffic import Pair, TrafficWatch
from node_agent.aodv.wire import PORT, dotted, number
from node_agent.host.interfaces import InterfaceFacts
from node_agent.host.route_table import HostRoute, RouteTable
from node_agent.manet.membership import Manet
from node_agent.manet.seal import Seal, Unsealed

PROTOCOL = 84
"""Marks the daemon's routes: `ip route` shows ``proto 84``."""
BROADCAST = "255.255.255.255"
_IP_RECVTTL = 12  # Linux
_LONGEST = 2048
_ANCILLARY = socket.CMSG_SPACE(4)


class AodvDaemon:
    """Owns its sockets and its device from ``start`` to ``stop``, which also closes ``table``.

    ``manet`` has one network; packets for it are held. With a ``seal`` every sent message is sealed, and
    messages without a seal are refused before they are parsed.
    """

    def __init__(
        self,
        config: AodvConfig,
        interface: InterfaceFacts,
        table: RouteTable,
        rng: random.Random,
        manet: Manet,
        device: str = "aodv0",
        seal: Seal | None = None,
    ) -> None:
        self._interface = interface
        self._table = table
        self._manet = manet
        self._seal = seal
        self._device = device
        sequence = sequence_at(time.time_ns())
        self.core = Aodv[Captured](
            config, number(interface.address), rng, time.monotonic_ns(), sequence, manet
        )
        self._driver = Driver(self.core, time.monotonic_ns, self._perform)
        self._held = ExitStack()
        self._installed_changes = 0
        self._period_s = config.active_route_timeout / 3

    @property
    def counters(self) -> Counters:
        return self.core.counters

    @property
    def address(self) -> str:
        return self._interface.address

    def hops(self) -> dict[str, int]:
        return {
            dotted(route.destination): route.hops for route in self.core.valid_routes(time.monotonic_ns())
        }

    async def start(self) -> None:
        """Starts the daemon. Raises OSError or CannotCapture, after it has released everything."""
        loop = asyncio.get_running_loop()
        with ExitStack() as held:
            self._control = held.enter_context(_control_socket(self._interface.name))
            held.callback(self._table.close)
            self._out = Reinjector(self._interface.name)
            held.callback(self._out.close)
            self._watch = TrafficWatch(self._interface.name, self._on_traffic)
            held.callback(self._watch.close)
            facts = self._interface
            (network,) = self._manet.networks
            self._capture = CaptureDevice(self._device, network, facts.address, facts.mtu, PROTOCOL)
            held.callback(self._capture.close)
            for source, read in (
                (self._control.fileno(), self._on_control),
                (self._watch.fileno(), self._watch.read),
                (self._capture.fileno(), self._on_captured),
            ):
                loop.add_reader(source, read)
                held.callback(loop.remove_reader, source)
            periods = loop.create_task(self._count_periods(), name="aodv traffic periods")
            held.callback(periods.cancel)
            self._held = held.pop_all()
        self._driver.start()

    async def stop(self) -> None:
        """Stops the daemon. May be repeated."""
        self._driver.stop()
        self._held.close()

    def seek(self, address: str) -> None:
        """Searches for a route to ``address`` although no packet needs it, or confirms one that ends soon."""
        if address != self.address:
            self._driver.carry_out(self.core.seek(number(address), time.monotonic_ns(), renew=True))

    def _perform(self, actions: Sequence[Action[Captured]]) -> None:
        # Routes first: held packets are sent by them.
        if self.core.table.changes != self._installed_changes:
            self._installed_changes = self.core.table.changes
            self._table.replace(self._routes())
        for action in actions:
            match action:
                case Send(data, to, ttl):
                    self._send(data, BROADCAST if to is None else dotted(to), ttl)
                case Forward(packet, _):
                    self._out.send(packet)
                case Drop(packet, _):
                    self._out.report_unreachable(packet)

    def _routes(self) -> dict[str, HostRoute]:
        return {
            dotted(route.destination): HostRoute(
                None if route.next_hop == route.destination else dotted(route.next_hop),
                self._interface.name,
                route.hops,
            )
            for route in self.core.valid_routes(time.monotonic_ns())
        }

    def _send(self, data: bytes, to: str, ttl: int) -> None:
        if self._seal is not None:
            data = seal_message(self._seal, data, self.core.address)
            self.counters.seal(OVERHEAD)
        hops = (socket.IPPROTO_IP, socket.IP_TTL, struct.pack("=i", ttl))
        with suppress(OSError):  # interface down or queue full: the message is lost, as on the air
            self._control.sendmsg([data], [hops], 0, (to, PORT))

    def _on_control(self) -> None:
        while True:
            try:
                data, ancillary, _, (sender, _) = self._control.recvmsg(_LONGEST, _ANCILLARY)
            except OSError:  # nothing more waits, or the interface is down
                return
            address = number(sender)
            if self._seal is not None and address != self.core.address:
                try:
                    data = open_message(self._seal, data, address)
                except Unsealed as error:
                    self.core.refuse(address, error.reason)
                    continue
            ttl = next(
                (struct.unpack("=i", value)[0] for _, kind, value in ancillary if kind == socket.IP_TTL), 1
            )
            self._driver.carry_out(self.core.receive(data, address, ttl, time.monotonic_ns()))

    def _on_captured(self) -> None:
        for packet in self._capture.read():
            now_ns = time.monotonic_ns()
            own = packet.source == self.core.address
            if own:
                self._driver.carry_out(self.core.originate(packet, packet.destination, now_ns))
            elif self.core.next_hop(packet.destination, packet.source, None, now_ns) is not None:
                self._out.send(packet)  # its route was found meanwhile
            else:
                self._driver.carry_out(self.core.unroutable(packet.destination, packet.source, now_ns))

    def _on_traffic(self, pair: Pair) -> None:
        now_ns = time.monotonic_ns()
        if pair.destination == self.core.address:
            self.core.keep_alive(pair.source, now_ns)
        else:
            self.core.next_hop(pair.destination, pair.source, None, now_ns)

    async def _count_periods(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            self._watch.next_period()


def _control_socket(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        # Send directly to neighbours, whatever routes there are.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)
        opened.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
        opened.bind(("", PORT))
    except BaseException:
        opened.close()
        raise
    return opened
