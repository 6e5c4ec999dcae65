"""A hostile radio neighbour in a namespace of its own, against our daemon on a node with another network."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from node_agent.olsr import validity, wire
from orchestrator.backends.netns import network
from orchestrator.backends.netns.layout import CONTROL_NETWORK, numbered
from orchestrator.backends.netns.marks import Mark
from tests.kernel.inside import inside
from tests.kernel.test_olsr_daemon import Air, bare, eventually, ip, ours, start, stop

NODE, HOSTILE = "n01", "n02"
PERFECT = bytes((255, 255, 0, 0))
ELSEWHERE = "8.8.8.8"
GATEWAY = str(CONTROL_NETWORK[200])


@pytest.fixture
def pair(mark: Mark) -> Iterator[Mark]:
    ends = network.up(numbered((NODE, HOSTILE)), mark)
    air = Air(ends)
    ip(mark, NODE, "route", "add", "default", "via", GATEWAY, "dev", "ctl0", "onlink")
    yield mark
    air.end()
    for descriptor in ends.values():
        os.close(descriptor)


class Attacker:
    """Greets the node as a neighbour with a perfect link, and says that everything lies behind it."""

    def __init__(self, mark: Mark, control: str) -> None:
        self._socket = inside(mark, HOSTILE, self._open)
        self._seqno = 0
        self._claims = [wire.number(each) for each in ("10.0.0.3", control, ELSEWHERE)]
        networks = [IPv4Network(each) for each in ("0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", f"{control}/32")]
        networks.append(CONTROL_NETWORK)
        self._networks = tuple((int(each.network_address), int(each.netmask)) for each in networks)

    def send(self) -> None:
        own = wire.number("10.0.0.2")
        listed = wire.Group(2 | 2 << 2, (wire.Neighbour(wire.number("10.0.0.1"), PERFECT),))
        hello = wire.encode_hello(wire.Hello(validity.encode(0.125), 3, (listed,)), wire.LQ_HELLO)
        near = tuple(wire.Neighbour(each, PERFECT) for each in self._claims)
        tc = wire.encode_tc(wire.Tc(1, 255, 255, near), wire.LQ_TC)
        mid = wire.encode_mid(wire.Mid(tuple(self._claims[1:])))
        hna = wire.encode_hna(wire.Hna(self._networks))
        messages = []
        for kind, body, ttl in ((wire.LQ_TC, tc, 9), (wire.MID, mid, 9), (wire.HNA, hna, 9), (201, hello, 1)):
            self._seqno += 1
            messages.append(wire.Message(kind, validity.encode(20), own, ttl, 0, self._seqno, body))
        self._seqno += 1
        self._socket.sendto(wire.encode_packet(self._seqno, messages), ("255.255.255.255", 698))

    def close(self) -> None:
        self._socket.close()

    @staticmethod
    def _open() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"wlan0")
        opened.bind(("10.0.0.2", 698))
        return opened


@contextmanager
def attacked(mark: Mark, *options: str) -> Iterator[tuple[Attacker, subprocess.Popen[str], str]]:
    control = str(CONTROL_NETWORK[99])
    attacker = Attacker(mark, control)
    daemon = start(mark, NODE, *options)
    try:
        yield attacker, daemon, control
    finally:
        daemon.kill()
        daemon.communicate()
        attacker.close()


def refusals(mark: Mark) -> dict[str, int]:
    def asked() -> bytes:
        try:
            return bare(9090, b"/counters")
        except OSError:
            return b'{"refusals": []}'

    told = json.loads(inside(mark, NODE, asked))["refusals"]
    assert all((each["what"], each["source"]) == ("olsr", "10.0.0.2") for each in told)
    return {each["reason"]: each["count"] for each in told}


def leaves_by(mark: Mark, address: str) -> str:
    words = ip(mark, NODE, "route", "get", address)[0].split()
    return words[words.index("dev") + 1]


def test_a_neighbour_cannot_take_over_the_control_route(pair: Mark) -> None:
    with attacked(pair) as (attacker, daemon, control):

        def heard() -> bool:
            attacker.send()
            return any(route.startswith("10.0.0.3 ") for route in ours(pair, NODE))

        eventually(heard, "that the neighbour is believed about the ad-hoc network")
        for _ in range(20):
            attacker.send()
        eventually(lambda: refusals(pair).get("hna", 0) > 10, "that all has been read")
        assert {route.split()[0] for route in ours(pair, NODE)} == {"10.0.0.2", "10.0.0.3"}
        assert leaves_by(pair, control) == leaves_by(pair, ELSEWHERE) == "ctl0"
        assert set(refusals(pair)) == {"hna", "outside_prefix"}
        assert stop(daemon)[0] == 0


def test_what_the_machine_reaches_otherwise_is_left_alone(pair: Mark) -> None:
    """Also if it is in the ad-hoc network's own prefix."""
    ip(pair, NODE, "route", "add", "10.0.0.0/28", "via", GATEWAY, "dev", "ctl0", "onlink")
    with attacked(pair) as (attacker, daemon, _):

        def heard() -> bool:
            attacker.send()
            return refusals(pair).get("hna", 0) > 50

        eventually(heard, "that the neighbour is heard")
        assert leaves_by(pair, "10.0.0.3") == "ctl0" and ours(pair, NODE) == []
        status, _, said = stop(daemon)
        assert (status, said) == (0, "olsr: 10.0.0.2 is reached by ctl0 (10.0.0.0/28): left alone\n")


def test_the_default_route_is_taken_only_if_it_was_accepted(pair: Mark) -> None:
    ip(pair, NODE, "route", "del", "default")
    with attacked(pair, "--accept-hna", "0.0.0.0/0") as (attacker, daemon, control):

        def heard() -> bool:
            attacker.send()
            return any(route.startswith("default ") for route in ours(pair, NODE))

        eventually(heard, "that the default route is taken")
        assert (leaves_by(pair, control), leaves_by(pair, ELSEWHERE)) == ("ctl0", "wlan0")
        assert {route.split()[0] for route in ours(pair, NODE)} == {"default", "10.0.0.2", "10.0.0.3"}
        assert stop(daemon)[0] == 0


def test_with_a_key_a_stranger_is_not_heard_at_all(pair: Mark, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("a secret of this test's nodes")
    with attacked(pair, "--key-file", str(key)) as (attacker, daemon, control):

        def heard() -> bool:
            attacker.send()
            return refusals(pair).get("unauthenticated", 0) > 100

        eventually(heard, "that packets without a seal are refused")
        assert set(refusals(pair)) == {"unauthenticated"}
        assert ours(pair, NODE) == []
        assert leaves_by(pair, control) == leaves_by(pair, ELSEWHERE) == "ctl0"
        assert stop(daemon)[0] == 0


def test_nodes_with_the_key_find_each_other(pair: Mark, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("a secret of this test's nodes")
    daemons = [start(pair, node, "--key-file", str(key)) for node in (NODE, HOSTILE)]
    try:
        eventually(lambda: len(ours(pair, NODE)) == len(ours(pair, HOSTILE)) == 1, "routes to each other")
        assert [stop(daemon)[0] for daemon in daemons] == [0, 0]
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.communicate()
