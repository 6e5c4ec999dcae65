"""Reads a routing daemon's options about its ad-hoc network: prefixes, membership, key."""

import os
import stat
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from node_agent.host.daemon_process import CannotStart
from node_agent.host.interfaces import InterfaceFacts
from node_agent.manet.membership import Manet, ManetConfig, manet_of
from node_agent.manet.seal import Seal
from node_agent.transport.keys import derive

_SHORTEST_KEY, _LONGEST_KEY = 16, 4096


def manet_on(interfaces: Sequence[InterfaceFacts], config: ManetConfig) -> Manet:
    """Returns the ad-hoc network; by default the networks of the
    interfaces' own addresses. Raises CannotStart."""
    networks = config.networks
    if not networks:
        own = [_network(each) for each in interfaces]
        lonely = [each for each in own if each.prefixlen > 30]
        if lonely:
            raise CannotStart(f"{lonely[0]} has no room for other nodes: name their network with --network")
        networks = tuple(str(each) for each in dict.fromkeys(own))
    manet = manet_of(networks, config.members)
    for each in interfaces:
        if manet.refusal(int(IPv4Address(each.address))):
            raise CannotStart(
                f"{each.address} of {each.name} does not belong to the ad-hoc network {manet.described()}:"
                " name the network with --network"
            )
    return manet


def own_networks(
    manet: Manet, interfaces: Iterable[InterfaceFacts], accepted: Iterable[str] = ()
) -> list[IPv4Network]:
    """Returns the networks in which the daemon's routes win over less specific routes of other interfaces:
    those of its interfaces, the accepted ones and, unless nodes are known by address, the named ones. Known
    addresses do not count: as networks of one host they would win over every other route."""
    named = () if manet.members else manet.networks
    return [*map(_network, interfaces), *named, *map(IPv4Network, accepted)]


def _network(interface: InterfaceFacts) -> IPv4Network:
    return IPv4Interface(f"{interface.address}/{interface.netmask}").network


def seal_of(config: ManetConfig, protocol: str) -> Seal | None:
    return Seal(config.key, protocol, time.time_ns) if config.key else None


def add_key_argument(parser: ArgumentParser) -> None:
    """Adds ``--key-file``; ``read_key`` reads its value."""
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="the group's key: seals our packets, and packets without a seal are refused;"
        " make one with: head -c 32 /dev/urandom | base64",
    )


def read_key(file: str) -> bytes:
    """Reads the group's key, 16 bytes or more, from a file that only
    its owner can read. Raises ValueError."""
    try:
        with Path(file).expanduser().open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ValueError(f"others can read the key {file}: chmod 600 {file}")
            secret = opened.read(_LONGEST_KEY + 1).strip()
    except OSError as error:
        raise ValueError(f"the key {file} cannot be read: {error.strerror}") from None
    if not _SHORTEST_KEY <= len(secret) <= _LONGEST_KEY:
        raise ValueError(
            f"the key {file} has {len(secret)} bytes, and needs {_SHORTEST_KEY} to {_LONGEST_KEY}:"
            f" head -c 32 /dev/urandom | base64 > {file}"
        )
    return derive(secret, b"routing")
