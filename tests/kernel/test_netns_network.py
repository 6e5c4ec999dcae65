import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.layout import Layout, RadioEnd, Route, numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.errors import BadInput
from tests.kernel.inside import answered, icmp_socket, inside, path_of, send_ping, udp_socket


def nodes(count: int) -> Layout:
    return numbered([f"n{number:02d}" for number in range(1, count + 1)])


@contextmanager
def network_of(layout: Layout, mark: Mark) -> Iterator[dict[str, int]]:
    ends = network.up(layout, mark)
    try:
        yield ends
    finally:
        for descriptor in ends.values():
            os.close(descriptor)


def carry(source: int, destination: int) -> None:
    """Be the air for one frame."""
    assert select.select([source], [], [], 5)[0], "no frame came"
    os.write(destination, os.read(source, 2048))


@pytest.mark.parametrize("count", [3, 50])
def test_nodes_reach_each_other_over_the_control_network(mark: Mark, count: int) -> None:
    layout = nodes(count)
    with network_of(layout, mark) as ends:
        assert list(ends) == [node.name for node in layout.nodes]
        last = layout.nodes[-1].control.ip
        with icmp_socket(mark, "n01") as icmp:
            for address in (last, layout.control.ip):
                send_ping(icmp, address)
                assert answered(icmp, address)
    assert network.down(mark) == []
    assert not list(names.HOST_NAMES.glob(f"{mark.group}*"))


def test_the_hosts_own_network_stays_as_it_was(mark: Mark) -> None:
    def seen() -> tuple[list[str], list[str]]:
        """Laboratories of tests/ssh come and go at the same time, and have a link here on purpose."""
        links = [name for _, name in socket.if_nameindex() if not name.startswith("lab")]
        routes = Path("/proc/net/route").read_text().splitlines()
        return links, [route for route in routes if not route.startswith("lab")]

    before = seen()
    with network_of(nodes(3), mark):
        assert seen() == before


def test_a_node_forwards_and_keeps_out_of_the_way_of_routing(mark: Mark) -> None:
    with network_of(nodes(1), mark):

        def read() -> dict[str, str]:
            root = Path("/proc/sys/net")
            keys = (
                "ipv4/ip_forward",
                *(
                    f"ipv4/conf/{link}/{key}"
                    for link in ("all", "wlan0", "ctl0")
                    for key in ("rp_filter", "send_redirects", "accept_redirects")
                ),
            )
            return {key: (root / key).read_text().strip() for key in keys}

        values = inside(mark, "n01", read)
        assert values.pop("ipv4/ip_forward") == "1"
        assert set(values.values()) == {"0"}
        assert inside(mark, "n01", lambda: Path("/proc/thread-self/net/if_inet6").read_text()) == ""


@pytest.mark.parametrize("radio_end", list(RadioEnd))
def test_frames_pass_through_the_radio_ends(mark: Mark, radio_end: RadioEnd) -> None:
    layout = replace(nodes(2), static_neighbours=True, radio_end=radio_end)
    with network_of(layout, mark) as ends, icmp_socket(mark, "n01") as icmp:
        send_ping(icmp, layout.nodes[1].radio.ip)
        carry(ends["n01"], ends["n02"])
        carry(ends["n02"], ends["n01"])
        assert answered(icmp, layout.nodes[1].radio.ip)


def test_another_radio_can_take_over(mark: Mark) -> None:
    layout = replace(nodes(2), static_neighbours=True)
    with network_of(layout, mark), pytest.raises(NetworkError, match="busy"):
        network.attach(mark)
    ends = network.attach(mark)
    assert list(ends) == ["n01", "n02"]
    with icmp_socket(mark, "n01") as icmp:
        send_ping(icmp, layout.nodes[1].radio.ip)
        carry(ends["n01"], ends["n02"])
        carry(ends["n02"], ends["n01"])
        assert answered(icmp, layout.nodes[1].radio.ip)
    for descriptor in ends.values():
        os.close(descriptor)


def test_without_static_neighbours_the_first_frame_is_arp(mark: Mark) -> None:
    layout = nodes(2)
    with network_of(layout, mark) as ends, udp_socket(mark, "n01") as udp:
        udp.sendto(b"hello", (str(layout.nodes[1].radio.ip), 9))
        assert select.select([ends["n01"]], [], [], 5)[0]
        frame = os.read(ends["n01"], 2048)
        assert frame[:6] == b"\xff" * 6
        assert frame[12:14] == b"\x08\x06"


def test_a_static_route_leads_over_a_relay(mark: Mark) -> None:
    layout = replace(nodes(3), static_neighbours=True)
    first, relay, last = layout.nodes
    there = Route(IPv4Network(f"{last.radio.ip}/32"), relay.radio.ip)
    back = Route(IPv4Network(f"{first.radio.ip}/32"), relay.radio.ip)
    layout = replace(layout, nodes=(replace(first, routes=(there,)), relay, replace(last, routes=(back,))))
    with network_of(layout, mark) as ends, icmp_socket(mark, "n01") as icmp:
        send_ping(icmp, last.radio.ip)
        path = ["n01", "n02", "n03", "n02", "n01"]
        for source, destination in pairwise(path):
            carry(ends[source], ends[destination])
        assert answered(icmp, last.radio.ip)


def test_the_queue_holds_as_many_frames_as_asked_for_and_drops_the_rest(mark: Mark) -> None:
    layout = replace(nodes(2), static_neighbours=True, queue_length=7)
    with network_of(layout, mark) as ends, udp_socket(mark, "n01") as udp:
        for _ in range(40):
            udp.sendto(b"x", (str(layout.nodes[1].radio.ip), 9))
        frames = 0
        while select.select([ends["n01"]], [], [], 0.2)[0]:
            os.read(ends["n01"], 2048)
            frames += 1
        assert frames == 7


def test_up_twice_is_refused_and_leaves_the_first_network_alone(mark: Mark) -> None:
    layout = nodes(2)
    with network_of(layout, mark):
        with pytest.raises(NetworkError, match="already"):
            network.up(layout, mark)
        with icmp_socket(mark, "n01") as icmp:
            send_ping(icmp, layout.nodes[1].control.ip)
            assert answered(icmp, layout.nodes[1].control.ip)


def test_down_may_be_repeated_and_needs_no_network(mark: Mark) -> None:
    assert network.down(mark) == []
    with network_of(nodes(2), mark):
        pass
    assert network.down(mark) == []
    assert network.down(mark) == []


def test_a_failure_half_way_takes_back_what_was_made(mark: Mark) -> None:
    stranger = path_of(mark, "n02")
    stranger.parent.mkdir(exist_ok=True)
    stranger.write_text("somebody's notes")
    try:
        with pytest.raises(NetworkError, match=r"n02: CreateNamespace.*File exists"):
            network.up(nodes(3), mark)
        assert network.leftovers(mark) == []
        assert stranger.read_text() == "somebody's notes"
    finally:
        stranger.unlink()


def test_an_impossible_layout_creates_nothing(mark: Mark) -> None:
    with pytest.raises(BadInput, match="n01 is used 2 times"):
        network.up(numbered(["n01", "n01"]), mark)
    assert network.leftovers(mark) == []


def test_a_namespace_that_somebody_holds_is_reported(mark: Mark) -> None:
    ends = network.up(nodes(2), mark)
    held = os.open(path_of(mark, "n02"), os.O_RDONLY)
    for descriptor in ends.values():
        os.close(descriptor)
    try:
        (left,) = network.down(mark, timeout=0.5)
        assert left.kind == "namespace"
        assert left.what.startswith("n02:")
    finally:
        os.close(held)


def test_tcp_that_cannot_say_good_bye_holds_nobody_up(mark: Mark) -> None:
    """The kernel tries for half a minute on behalf of a program that is gone, in a namespace that is."""
    layout = nodes(2)
    to = str(layout.nodes[1].control.ip)

    def tcp() -> socket.socket:
        stream = socket.socket()
        stream.settimeout(5)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
        return stream

    with network_of(layout, mark):
        listener = inside(mark, "n02", lambda: socket.create_server((to, 7)))
        stream = inside(mark, "n01", tcp)
        stream.connect((to, 7))
        subprocess.run(["ip", "-n", mark.namespace("n02"), "link", "set", "ctl0", "down"], check=True)
        stream.sendall(b"nobody hears this")
        stream.close()
        listener.close()
    before = time.monotonic()
    assert network.down(mark, timeout=20) == []
    assert time.monotonic() - before < 10
