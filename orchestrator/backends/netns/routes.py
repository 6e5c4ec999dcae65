"""Installs host routes on all nodes by the true links, as a perfect routing daemon would."""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

from orchestrator.backends.netns import names, netlink, syscalls
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.layout import RADIO_LINK
from orchestrator.backends.netns.netlink import Netlink, Order
from orchestrator.radio.truth import Links, next_hops_towards

Table = Mapping[str, str]
"""One node's table: the next neighbour towards each reachable destination."""


def tables(links: Links, nodes: Mapping[str, IPv4Address], relays: bool = True) -> dict[str, Table]:
    if not relays:
        return {node: {peer: peer for peer in links.get(node, {})} for node in nodes}
    found: dict[str, dict[str, str]] = {node: {} for node in nodes}
    for destination in nodes:
        for node, neighbour in next_hops_towards(destination, links).items():
            found[node][destination] = neighbour
    return dict(found)


def orders(old: Table, new: Table, nodes: Mapping[str, IPv4Address], link: int) -> Iterator[Order]:
    """Yields the orders that turn the old table into the new one."""
    for destination in old:
        if destination not in new:
            yield netlink.remove_host_route(nodes[destination])
    for destination, neighbour in new.items():
        if old.get(destination) != neighbour:
            via = None if neighbour == destination else nodes[neighbour]
            yield netlink.set_host_route(nodes[destination], via, link)


class Routes:
    """Holds a netlink socket in every node's namespace until it is closed."""

    def __init__(self, namespaces: Mapping[str, Path], nodes: Mapping[str, IPv4Address]) -> None:
        self._nodes = nodes
        self._held = ExitStack()
        self._kernels: dict[str, tuple[Netlink, int]] = {}
        self._installed: dict[str, Table] = {node: {} for node in nodes}
        try:
            syscalls.in_own_thread(lambda: self._open(namespaces))
        except BaseException:
            self.close()
            raise

    def install(self, links: Links, relays: bool = True) -> None:
        """Changes only what differs from the last call. Without ``relays``, installs routes to direct
        neighbours only."""
        for node, table in tables(links, self._nodes, relays).items():
            kernel, link = self._kernels[node]
            wanted = list(orders(self._installed[node], table, self._nodes, link))
            if not wanted:
                continue
            # A route that disappeared already, for example with the interface, need not be removed.
            refused = [error for error in kernel.carry_out(wanted) if error.errno != errno.ESRCH]
            if any(error.errno == errno.ENETDOWN for error in refused):
                # The interface was taken down and lost its routes: install all once it is up.
                self._installed[node] = {}
                continue
            self._installed[node] = table
            if refused:
                raise NetworkError(f"{node}: {len(refused)} routes were refused: {refused[0].strerror}")

    def close(self) -> None:
        """Closes the sockets. The routes stay, and end with their namespaces."""
        self._held.close()

    def _open(self, namespaces: Mapping[str, Path]) -> None:
        for node in self._nodes:
            descriptor = names.open_namespace(namespaces[node])
            if descriptor is None:
                raise NetworkError(f"{namespaces[node]} is not a network namespace")
            try:
                syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
            finally:
                os.close(descriptor)
            kernel = self._held.enter_context(Netlink())
            self._kernels[node] = kernel, kernel.link_index(RADIO_LINK)
