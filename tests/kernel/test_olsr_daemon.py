"""Daemons in processes of their own, in three namespaces in a line with the simplest air between them."""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address

import pytest

from orchestrator.backends.netns import network
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from tests.kernel.inside import answered, icmp_socket, inside, path_of, send_ping

NODES = ("n01", "n02", "n03")
FAST = ("--hello", "0.25", "--hello-validity", "2", "--tc", "0.25", "--tc-validity", "5", "--mid", "0.5")
PATIENCE_S = 30.0
OVER_TWO_HOPS = "10.0.0.3 via 10.0.0.2 dev wlan0 metric 2 onlink"


class Air(threading.Thread):
    """Carries every frame to the nodes next in the line."""

    def __init__(self, ends: Mapping[str, int]) -> None:
        super().__init__(daemon=True)
        order = list(ends.values())
        self._hears = {
            end: [order[near] for near in (index - 1, index + 1) if 0 <= near < len(order)]
            for index, end in enumerate(order)
        }
        self._wake, self._woken = os.pipe()
        self.start()

    def run(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for end in (*self._hears, self._wake):
                waiting.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    if key.fd == self._wake:
                        return
                    frame = os.read(key.fd, 2048)
                    for near in self._hears[key.fd]:
                        with suppress(OSError):  # an interface that is down
                            os.write(near, frame)

    def end(self) -> None:
        os.write(self._woken, b".")
        self.join()
        os.close(self._wake)
        os.close(self._woken)


@pytest.fixture
def line(mark: Mark) -> Iterator[Mark]:
    ends = network.up(numbered(NODES), mark)
    air = Air(ends)
    yield mark
    air.end()
    for descriptor in ends.values():
        os.close(descriptor)


def command(mark: Mark, node: str, *words: str) -> list[str]:
    return ["nsenter", f"--net={path_of(mark, node)}", *words]


def ip(mark: Mark, node: str, *words: str) -> list[str]:
    done = subprocess.run(command(mark, node, "ip", *words), check=True, capture_output=True, text=True)
    return [text.strip() for text in done.stdout.splitlines()]


def ours(mark: Mark, node: str) -> list[str]:
    return ip(mark, node, "route", "show", "proto", "83")


def start(mark: Mark, node: str, *more: str, interface: str = "wlan0") -> subprocess.Popen[str]:
    program = (sys.executable, "-m", "node_agent.olsr", "--interface", interface, *FAST, *more)
    return subprocess.Popen(
        command(mark, node, *program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stop(daemon: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    daemon.send_signal(how)
    out, err = daemon.communicate(timeout=10)
    return daemon.returncode, out, err


@contextmanager
def running(mark: Mark, *nodes: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    daemons = {node: start(mark, node, "--log") for node in nodes}
    try:
        yield daemons
    finally:
        for daemon in daemons.values():
            daemon.kill()
            daemon.communicate()


def eventually(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.1)


def pings(mark: Mark, here: str, there: str) -> bool:
    with icmp_socket(mark, here) as icmp:
        send_ping(icmp, IPv4Address(there))
        return answered(icmp, IPv4Address(there))


def bare(port: int, path: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as asking:
        asking.sendall(path)
        answer = b""
        while more := asking.recv(65536):
            answer += more
        return answer


def test_daemons_make_routes_and_take_them_back(line: Mark) -> None:
    ip(line, "n01", "route", "add", "10.0.0.77", "via", "10.0.0.2", "dev", "wlan0", "proto", "82", "onlink")
    before = ip(line, "n01", "route", "show")
    with running(line, *NODES) as daemons:
        eventually(lambda: OVER_TWO_HOPS in ours(line, "n01"), "a route over two hops")
        assert ours(line, "n01") == ["10.0.0.2 dev wlan0 scope link metric 2", OVER_TWO_HOPS]
        eventually(lambda: len(ours(line, "n03")) == 2, "the way back")
        assert pings(line, "n01", "10.0.0.3")

        status, out, err = stop(daemons["n01"])
        assert (status, err) == (0, "")
        assert "+ 10.0.0.3 via 10.0.0.2 dev wlan0 hops 2" in out
        assert ip(line, "n01", "route", "show") == before
        eventually(lambda: len(ours(line, "n03")) == 1, "that n01 is forgotten")


def test_one_that_ends_in_order_is_forgotten_at_once_and_one_that_is_killed_later(line: Mark) -> None:
    """The others would wait for HELLOs for a minute; a goodbye takes them a moment."""
    patient = ("--hello-validity", "60", "--tc-validity", "120")
    daemons = {node: start(line, node, *patient) for node in NODES}
    try:
        eventually(lambda: OVER_TWO_HOPS in ours(line, "n01"), "a route over two hops")
        status, _, err = stop(daemons["n03"])
        assert (status, err) == (0, "")
        eventually(lambda: OVER_TWO_HOPS not in ours(line, "n01"), "that n03 is forgotten")
        assert len(ours(line, "n01")) == 1
        stop(daemons["n02"], signal.SIGKILL)
        time.sleep(2)
        assert len(ours(line, "n01")) == 1
    finally:
        for daemon in daemons.values():
            daemon.kill()
            daemon.communicate()


def test_a_killed_daemon_leaves_routes_and_the_next_one_removes_them(line: Mark) -> None:
    with running(line, *NODES[:2]) as daemons:
        eventually(lambda: len(ours(line, "n01")) == 1, "a route")
        stop(daemons["n01"], signal.SIGKILL)
        assert len(ours(line, "n01")) == 1
    ip(line, "n01", "route", "add", "10.0.0.99", "via", "10.0.0.2", "dev", "wlan0", "proto", "83", "onlink")
    with running(line, "n01") as daemons:
        eventually(lambda: ours(line, "n01") == [], "that the leftovers are gone")
        status, _, _ = stop(daemons["n01"], signal.SIGINT)
        assert status == 0


def test_queries_are_answered_like_olsrds(line: Mark) -> None:
    def scenario() -> None:
        links = json.loads(bare(9090, b"/links"))["links"]
        assert [(each["localIP"], each["remoteIP"]) for each in links] == [("10.0.0.1", "10.0.0.2")]
        with urllib.request.urlopen("http://127.0.0.1:9090/topology/interfaces", timeout=5) as answer:
            assert answer.headers["Content-Type"].startswith("application/vnd.api+json")
            told = json.load(answer)
        assert ("10.0.0.2", "10.0.0.3") in [
            (each["lastHopIP"], each["destinationIP"]) for each in told["topology"]
        ]
        running = told["interfaces"][0]["olsrInterface"]
        assert (running["up"], running["ipv4Address"], running["mtu"]) == (True, "10.0.0.1", 1472)
        assert running["ipv4Broadcast"] == "10.0.255.255"
        assert "10.0.0.3/32\t10.0.0.2\t2\t" in bare(2006, b"/rou\n").decode()
        assert json.loads(bare(2005, b"/NetworkGraph"))["router_id"] == "10.0.0.1"
        counted = json.loads(bare(9090, b"/counters"))["counters"]
        assert counted["LQ_HELLO"]["sent"] > 0
        assert counted["LQ_TC"]["received_bytes"] > 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen("http://127.0.0.1:9090/nothing", timeout=5)
        assert bare(9090, b"/" + b"x" * 100_000).startswith(b"error: 413")

    with running(line, *NODES):
        eventually(lambda: OVER_TWO_HOPS in ours(line, "n01"), "a route over two hops")
        inside(line, "n01", scenario)


def test_a_second_daemon_is_refused_and_does_no_harm(line: Mark) -> None:
    with running(line, *NODES[:2]):
        eventually(lambda: len(ours(line, "n01")) == 1, "a route")
        second = start(line, "n01", "--jsoninfo-port", "0", "--txtinfo-port", "0", "--netjson-port", "0")
        out, err = second.communicate(timeout=20)
        assert (second.returncode, out) == (1, "")
        assert err == "olsr: UDP port 698 on wlan0 is in use: another OLSR daemon runs there\n"
        assert len(ours(line, "n01")) == 1
        elsewhere = start(line, "n01", interface="ctl0")
        out, err = elsewhere.communicate(timeout=20)
        assert elsewhere.returncode == 1
        assert err == "olsr: port 9090 of 127.0.0.1 cannot be used for queries: Address already in use\n"
        assert len(ours(line, "n01")) == 1


def test_an_interface_may_go_and_come_back(line: Mark) -> None:
    with running(line, *NODES[:2]) as daemons:
        eventually(lambda: len(ours(line, "n01")) == 1 and len(ours(line, "n02")) == 1, "routes")
        ip(line, "n01", "link", "set", "wlan0", "down")
        eventually(lambda: len(ours(line, "n02")) == 0, "that n01 is forgotten")
        ip(line, "n01", "link", "set", "wlan0", "up")
        eventually(lambda: len(ours(line, "n01")) == 1 and len(ours(line, "n02")) == 1, "routes again")
        status, _, err = stop(daemons["n01"])
        assert status == 0
        assert "olsr: wlan0: Network is " in err
        assert "olsr: wlan0 is back\n" in err
        assert err.count("\n") <= 3, "once, not with every packet"


def test_without_routes_it_only_looks(line: Mark) -> None:
    first, second = start(line, "n01", "--no-routes"), start(line, "n02", "--no-routes", "--log")
    try:
        assert second.stdout is not None
        assert "+ 10.0.0.1 dev wlan0" in second.stdout.readline()
        assert ours(line, "n02") == []
    finally:
        for daemon in (first, second):
            daemon.kill()
            daemon.communicate()


def test_without_root_there_is_one_clear_error(line: Mark) -> None:
    powerless = ("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all")
    program = (sys.executable, "-m", "node_agent.olsr", "-i", "wlan0")
    for more, reason in (
        ((), "changing the kernel's routes needs root"),
        (("--no-routes",), "UDP port 698 on wlan0 needs root"),
    ):
        done = subprocess.run(
            command(line, "n01", *powerless, *program, *more), capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"olsr: {reason}")
        assert done.stderr.count("\n") == 1


def test_an_interface_that_is_pulled_out_is_used_again_when_it_is_back(line: Mark) -> None:
    def plug_in() -> None:
        ip(line, "n01", "link", "add", "mesh0", "type", "veth", "peer", "name", "mesh1")
        ip(line, "n01", "address", "add", "10.9.0.1/32", "dev", "mesh0")
        for end in ("mesh0", "mesh1"):
            ip(line, "n01", "link", "set", end, "up")

    def listen() -> socket.socket:
        hearing = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        hearing.bind(("mesh1", 0))
        hearing.settimeout(PATIENCE_S)
        return hearing

    plug_in()
    daemon = start(line, "n01", "--network", "10.9.0.0/16", interface="mesh0")
    try:
        assert daemon.stderr is not None
        with inside(line, "n01", listen) as hearing:
            packet = hearing.recv(2048)
            assert packet[1] == 0xC0
            assert socket.inet_ntoa(packet[12:16]) == "10.9.0.1"
            assert socket.inet_ntoa(packet[16:20]) == "255.255.255.255"
            assert int.from_bytes(packet[22:24], "big") == 698
        ip(line, "n01", "link", "del", "mesh0")
        assert daemon.stderr.readline().endswith(": it is tried again\n")
        plug_in()
        with inside(line, "n01", listen) as hearing:
            assert socket.inet_ntoa(hearing.recv(2048)[12:16]) == "10.9.0.1"
        assert daemon.stderr.readline() == "olsr: mesh0 is back\n"
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(timeout=10) == 0
    finally:
        daemon.kill()
        daemon.communicate()
