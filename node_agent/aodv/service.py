"""Runs AODV on a virtual host: it decides about every packet there, and holds those without a route."""

import random
from collections.abc import Mapping, Sequence

from node_agent.aodv.actions import Action, Drop, Forward, Send
from node_agent.aodv.config import AodvConfig
from node_agent.aodv.core import Aodv, sequence_at
from node_agent.aodv.counters import Counters
from node_agent.aodv.driver import Driver
from node_agent.aodv.sealed import OVERHEAD, open_message, seal_message
from node_agent.aodv.wire import PORT, RREP, number
from node_agent.manet.membership import Manet
from node_agent.manet.seal import Seal, Unsealed
from node_agent.ports.virtual.host import BROADCAST_HOST, IP_HEADER, Datagram, Packet, VirtualHost


class AodvService:
    """Implements the host's ``Forwarder``. ``node_at`` maps addresses
    to nodes; it ignores all other addresses."""

    def __init__(
        self,
        host: VirtualHost,
        config: AodvConfig,
        node_at: Mapping[str, str],
        rng: random.Random,
        manet: Manet | None = None,
        seal: Seal | None = None,
    ) -> None:
        self._host = host
        self._seal = seal
        self._number = {address: number(address) for address in node_at}
        self._address = {self._number[address]: address for address in node_at}
        self._number_of_node = {node: self._number[address] for address, node in node_at.items()}
        self._node = {each: node for node, each in self._number_of_node.items()}
        now_ns = host.clock.now_ns()
        self.core = Aodv[Packet](config, number(host.address), rng, now_ns, sequence_at(now_ns), manet)
        self._driver = Driver(self.core, host.clock.now_ns, self._perform)

    @property
    def counters(self) -> Counters:
        return self.core.counters

    @property
    def address(self) -> str:
        return self._host.address

    def hops(self) -> dict[str, int]:
        """Returns the hop count of every destination with a valid route."""
        now_ns = self._host.clock.now_ns()
        return {self._address[route.destination]: route.hops for route in self.core.valid_routes(now_ns)}

    async def start(self) -> None:
        self._host.bind_socket(PORT, self._on_datagram)
        self._host.use_forwarder(self)
        self._driver.start()

    async def stop(self) -> None:
        """Makes the host use its own next hops again. May be repeated."""
        self._driver.stop()
        self._host.use_forwarder(None)
        self._host.release_socket(PORT)

    def seek(self, address: str) -> None:
        """Searches for a route to ``address`` although no packet needs it, or confirms one that ends soon."""
        if (destination := self._number.get(address)) is not None and address != self._host.address:
            now_ns = self._host.clock.now_ns()
            self._driver.carry_out(self.core.seek(destination, now_ns, renew=True))

    def forward(self, packet: Packet, came_from: str | None) -> bool:
        destination, source = self._number.get(packet.destination), self._number.get(packet.source)
        if destination is None or source is None:
            return False
        now_ns = self._host.clock.now_ns()
        previous = None if came_from is None else self._number_of_node.get(came_from)
        next_hop = self.core.next_hop(destination, source, previous, now_ns)
        if next_hop is not None:
            self._host.pass_on(packet, self._node[next_hop])
            return True
        if came_from is None:
            self._driver.carry_out(self.core.originate(packet, destination, now_ns))
            return True
        self._driver.carry_out(self.core.unroutable(destination, source, now_ns))
        return False

    def arrived(self, packet: Packet) -> None:
        if not _is_control(packet) and (source := self._number.get(packet.source)) is not None:
            self.core.keep_alive(source, self._host.clock.now_ns())

    def failed(self, packet: Packet, neighbour: str) -> None:
        broken = self._number_of_node.get(neighbour)
        if broken is None or self.core.config.detection != "feedback":
            return
        now_ns = self._host.clock.now_ns()
        self._driver.carry_out(self.core.link_failed(broken, now_ns, was_reply=_is_reply(packet)))
        # Our own packet can wait for another route; other nodes' packets are lost here, as in the RFC.
        if packet.source == self._host.address and not _is_control(packet):
            self._driver.carry_out(self.core.originate(packet, self._number[packet.destination], now_ns))

    def _on_datagram(self, datagram: Datagram, source: str) -> None:
        if (sender := self._number.get(source)) is not None:
            data = datagram.data
            if self._seal is not None:
                try:
                    data = open_message(self._seal, data, sender)
                except Unsealed as error:
                    self.core.refuse(sender, error.reason)
                    return
            now_ns = self._host.clock.now_ns()
            self._driver.carry_out(self.core.receive(data, sender, datagram.ttl, now_ns))

    def _sealed(self, data: bytes) -> bytes:
        if self._seal is None:
            return data
        self.counters.seal(OVERHEAD)
        return seal_message(self._seal, data, self.core.address)

    def _perform(self, actions: Sequence[Action[Packet]]) -> None:
        for action in actions:
            match action:
                case Send(data, None, ttl):
                    self._host.send(BROADCAST_HOST, Datagram(PORT, PORT, self._sealed(data), ttl))
                case Send(data, int(to), ttl):
                    body = Datagram(PORT, PORT, self._sealed(data), ttl)
                    packet = Packet(self._host.address, self._address[to], ttl, IP_HEADER + body.size, body)
                    self._host.pass_on(packet, self._node[to])
                case Forward(packet, next_hop):
                    self._host.pass_on(packet, self._node[next_hop])
                case Drop():
                    self._host.counters.no_route += 1


def _is_control(packet: Packet) -> bool:
    return isinstance(packet.body, Datagram) and packet.body.destination_port == PORT


def _is_reply(packet: Packet) -> bool:
    return _is_control(packet) and isinstance(packet.body, Datagram) and packet.body.data[:1] == bytes([RREP])
