"""Set-ups on a LAN of namespaces: frames are really lost and slowed, and all is as before afterwards."""

import json
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import pytest

from node_agent.host.setup.order import Lan, SetupOrder, ShapedLink
from tests.kernel.lan import INTERFACE, LanNode, lan

PORT = 9000
SENT = 4000
FRAME = 1514
HEADERS = 14 + 20 + 8
_TIMESTAMP = 35  # SO_TIMESTAMPNS
_FORCED_BUFFERS = (32, 33)  # SO_SNDBUFFORCE, SO_RCVBUFFORCE


pytestmark = pytest.mark.skipif(shutil.which("nft") is None, reason="needs nftables")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LanNode]]:
    with lan(["n01", "n02", "n03"], tmp_path) as made:
        yield made


def order(node: LanNode, *links: ShapedLink) -> SetupOrder:
    return SetupOrder("r1", INTERFACE, f"{node.address}/16", Lan(), True, links)


def link(peer: LanNode, loss: float = 0.0, rate: float | None = None, delay: float = 0.0) -> ShapedLink:
    return ShapedLink(peer.name, peer.hardware, loss, rate, delay)


def acquaint(*nodes: LanNode) -> None:
    """Without address resolution, which is lost and slowed like anything else."""
    for node in nodes:
        for peer in nodes:
            if peer is not node:
                entry = (peer.address, "lladdr", peer.hardware, "dev", INTERFACE, "nud", "permanent")
                node.sh("ip", "neighbour", "replace", *entry)


def udp(node: LanNode) -> socket.socket:
    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for size in _FORCED_BUFFERS:
            made.setsockopt(socket.SOL_SOCKET, size, 1 << 24)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        made.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        made.bind(("", PORT))
        made.settimeout(1)
        return made

    made = node.inside(make)
    # The kernel begins to note when frames arrive a little after it was asked to.
    while True:
        made.sendto(b"", ("127.0.0.1", PORT))
        sent = time.time()
        time.sleep(0.01)
        _, ancillary, _, _ = made.recvmsg(2048, 64)
        if arrived(ancillary) <= sent:
            return made


def arrived(ancillary: list[tuple[int, int, bytes]]) -> float:
    seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
    return float(seconds + nanoseconds / 1e9)


def arrivals(receiver: socket.socket) -> list[float]:
    """When the kernel got each datagram, until there is one that says it was the last, or silence."""
    times: list[float] = []
    while True:
        try:
            data, ancillary, _, _ = receiver.recvmsg(2048, 64)
        except TimeoutError:
            return times
        if data == b"end":
            return times
        times.append(arrived(ancillary))


def delivered(sender: LanNode, receiver: LanNode, to: str) -> int:
    with udp(sender) as out, udp(receiver) as into:
        for _ in range(SENT):
            out.sendto(b"x" * 100, (to, PORT))
        for _ in range(50):  # one of them arrives
            out.sendto(b"end", (to, PORT))
        return len(arrivals(into))


def assert_share(count: int, share: float) -> None:
    """Six standard deviations: wrong once in half a billion times."""
    assert abs(count - SENT * share) <= 6 * sqrt(SENT * share * (1 - share))


def with_a_past(node: LanNode) -> None:
    """Things of others on the interface and beside it."""
    node.sh("ip", "link", "set", INTERFACE, "up")
    node.sh("ip", "address", "add", "192.168.7.1/24", "dev", INTERFACE)
    node.sh("ip", "route", "add", "172.16.0.0/12", "via", "192.168.7.9", "metric", "7")
    node.sh("nft", "add", "table", "netdev", "somebody")
    node.sh("nft", "add", "table", "inet", "rove-like")
    node.sh("sysctl", "-w", "net.ipv4.conf.lo.forwarding=1")


@pytest.mark.parametrize("ended_by", ["stdin", "SIGTERM", "SIGHUP", "kill and undo", "kill and start again"])
def test_all_is_exactly_as_before(nodes: dict[str, LanNode], ended_by: str) -> None:
    node = nodes["n01"]
    with_a_past(node)
    before = node.state()
    ordered = order(node, link(nodes["n02"], 0.3, 1e6), link(nodes["n03"], 1.0))
    held = node.start(ordered)
    assert held.told == {"ready": True, "notes": []}
    during = node.state()
    assert all(during[part] != before[part] for part in before)
    match ended_by:
        case "stdin":
            assert held.end() == {"undone": True, "left": [], "status": 0}
        case "kill and undo":
            held.kill()
            assert node.state() == during
            assert node.undo() == {"undone": True, "left": []}
        case "kill and start again":
            held.kill()
            again = node.start(ordered)
            assert again.told == {"ready": True, "notes": ["undid what a killed process had left"]}
            assert again.end()["left"] == []
        case _:
            assert held.signal(signal.Signals[ended_by]) == {"undone": True, "left": [], "status": 0}
    assert node.state() == before
    assert node.undo() == {"undone": True, "left": []}
    assert node.state() == before
    assert [path.name for path in node.directory.glob("n01*")] == ["n01.json"]


def test_killed_at_any_moment(nodes: dict[str, LanNode]) -> None:
    """The way back is on disk before each deed."""
    node = nodes["n01"]
    with_a_past(node)
    before = node.state()
    ordered = order(node, link(nodes["n02"], 0.3, 1e6), link(nodes["n03"], 1.0))
    for deeds in range(9):
        starting = node.begin(ordered)
        while starting.poll() is None and node.intended() < deeds:
            time.sleep(0.001)
        starting.kill()
        starting.communicate(timeout=10)
        assert node.undo() == {"undone": True, "left": []}
        assert node.state() == before


def test_whoever_has_no_owner_any_more_does_not_begin(nodes: dict[str, LanNode]) -> None:
    node = nodes["n01"]
    before = node.state()
    told, _ = node.begin(order(node)).communicate(timeout=20)
    assert [json.loads(line) for line in told.splitlines()] == [{"undone": True, "left": []}]
    assert node.state() == before


def test_an_interface_that_was_down_is_down_again(nodes: dict[str, LanNode]) -> None:
    node = nodes["n01"]
    before = node.state()
    assert node.start(order(node, link(nodes["n02"], 0.3))).end()["left"] == []
    after = node.state()
    # The kernel chooses a queue when an interface first goes up, and keeps it.
    assert {**after, "queues": []} == {**before, "queues": []}


def test_what_somebody_changed_meanwhile_is_told(nodes: dict[str, LanNode]) -> None:
    node = nodes["n01"]
    with_a_past(node)
    held = node.start(order(node))
    node.sh("ip", "address", "del", "192.168.7.1/24", "dev", INTERFACE)
    gone = [
        "eth0: address 192.168.7.1/24 is gone",
        "eth0: route 172.16.0.0/12 via 192.168.7.9 metric 7 is gone",
    ]
    told = held.end()
    assert told["status"] == 1
    assert [text.replace(" proto boot", "") for text in told["left"]] == gone


def test_losses_are_those_of_each_sender(nodes: dict[str, LanNode]) -> None:
    n01, n02, n03 = nodes.values()
    held = [
        n01.start(order(n01, link(n02, 0.3), link(n03, 1.0))),
        n02.start(order(n02)),
        n03.start(order(n03)),
    ]
    acquaint(*nodes.values())
    assert_share(delivered(n02, n01, n01.address), 0.7)
    assert_share(delivered(n02, n01, "10.77.255.255"), 0.7)
    assert delivered(n03, n01, n01.address) == 0
    assert delivered(n03, n01, "10.77.255.255") == 0
    assert delivered(n01, n02, n02.address) == SENT
    assert all(each.end()["left"] == [] for each in held)


def test_a_line_on_one_switch(nodes: dict[str, LanNode]) -> None:
    """n01 and n03 do not hear each other; n02 passes on for them, and each hop loses by itself."""
    n01, n02, n03 = nodes.values()
    held = [
        n01.start(order(n01, link(n02, 0.2), link(n03, 1.0))),
        n02.start(order(n02, link(n01, 0.2), link(n03, 0.2))),
        n03.start(order(n03, link(n01, 1.0), link(n02, 0.2))),
    ]
    acquaint(*nodes.values())
    assert delivered(n01, n03, n03.address) == 0
    n01.sh("ip", "route", "add", n03.address, "via", n02.address)
    assert_share(delivered(n01, n03, n03.address), 0.8 * 0.8)
    # No redirect told n01 of the direct way, which does not exist.
    assert "redirect" not in n01.sh("ip", "route", "get", n03.address)
    assert all(each.end()["left"] == [] for each in held)


def test_a_rate_is_that_of_one_link(nodes: dict[str, LanNode]) -> None:
    n01, n02, n03 = nodes.values()
    rate, count = 1e6, 45
    expected = (count - 1) * FRAME * 8 / rate
    held = [n01.start(order(n01, link(n02, rate=rate))), n02.start(order(n02)), n03.start(order(n03))]
    acquaint(*nodes.values())
    with udp(n01) as out, udp(n02) as slow, udp(n03) as fast:

        def burst(to: str, frames: int) -> None:
            for _ in range(frames):
                out.sendto(b"x" * (FRAME - HEADERS), (to, PORT))

        burst(n02.address, count)
        burst(n03.address, count)
        at_slow, at_fast = arrivals(slow), arrivals(fast)
        assert (len(at_slow), len(at_fast)) == (count, count)
        assert 0.9 * expected < at_slow[-1] - at_slow[0] < 1.3 * expected
        assert at_fast[-1] < at_slow[-1]
        # The queue of a link is short: what does not fit is lost, not late by minutes.
        burst(n02.address, 4 * count)
        assert 50 <= len(arrivals(slow)) <= 60
        burst("10.77.255.255", count)
        at_fast = arrivals(fast)
        assert 0.9 * expected < at_fast[-1] - at_fast[0] < 1.3 * expected
    assert all(each.end()["left"] == [] for each in held)


def test_frames_are_single_ones(nodes: dict[str, LanNode]) -> None:
    """Of 40 merged into one, all or none would be lost."""
    n01, n02, _ = nodes.values()
    held = [n01.start(order(n01, link(n02, 0.01))), n02.start(order(n02, link(n01, 0.01)))]

    def listen() -> tuple[socket.socket, socket.socket]:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        raw.bind((INTERFACE, 0x0800))
        raw.settimeout(1)
        return raw, socket.create_server((n01.address, PORT))

    raw, server = n01.inside(listen)
    server.settimeout(10)
    with raw, server, n02.inside(lambda: socket.create_connection((n01.address, PORT), 10)) as out:
        accepted, _ = server.accept()
        accepted.settimeout(10)
        with accepted:
            out.sendall(bytes(50_000))
            missing = 50_000
            while missing > 0:  # closed earlier, it would refuse the rest
                missing -= len(accepted.recv(1 << 16)) or missing
        sizes: list[int] = []
        while len(sizes) < 30:
            sizes.append(len(raw.recv(1 << 16)))
    assert FRAME in sizes and max(sizes) <= FRAME
    assert all(each.end()["left"] == [] for each in held)


def test_delay_comes_out_or_is_refused_in_one_sentence(nodes: dict[str, LanNode]) -> None:
    n01, n02, _ = nodes.values()
    n01.sh("ip", "link", "set", INTERFACE, "up")
    before = n01.state()
    ordered = order(n01, link(n02, 0.1, delay=0.2))
    probe = ["ip", "netns", "exec", n01.namespace, "tc", "qdisc", "add", "dev", "lo", "root", "netem"]
    if subprocess.run(probe, capture_output=True, timeout=10).returncode:
        sentence = "this kernel has no netem: delay cannot be emulated; load sch_netem or leave delay out"
        held = n01.start(ordered)
        assert (held.told, held.end()) == ({"error": sentence}, {"status": 1})
        assert n01.state() == before
        return
    both = n01.start(ordered), n02.start(order(n02))
    acquaint(n01, n02)
    pinged = n01.sh("ping", "-c", "5", "-i", "0.2", n02.address)
    assert 200 <= float(pinged.rsplit("=", 1)[1].split("/")[0]) < 300
    assert all(each.end()["left"] == [] for each in both)


def test_what_cannot_be_done_is_said_and_nothing_is_changed(nodes: dict[str, LanNode]) -> None:
    n01, n02, _ = nodes.values()
    n01.sh("ip", "link", "set", INTERFACE, "up")
    n01.sh("tc", "qdisc", "add", "dev", INTERFACE, "root", "handle", "5:", "htb")
    before = n01.state()
    refused = n01.start(order(n01, link(n02, rate=1e6)))
    assert "eth0 has a queueing discipline already (htb 5:)" in refused.told["error"]
    assert refused.end() == {"status": 1}
    absent = n01.start(SetupOrder("r1", "wlan7"))
    assert absent.told == {"error": "there is no interface wlan7 here: there is eth0"}
    assert absent.end() == {"status": 1}
    held = n01.start(order(n01))
    second = n01.start(order(n01))
    assert second.told == {"error": "eth0 is set up for another run: end that run first (rove down)"}
    assert (second.end(), n01.undo()) == (
        {"status": 1},
        {"error": "eth0 is set up for another run: end that run first (rove down)"},
    )
    assert held.end()["left"] == []
    assert n01.state() == before
