"""A hostile radio neighbour of an OLSR daemon: where routes may lead, whom it believes, what it remembers."""

import random
import time
from collections import Counter
from ipaddress import IPv4Network

import pytest
from msgspec.structs import replace

from node_agent.host.guarded_routes import OtherRoute, claimed_by, read_routes
from node_agent.host.interfaces import InterfaceFacts
from node_agent.manet.membership import Manet, ManetConfig, manet_of
from node_agent.manet.process import own_networks
from node_agent.olsr import topology, validity, wire
from node_agent.olsr.accepted_networks import AcceptedNetworks
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.daemon import Interface, Olsr
from node_agent.olsr.neighbourhood import MAX_LINKS
from node_agent.olsr.service import Table
from tests.unit.olsr_network import SECOND, address

PERFECT = bytes((255, 255, 0, 0))
PREFIX = manet_of(("10.0.0.0/16",))
MEMBERS = manet_of(("10.0.0.0/16",), ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"))
CONTROL = wire.number("172.30.0.9")
FOREIGN = [
    wire.number(text)
    for text in (
        "172.30.0.9",
        "192.168.1.1",
        "8.8.8.8",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.5",
        "10.0.255.255",
    )
]


class Hostile:
    """A neighbour (10.0.0.2) with a perfect link to a daemon (10.0.0.1), which relays for it."""

    def __init__(self, manet: Manet, accepted: tuple[str, ...] = ()) -> None:
        config = OlsrConfig(accept_networks=accepted)
        self.daemon = Olsr(config, [Interface("wlan0", address(1))], random.Random(1), 0, manet)
        self.now = 0
        self._seqno = 0
        for _ in range(40):
            self.now += SECOND
            self.greet(address(2))
            self.daemon.wake(self.now)

    def send(self, *messages: wire.Message, sender: int = address(2)) -> None:
        self._seqno = (self._seqno + 1) & 0xFFFF
        self.daemon.receive(wire.encode_packet(self._seqno, messages), 0, sender, self.now)

    def greet(self, sender: int, originator: int | None = None, *listed: int, vtime: float = 20.0) -> None:
        linked = wire.Group(2 | 2 << 2, (wire.Neighbour(address(1), PERFECT),))
        near = wire.Group(2 | 1 << 2, tuple(wire.Neighbour(each, PERFECT) for each in listed))
        hello = wire.Hello(validity.encode(2.0), 3, (linked, near) if listed else (linked,))
        body = wire.encode_hello(hello, wire.LQ_HELLO)
        self.send(self.message(wire.LQ_HELLO, originator or sender, body, vtime, ttl=1), sender=sender)

    def message(
        self, kind: int, originator: int, body: bytes, vtime: float = 300.0, ttl: int = 255
    ) -> wire.Message:
        self._seqno = (self._seqno + 1) & 0xFFFF
        return wire.Message(kind, validity.encode(vtime), originator, ttl, 0, self._seqno, body)

    def tc(self, originator: int, *neighbours: int, vtime: float = 300.0) -> wire.Message:
        listed = tuple(wire.Neighbour(each, PERFECT) for each in neighbours)
        body = wire.encode_tc(wire.Tc(1, 255, 255, listed), wire.LQ_TC)
        return self.message(wire.LQ_TC, originator, body, vtime)

    def hna(self, originator: int, *networks: str) -> wire.Message:
        pairs = [IPv4Network(each) for each in networks]
        body = wire.encode_hna(wire.Hna(tuple((int(n.network_address), int(n.netmask)) for n in pairs)))
        return self.message(wire.HNA, originator, body)

    def installed(self) -> set[str]:
        return set(Table(self.daemon.current_routes(self.now), ["wlan0"]))

    def refused(self) -> Counter[str]:
        counted = Counter[str]()
        for each in self.daemon.counters.refusals:
            assert (each.what, each.source) == ("olsr", "10.0.0.2")
            counted[each.reason] += each.count
        return counted


def test_routes_lead_only_into_the_network() -> None:
    hostile = Hostile(PREFIX)
    hostile.send(hostile.tc(address(2), address(3), *FOREIGN))
    hostile.send(*[hostile.tc(each, address(3), *FOREIGN) for each in FOREIGN[:3]])
    hostile.send(hostile.message(wire.MID, address(2), wire.encode_mid(wire.Mid(tuple(FOREIGN)))))
    hostile.greet(address(2), None, address(4), *FOREIGN)
    hostile.send(hostile.hna(address(2), "0.0.0.0/0", "172.30.0.0/16", "172.30.0.9/32", "0.0.0.0/1"))
    assert hostile.installed() == {"10.0.0.2", "10.0.0.3"}
    assert hostile.refused() == {"outside_prefix": 4, "hna": 1}
    shown = hostile.daemon.view(hostile.now)
    assert {hna.prefix for hna in shown.hna} == {0, 16, 32, 1}
    assert {route.destination for route in shown.routes} == {address(2), address(3)}


def test_networks_of_others_get_routes_by_consent() -> None:
    accepted = AcceptedNetworks(("192.168.0.0/16", "0.0.0.0/0"))

    def accepts(text: str) -> bool:
        network = IPv4Network(text)
        return accepted.accepts(int(network.network_address), int(network.netmask))

    assert all(map(accepts, ("192.168.0.0/16", "192.168.7.0/24", "192.168.7.1/32", "0.0.0.0/0")))
    assert not any(map(accepts, ("192.0.0.0/8", "172.30.0.0/16", "0.0.0.0/1", "128.0.0.0/1", "8.8.8.8/32")))
    hostile = Hostile(PREFIX, ("192.168.7.0/24",))
    hostile.send(hostile.hna(address(2), "0.0.0.0/0", "192.168.7.0/24", "192.168.0.0/16"))
    assert hostile.installed() == {"10.0.0.2", "192.168.7.0/24"}


SMART_GATEWAY = (0, wire.number("0.7.10.43"))
"""olsrd's SmartGateway: flags and the uplink's speed in the netmask of 0.0.0.0/0."""


@pytest.mark.parametrize(
    ("accepted", "routes"),
    [
        ((), set()),
        (("192.168.0.0/16",), {"192.168.7.0/24"}),
        (("192.168.0.0/16", "0.0.0.0/0"), {"192.168.7.0/24", "0.0.0.0/0"}),
    ],
)
def test_a_smart_gateways_networks_are_relayed_unchanged_and_used_by_consent(
    accepted: tuple[str, ...], routes: set[str]
) -> None:
    hostile = Hostile(PREFIX, accepted)
    odd = (wire.number("172.30.0.0"), wire.number("255.0.255.0"))
    ordinary = (wire.number("192.168.7.0"), wire.number("255.255.255.0"))
    body = wire.encode_hna(wire.Hna((SMART_GATEWAY, odd, ordinary)))
    told = hostile.message(wire.HNA, address(2), body)
    hostile.send(told)
    assert hostile.installed() == {"10.0.0.2"} | routes
    assert hostile.refused() == {"hna": 1}
    assert {(hna.network, hna.prefix) for hna in hostile.daemon.view(hostile.now).hna} == {
        (0, 0),
        (wire.number("192.168.7.0"), 24),
    }
    sent = hostile.daemon.wake(hostile.now + 2 * SECOND)
    messages = [message for out in sent for message in wire.decode_packet(out.data).messages]
    relayed = [message for message in messages if message.kind == wire.HNA]
    assert relayed == [replace(told, ttl=told.ttl - 1, hops=told.hops + 1)]


def test_who_is_no_node_of_the_run_is_not_heard() -> None:
    hostile = Hostile(MEMBERS)
    hostile.send(hostile.tc(address(2), address(3), address(7)))
    hostile.send(hostile.tc(address(7), address(8)), hostile.tc(address(3), address(4)))
    hostile.greet(address(2), address(7))
    assert hostile.installed() == {"10.0.0.2", "10.0.0.3", "10.0.0.4"}
    assert hostile.refused() == {"not_member": 2}
    hostile.greet(address(2), address(3))  # a member, but another one
    assert hostile.refused()["identity"] == 1
    assert [link.neighbour for link in hostile.daemon.view(hostile.now).links] == [address(2)]


def test_a_stranger_is_not_read_at_all() -> None:
    daemon = Olsr(OlsrConfig(), [Interface("wlan0", address(1))], random.Random(1), 0, MEMBERS)
    daemon.receive(b"anything", 0, address(9), 0)
    daemon.receive(b"anything", 0, CONTROL, 0)
    reasons = [(each.source, each.reason) for each in daemon.counters.refusals]
    assert reasons == [("10.0.0.9", "not_member"), ("172.30.0.9", "outside_prefix")]


def test_invented_originators_do_not_keep_true_ones_out() -> None:
    """As many as fit into 549 kB, all valid for as long as can be said, all in the network's prefix."""
    hostile = Hostile(PREFIX)
    honest = address(200)
    for _ in range(3):
        hostile.greet(honest)
        hostile.now += SECOND
    hostile.send(hostile.tc(address(201), honest, address(202)), sender=honest)
    sent = 0
    number = 1000
    began = time.process_time()
    while sent < 549_000:
        packet = [hostile.tc(address(number + each), address(5), vtime=3968.0) for each in range(50)]
        number += len(packet)
        sent += len(wire.encode_packet(0, packet))
        hostile.send(*packet)
    assert number > 2 * topology.MAX_ORIGINATORS
    assert time.process_time() - began < 20
    hostile.send(hostile.tc(honest, address(201)), hostile.tc(address(203), honest), sender=honest)
    known = {edge.last_hop for edge in hostile.daemon.view(hostile.now).topology}
    assert {honest, address(201), address(203)} <= known
    assert len(known) <= topology.MAX_ORIGINATORS + 1
    assert hostile.refused()["full"] > 1000
    hostile.now += 601 * SECOND
    assert hostile.daemon.view(hostile.now).topology == ()


def test_invented_neighbours_do_not_keep_true_ones_out() -> None:
    hostile = Hostile(PREFIX)
    for number in range(1000, 1000 + 3 * MAX_LINKS):
        hostile.greet(address(number), vtime=3968.0)
    hostile.greet(address(300))
    links = {link.remote for link in hostile.daemon.view(hostile.now).links}
    assert len(links) <= MAX_LINKS and {address(2), address(300)} <= links
    hostile.now += 621 * SECOND
    assert hostile.daemon.view(hostile.now).links == ()


def test_nobody_becomes_the_alias_of_another() -> None:
    hostile = Hostile(PREFIX)
    for _ in range(40):
        hostile.now += SECOND
        for sender in (address(2), address(3)):
            hostile.greet(sender)
        hostile.daemon.wake(hostile.now)
    hostile.send(hostile.message(wire.MID, address(2), wire.encode_mid(wire.Mid((address(3), address(9))))))
    routes = hostile.daemon.routes(hostile.now)
    assert routes[address(3)].gateway == address(3)
    assert routes[address(9)].gateway == address(2)


def test_packets_longer_than_any_radio_carries_are_refused() -> None:
    hostile = Hostile(PREFIX)
    hostile.send(hostile.tc(address(2), *range(address(3), address(3) + 1000)))
    assert hostile.refused() == {"malformed": 1}


@pytest.mark.parametrize(
    ("networks", "members", "said"),
    [
        (("10.0.0.1/16",), (), "host bits"),
        (("10.0.0.0/16",), ("10.1.0.1",), "10.1.0.1 is not in the network 10.0.0.0/16"),
        (("10.0.0.0/16",), ("10.0.255.255",), "10.0.255.255 is not in"),
        ((), ("127.0.0.1",), "127.0.0.1 is not in"),
    ],
)
def test_a_network_that_cannot_be(networks: tuple[str, ...], members: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ManetConfig(networks=networks, members=members)


def test_link_local_addresses_belong_only_where_they_are_named() -> None:
    ours = wire.number("169.254.7.7")
    assert not manet_of(("128.0.0.0/1",)).belongs(ours)
    assert manet_of(("169.254.0.0/16",)).belongs(ours)


TABLE = """\
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t0105000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0005000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
wlan0\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""


def test_what_another_interface_reaches_is_left_alone() -> None:
    others = [route for route in read_routes(TABLE) if route.interface != "wlan0"]
    control = OtherRoute(IPv4Network("10.0.5.0/24"), "eth0")
    assert others == [control]

    def claimed(destination: str, *own: str) -> OtherRoute | None:
        return claimed_by(IPv4Network(destination), map(IPv4Network, own), others)

    assert claimed("10.0.5.7", "10.0.0.0/16") == control
    assert claimed("10.0.5.7", "10.0.5.0/24") == control  # nobody can tell whose it is
    assert claimed("10.0.5.7") == control  # the protocol's interface is in no network
    assert claimed("10.0.6.7", "10.0.0.0/16") is None
    assert claimed("0.0.0.0/0", "10.0.0.0/16", "0.0.0.0/0") is None


@pytest.mark.parametrize(
    ("address", "netmask", "left_alone"),
    [
        ("10.0.5.1", "255.255.255.0", True),  # two interfaces in one network: nobody can tell
        ("10.0.5.1", "255.255.255.255", True),
        ("10.0.5.1", "255.255.255.128", False),  # without any protocol it would be reached by wlan0
    ],
)
def test_a_node_of_the_run_that_another_interface_reaches_is_left_alone(
    address: str, netmask: str, left_alone: bool
) -> None:
    """It was not: the address of a known node counted as a network of its own, more specific than any."""
    wlan0 = InterfaceFacts("wlan0", address, netmask, "10.0.5.255", 1500, 3, 1, True)
    manet = manet_of(("10.0.0.0/16",), ("10.0.5.1", "10.0.5.7"))
    control = OtherRoute(IPv4Network("10.0.5.0/24"), "eth0")
    claimed = claimed_by(IPv4Network("10.0.5.7"), own_networks(manet, [wlan0]), [control])
    assert claimed == (control if left_alone else None)
