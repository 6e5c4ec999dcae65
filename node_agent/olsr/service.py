"""Runs an OLSR core: passes it packets and the time, sends its packets, puts its routes into a table.

The same service runs on the machine's sockets and in virtual time. It sleeps until the core is due or a
packet comes; it does not poll.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial

from node_agent.host.route_table import HostRoute, RouteTable
from node_agent.manet.membership import ANYBODY, Manet
from node_agent.manet.seal import Seal, Unsealed
from node_agent.model.link_layer import LinkLayer
from node_agent.olsr import sealed
from node_agent.olsr.broadcast import Broadcast, BroadcastSocket
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.outbox import MOST_MTU
from node_agent.olsr.paths import Forwarding
from node_agent.olsr.routing import Routes
from node_agent.olsr.wire import dotted, number

SETTLING_S = 0.05
"""Packets come in bursts: routes are computed once for all that arrive within this time."""
SPACING_S = 1.0
"""Routes are computed no more often than this while only costs change,
like olsrd: nearly every packet changes some."""
GOODBYES, GOODBYE_SPACING_S = 3, 0.1
"""A broadcast may get lost, so a goodbye is repeated."""

_NS = 1_000_000_000
_SETTLING_NS, _SPACING_NS = int(SETTLING_S * _NS), int(SPACING_S * _NS)
_QUICK_SPACING_NS = _SPACING_NS // 4  # where the radio is asked as often
_EARLY_S = 0.001  # some event loops count whole milliseconds and wake up too early


class OlsrService:
    def __init__(
        self,
        config: OlsrConfig,
        interfaces: Sequence[Interface],
        broadcast: Broadcast,
        routes: RouteTable,
        now_ns: Callable[[], int],
        rng: random.Random,
        manet: Manet = ANYBODY,
        seal: Seal | None = None,
        link_layer: LinkLayer | None = None,
    ) -> None:
        """With a ``seal`` every sent packet is sealed, and packets without a
        seal are refused before they are parsed."""
        self._seal = seal
        room = sealed.OVERHEAD if seal is not None else 0
        self._interfaces = tuple(each._replace(mtu=min(each.mtu, MOST_MTU) - room) for each in interfaces)
        self.daemon = Olsr(config, self._interfaces, rng, now_ns(), manet, link_layer)
        self._broadcast = broadcast
        self._table = routes
        self._now_ns = now_ns
        self._sockets: list[BroadcastSocket] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ns = 0
        self._update_timer: asyncio.TimerHandle | None = None
        self._update_ns = 0
        self._updated_ns = -_NS
        self._spacing_ns = _QUICK_SPACING_NS if config.quality == "fast" else _SPACING_NS
        self._urgent_changes = self.daemon.urgent_changes
        self._applied: Routes | None = None
        self._running = False

    async def start(self) -> None:
        """Starts the service. Raises what the sockets raise; then nothing was started."""
        try:
            for index, interface in enumerate(self._interfaces):
                received = partial(self._received, index)
                self._sockets.append(await self._broadcast.open(interface.name, received))
        except BaseException:
            self._close_sockets()
            raise
        self._running = True
        self._set_alarm()

    async def say_goodbye(self) -> None:
        """Ends its part in the network, so that other nodes drop their routes over it at once.

        Its own routes stay until it is stopped, for what is still under way.
        """
        if not self._running:
            return
        self._halt()
        for time in range(GOODBYES):
            if time:
                await asyncio.sleep(GOODBYE_SPACING_S)
            if not self._sockets:
                return  # stopped meanwhile
            for interface, data in self.daemon.farewell(self._now_ns()):
                self._send(interface, data)

    async def stop(self) -> None:
        """Stops sending and removes the routes, without a word to others. May be repeated."""
        self._halt()
        self._close_sockets()
        self._table.close()

    def _halt(self) -> None:
        self._running = False
        for timer in (self._alarm, self._update_timer):
            if timer is not None:
                timer.cancel()
        self._alarm = self._update_timer = None

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def _received(self, interface: int, data: bytes, sender: str) -> None:
        if self._running:
            now, address = self._now_ns(), _number(sender)
            if self._seal is not None:
                try:
                    data = sealed.open_packet(self._seal, data, address)
                except Unsealed as error:
                    self.daemon.refuse(address, error.reason)
                    return
            self.daemon.receive(data, interface, address, now)
            self._set_alarm()
            if self._update_timer is None or self.daemon.urgent_changes != self._urgent_changes:
                self._update_later(now)

    def _send(self, interface: int, data: bytes) -> None:
        if self._seal is not None:
            data = sealed.seal_packet(self._seal, data, self._interfaces[interface].address)
            self.daemon.counters.seal()
        self._sockets[interface].send(data)

    def _wake(self) -> None:
        self._alarm = None
        now = self._now_ns()
        if now >= self.daemon.next_wake_ns():
            for interface, data in self.daemon.wake(now):
                self._send(interface, data)
            self._update_later(now)
            self._set_alarm()
        else:
            self._set_alarm(_EARLY_S)

    def _set_alarm(self, at_least_s: float = 0.0) -> None:
        """Sets the timer. One that has become too early is left alone: setting it again each time would cost
        more.
        """
        due = self.daemon.next_wake_ns()
        if self._alarm is not None:
            if self._alarm_ns <= due:
                return
            self._alarm.cancel()
        delay = max((due - self._now_ns()) / _NS, at_least_s)
        self._alarm = asyncio.get_running_loop().call_later(delay, self._wake)
        self._alarm_ns = due

    def _update_later(self, now: int) -> None:
        calm = self.daemon.urgent_changes == self._urgent_changes
        if self._update_timer is not None:
            if calm or self._update_ns <= now + _SETTLING_NS:
                return
            self._update_timer.cancel()
        due = now + _SETTLING_NS
        if calm:
            due = max(due, self._updated_ns + self._spacing_ns)
        self._update_timer = asyncio.get_running_loop().call_later((due - now) / _NS, self._update_routes)
        self._update_ns = due

    def _update_routes(self) -> None:
        self._update_timer = None
        self._updated_ns = now = self._now_ns()
        self._urgent_changes = self.daemon.urgent_changes
        routes = self.daemon.current_routes(now)
        if routes is not self._applied:
            self._applied = routes
            self._table.replace(Table(routes, [interface.name for interface in self._interfaces]))


class Table(Mapping[str, HostRoute]):
    """Routes in the form of a routing table, computed when they are read."""

    def __init__(self, routes: Routes, interfaces: Sequence[str]) -> None:
        self._routes = routes
        self._interfaces = interfaces

    def __getitem__(self, destination: str) -> HostRoute:
        try:
            address = _number(destination)
        except ValueError:  # a network
            return self._by_destination[destination]
        forwarding = self._routes.host_forwarding(address)
        if forwarding is None:
            raise KeyError(destination)
        return _host_route(forwarding, forwarding.gateway == address, self._interfaces[forwarding.interface])

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_destination)

    def __len__(self) -> int:
        return len(self._by_destination)

    @cached_property
    def _by_destination(self) -> Mapping[str, HostRoute]:
        names = self._interfaces
        table = {
            _dotted(address): _host_route(
                forwarding, forwarding.gateway == address, names[forwarding.interface]
            )
            for address, forwarding in self._routes.host_forwardings.items()
        }
        for (network, netmask), forwarding in self._routes.net_forwardings.items():
            route = _host_route(forwarding, False, names[forwarding.interface])
            table[f"{_dotted(network)}/{netmask.bit_count()}"] = route
        return table


# Cached: a network has few addresses, and each is converted many times a second.
@lru_cache(maxsize=4096)
def _host_route(forwarding: Forwarding, direct: bool, interface: str) -> HostRoute:
    return HostRoute(None if direct else _dotted(forwarding.gateway), interface, forwarding.hops)


_dotted = lru_cache(maxsize=4096)(dotted)
_number = lru_cache(maxsize=4096)(number)
