"""Installs a protocol's host routes in the kernel's main table, with a protocol number of their own.

It changes and removes only routes with that number on the protocol's own interfaces. pyroute2 encodes and
decodes the messages; they travel over a plain netlink socket, many in one system call, because pyroute2's own
sockets run an event loop and cannot be used inside another.
"""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyroute2.netlink.rtnl.marshal import MarshalRtnl
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from node_agent.host.route_table import HostRoute, difference

OLSR_PROTOCOL = 83
"""`ip route` shows ``proto 83``. The testbed's own ground-truth routes have 82."""

_METRIC = 2  # the same for all routes, like olsrd's: a route that only gets longer stays untouched
_MAIN_TABLE, _UNICAST = 254, 1
_UNIVERSE, _LINK, _NOWHERE = 0, 253, 255
_ONLINK = 4
_NEW_LINK, _DELETED_LINK, _NEW_ADDRESS, _DELETED_ADDRESS = 16, 17, 20, 21
_NEW_ROUTE, _DELETE_ROUTE, _GET_ROUTE = 24, 25, 26
_REQUEST, _ACK, _EXCLUSIVE, _DUMP, _CREATE, _APPEND = 0x1, 0x4, 0x200, 0x300, 0x400, 0x800
_ERROR, _DONE = 2, 3
_UP = 1
_LINK_EVENTS, _IPV4_ADDRESS_EVENTS = 1 << 0, 1 << 4
_HEADER = struct.Struct("=IHHII")
_LINK_MESSAGE = struct.Struct("=BxHiII")
_ADDRESS_MESSAGE = struct.Struct("=BBBBI")
_REPLY_SIZE = 1 << 16
_TOGETHER = 100
_ANYWHERE = "0.0.0.0"
_NO_LINK = (errno.ENETDOWN, errno.ENETUNREACH, errno.ENODEV)
_ANSWER_WITHIN_S = 2.0


class RoutesRefused(Exception):
    """The kernel does not let this process change routes."""


class _Path(NamedTuple):
    gateway: str | None
    link: int


class _Order(NamedTuple):
    kind: int
    flags: int
    destination: str
    path: _Path


class KernelRoutes:
    """Works in the network namespace in which it is created.

    ``report`` is called once for each thing that the kernel refused; a vanished interface does not end the
    daemon. The owner's event loop calls ``restore`` when ``fileno()`` is readable: the kernel drops routes
    together with an interface, and they come back with it.
    """

    def __init__(
        self, interfaces: Sequence[str], report: Callable[[str], None], protocol: int = OLSR_PROTOCOL
    ) -> None:
        self._interfaces = tuple(interfaces)
        self._report = report
        self._protocol = protocol
        self._wanted: Mapping[str, HostRoute] = {}
        self._installed: dict[str, _Path] = {}
        self._reported: tuple[str, ...] = ()
        self._links_up: dict[int, bool] = {}
        self._sequence = 0
        self._claimed = False
        self._closed = False
        self._kernel = _netlink_socket()
        self._kernel.settimeout(_ANSWER_WITHIN_S)
        self._events = _netlink_socket(_LINK_EVENTS | _IPV4_ADDRESS_EVENTS)
        self._events.setblocking(False)
        try:
            self._require_root()
        except BaseException:
            self._kernel.close()
            self._events.close()
            raise

    def fileno(self) -> int:
        return self._events.fileno()

    def claim(self) -> None:
        """Removes what a crashed daemon left. Call it when it is certain that no other daemon runs here."""
        self._claimed = True
        self._remove(self._found())

    def replace(self, routes: Mapping[str, HostRoute]) -> None:
        self._wanted = dict(routes)
        self._install()

    def restore(self) -> None:
        """Reads interface events, and installs routes again that the kernel dropped."""
        if self._concerned():
            self._installed = dict(self._found())
            self._install()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._claimed:
                self._remove(self._found())
        finally:
            self._kernel.close()
            self._events.close()

    def _install(self) -> None:
        links = {name: index for name in self._interfaces if (index := _index_of(name)) is not None}
        names = {index: name for name, index in links.items()}
        wanted = {
            destination: _Path(route.gateway, links[route.interface])
            for destination, route in self._wanted.items()
            if route.interface in links
        }
        missing = {route.interface for route in self._wanted.values()} - links.keys()
        problems = [f"{name} is gone: no routes over it until it is back" for name in sorted(missing)]
        installed = self._installed
        gone, new, changed = difference(installed, wanted)
        orders = [_Order(_DELETE_ROUTE, 0, destination, installed[destination]) for destination in gone]
        # Exclusive: if a foreign route has the same key, it stays and ours is not made.
        orders += [_Order(_NEW_ROUTE, _CREATE | _EXCLUSIVE, each, wanted[each]) for each in new]
        for each in changed:
            # Append the new route, then delete the old one: there is always one, and no foreign route is
            # replaced.
            orders.append(_Order(_NEW_ROUTE, _CREATE | _APPEND, each, wanted[each]))
            orders.append(_Order(_DELETE_ROUTE, 0, each, installed[each]))
        refused = dict(self._carry_out(orders))
        for order, number in refused.items():
            if order.kind == _DELETE_ROUTE:
                problems += [] if number == errno.ESRCH else [f"{order.destination}: {os.strerror(number)}"]
            elif number == errno.EEXIST and order.flags & _EXCLUSIVE:
                problems.append(f"{order.destination}: a foreign route is there and stays")
            elif number in _NO_LINK:
                problems.append(f"{names[order.path.link]}: {os.strerror(number)}: no routes over it for now")
            elif number != errno.EEXIST:
                problems.append(f"no route to {order.destination}: {os.strerror(number)}")
        failed = {
            order.destination for order in refused if order.kind == _NEW_ROUTE and _is_missing(order, refused)
        }
        self._installed = {each: path for each, path in wanted.items() if each not in failed}
        self._report_problems(problems)

    def _report_problems(self, problems: Sequence[str]) -> None:
        for problem in dict.fromkeys(problems):
            if problem not in self._reported:
                self._report(problem)
        self._reported = tuple(problems)

    def _found(self) -> Iterator[tuple[str, _Path]]:
        """Returns our routes in the kernel, made by this process or an earlier one."""
        links = {index for name in self._interfaces if (index := _index_of(name)) is not None}
        for route in self._dump():
            if (
                route["proto"] == self._protocol
                and route["table"] == _MAIN_TABLE
                and (link := route.get_attr("RTA_OIF")) in links
            ):
                address = route.get_attr("RTA_DST") or _ANYWHERE  # none for a default route
                destination = address if route["dst_len"] == 32 else f"{address}/{route['dst_len']}"
                yield destination, _Path(route.get_attr("RTA_GATEWAY"), link)

    def _remove(self, routes: Iterator[tuple[str, _Path]]) -> None:
        orders = [_Order(_DELETE_ROUTE, 0, destination, path) for destination, path in routes]
        for order, number in self._carry_out(orders):
            if number != errno.ESRCH:
                self._report(f"{order.destination} could not be removed: {os.strerror(number)}")
        self._installed = {}

    def _require_root(self) -> None:
        nowhere = _Order(_DELETE_ROUTE, 0, _ANYWHERE, _Path(None, 0))
        if (nowhere, errno.EPERM) in self._carry_out([nowhere]):
            raise RoutesRefused("changing the kernel's routes needs root (CAP_NET_ADMIN)")

    def _concerned(self) -> bool:
        """Has one of our interfaces appeared, gone, changed state or got another address?"""
        concerned = False
        ours = {index for name in self._interfaces if (index := _index_of(name)) is not None}
        with suppress(BlockingIOError):
            while True:
                try:
                    data = self._events.recv(_REPLY_SIZE)
                except OSError as error:
                    if error.errno != errno.ENOBUFS:
                        raise
                    concerned = True  # events were lost, maybe some of ours
                    continue
                _, kind, *_ = _HEADER.unpack_from(data)
                if kind in (_NEW_ADDRESS, _DELETED_ADDRESS):
                    concerned |= _ADDRESS_MESSAGE.unpack_from(data, _HEADER.size)[4] in ours
                elif kind in (_NEW_LINK, _DELETED_LINK):
                    _, _, link, flags, _ = _LINK_MESSAGE.unpack_from(data, _HEADER.size)
                    up = kind == _NEW_LINK and bool(flags & _UP)
                    # Wireless interfaces send this event often, mostly for other reasons.
                    if self._links_up.get(link) != up:
                        self._links_up[link] = up
                        concerned |= link in ours or kind == _DELETED_LINK
        return concerned

    def _carry_out(self, orders: Sequence[_Order]) -> list[tuple[_Order, int]]:
        """Returns the orders that the kernel refused, and why."""
        refused: list[tuple[_Order, int]] = []
        for start in range(0, len(orders), _TOGETHER):
            refused += self._carry_out_together(orders[start : start + _TOGETHER])
        return refused

    def _carry_out_together(self, orders: Sequence[_Order]) -> Iterator[tuple[_Order, int]]:
        """Asks for one acknowledgement, of the last order. The kernel
        reports errors of the others before it."""
        numbered = {self._next_number(): order for order in orders}
        last = self._sequence
        self._kernel.send(
            b"".join(
                self._encoded(order, number, _ACK if number == last else 0)
                for number, order in numbered.items()
            )
        )
        answered = 0
        while answered != last:
            data = self._kernel.recv(_REPLY_SIZE)
            _, kind, _, answered, _ = _HEADER.unpack_from(data)
            if kind == _ERROR and answered in numbered:
                (code,) = struct.unpack_from("=i", data, _HEADER.size)
                if code:
                    yield numbered[answered], -code

    def _next_number(self) -> int:
        """Never repeats a number: a late answer must not be taken for one to a later order."""
        self._sequence += 1
        return self._sequence

    def _encoded(self, order: _Order, number: int, flags: int) -> bytes:
        address, _, length = order.destination.partition("/")
        gateway, link = order.path
        message = rtmsg()
        message["header"]["type"] = order.kind
        message["header"]["flags"] = _REQUEST | order.flags | flags
        message["header"]["sequence_number"] = number
        message["family"] = socket.AF_INET
        message["dst_len"] = int(length or 32)
        message["table"] = _MAIN_TABLE
        message["proto"] = self._protocol
        message["type"] = _UNICAST
        attributes: list[tuple[str, str | int]] = [("RTA_DST", address)]
        if gateway is not None:
            attributes.append(("RTA_GATEWAY", gateway))
        if link:
            attributes.append(("RTA_OIF", link))
        if order.kind == _DELETE_ROUTE:
            message["scope"] = _NOWHERE  # any scope and metric: protocol and path identify the route
        else:
            attributes.append(("RTA_PRIORITY", _METRIC))
            message["scope"] = _LINK if gateway is None else _UNIVERSE
            message["flags"] = 0 if gateway is None else _ONLINK
        message["attrs"] = attributes
        message.encode()
        return bytes(message.data)

    def _dump(self) -> Iterator[rtmsg]:
        request = rtmsg()
        request["header"]["type"] = _GET_ROUTE
        request["header"]["flags"] = _REQUEST | _DUMP
        request["header"]["sequence_number"] = number = self._next_number()
        request["family"] = socket.AF_INET
        request.encode()
        self._kernel.send(bytes(request.data))
        reader = MarshalRtnl()
        while True:
            for message in reader.parse(self._kernel.recv(_REPLY_SIZE)):
                header = message["header"]
                if header["sequence_number"] == number and header["type"] == _DONE:
                    return
                if header["sequence_number"] == number and header["type"] == _NEW_ROUTE:
                    yield message


def _netlink_socket(groups: int = 0) -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    opened.bind((0, groups))
    return opened


def _index_of(name: str) -> int | None:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None


def _is_missing(order: _Order, refused: Mapping[_Order, int]) -> bool:
    """A route that exists already, equal in every detail, counts as made."""
    return refused[order] != errno.EEXIST or bool(order.flags & _EXCLUSIVE)
