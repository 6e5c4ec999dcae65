import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from node_agent.host.kernel_routes import KernelRoutes, RoutesRefused
from node_agent.host.route_table import HostRoute
from orchestrator.backends.netns import network
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from tests.kernel.inside import inside, path_of

NODE = "n01"
NEIGHBOUR, FAR, NETWORK = "10.0.0.2", "10.0.0.3", "192.168.55.0/24"
DIRECT = HostRoute(None, "wlan0", 1)
OVER = HostRoute(NEIGHBOUR, "wlan0", 2)


@pytest.fixture
def node(mark: Mark) -> Iterator[Mark]:
    ends = network.up(numbered([NODE]), mark)
    yield mark
    for descriptor in ends.values():
        os.close(descriptor)


def ip(mark: Mark, *words: str) -> list[str]:
    """Lines of what `ip` says inside the node."""
    command = ["nsenter", f"--net={path_of(mark, NODE)}", "ip", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def ours(mark: Mark) -> list[str]:
    return ip(mark, "route", "show", "proto", "83")


def test_routes_come_change_and_go(node: Mark) -> None:
    said: list[str] = []

    def scenario() -> None:
        routes = KernelRoutes(["wlan0"], said.append)
        routes.claim()
        routes.replace({NEIGHBOUR: DIRECT, FAR: OVER, NETWORK: OVER})
        assert ours(node) == [
            "10.0.0.2 dev wlan0 scope link metric 2",
            "10.0.0.3 via 10.0.0.2 dev wlan0 metric 2 onlink",
            "192.168.55.0/24 via 10.0.0.2 dev wlan0 metric 2 onlink",
        ]
        routes.replace({FAR: HostRoute("10.0.0.9", "wlan0", 3), NETWORK: OVER})
        assert ours(node) == [
            "10.0.0.3 via 10.0.0.9 dev wlan0 metric 2 onlink",
            "192.168.55.0/24 via 10.0.0.2 dev wlan0 metric 2 onlink",
        ]
        routes.close()
        routes.close()
        assert ours(node) == []

    inside(node, NODE, scenario)
    assert said == []


def test_many_routes_are_installed(node: Mark) -> None:
    def scenario() -> None:
        routes = KernelRoutes(["wlan0"], pytest.fail)
        routes.claim()
        routes.replace({f"10.0.{high}.{low}": OVER for high in (1, 2) for low in range(1, 255)})
        assert len(ours(node)) == 508
        routes.close()
        assert ours(node) == []

    inside(node, NODE, scenario)


def test_a_crash_leaves_routes_that_the_next_one_removes(node: Mark) -> None:
    foreign = "10.0.0.77 via 10.0.0.2 dev wlan0 proto 82"
    ip(node, "route", "add", *foreign.split(), "onlink")
    other = ip(node, "route", "show")

    def crash() -> None:
        routes = KernelRoutes(["wlan0"], pytest.fail)
        routes.claim()
        routes.replace({FAR: OVER})

    inside(node, NODE, crash)
    assert len(ours(node)) == 1
    # Of another interface, and so of another daemon.
    ip(node, "route", "add", "10.0.0.88", "dev", "ctl0", "proto", "83")

    def next_one() -> None:
        routes = KernelRoutes(["wlan0"], pytest.fail)
        assert len(ours(node)) == 2, "nothing may be touched before it is certain that nobody else runs"
        routes.claim()
        assert ours(node) == ["10.0.0.88 dev ctl0 scope link"]
        routes.close()

    inside(node, NODE, next_one)
    ip(node, "route", "del", "10.0.0.88", "dev", "ctl0")
    assert ip(node, "route", "show") == other


def test_a_default_route_comes_back_with_the_interface_and_goes_in_the_end(node: Mark) -> None:
    """A gateway to everywhere (HNA 0.0.0.0/0): the kernel tells such a route without a destination."""
    anywhere = {NEIGHBOUR: DIRECT, "0.0.0.0/0": OVER}
    expected = ["default via 10.0.0.2 dev wlan0 metric 2 onlink", "10.0.0.2 dev wlan0 scope link metric 2"]

    def scenario() -> None:
        KernelRoutes(["wlan0"], pytest.fail).replace(anywhere)  # and crashes
        routes = KernelRoutes(["wlan0"], pytest.fail)
        routes.claim()
        assert ours(node) == []
        routes.replace(anywhere)
        for state in ("down", "up"):
            ip(node, "link", "set", "wlan0", state)
        routes.restore()
        assert ours(node) == expected
        routes.close()
        assert ours(node) == []

    inside(node, NODE, scenario)


def test_routes_of_a_killed_daemon_can_be_removed_without_it(node: Mark) -> None:
    ip(node, "route", "add", "10.0.0.7", "dev", "wlan0", "proto", "83")
    ip(node, "route", "add", "10.0.0.8", "dev", "wlan0", "proto", "84")
    command = [sys.executable, "-m", "node_agent.host.route_removal", "wlan0", "83"]
    for _ in range(2):
        subprocess.run(["nsenter", f"--net={path_of(node, NODE)}", *command], check=True, timeout=30)
    assert ours(node) == []
    assert ip(node, "route", "show", "proto", "84") == ["10.0.0.8 dev wlan0 scope link"]


def test_one_that_never_claimed_removes_nothing(node: Mark) -> None:
    def scenario() -> None:
        running = KernelRoutes(["wlan0"], pytest.fail)
        running.claim()
        running.replace({FAR: OVER})
        KernelRoutes(["wlan0"], pytest.fail).close()
        assert len(ours(node)) == 1
        running.close()

    inside(node, NODE, scenario)


def test_the_routes_of_others_are_never_replaced(node: Mark) -> None:
    said: list[str] = []
    ip(
        node,
        "route",
        "add",
        FAR,
        "via",
        "10.0.0.9",
        "dev",
        "wlan0",
        "metric",
        "2",
        "proto",
        "static",
        "onlink",
    )
    before = ip(node, "route", "show")

    def scenario() -> None:
        routes = KernelRoutes(["wlan0"], said.append)
        routes.claim()
        for gateway in (NEIGHBOUR, "10.0.0.4"):
            routes.replace({FAR: HostRoute(gateway, "wlan0", 2)})
            assert ip(node, "route", "show") == before
        routes.close()

    inside(node, NODE, scenario)
    assert said == ["10.0.0.3: a foreign route is there and stays"]
    assert ip(node, "route", "show") == before


def test_an_interface_that_goes_down_gets_its_routes_back(node: Mark) -> None:
    def scenario() -> None:
        routes = KernelRoutes(["wlan0"], lambda _: None)
        routes.claim()
        routes.replace({NEIGHBOUR: DIRECT, FAR: OVER})
        installed = ours(node)
        ip(node, "link", "set", "wlan0", "down")
        assert ours(node) == []
        ip(node, "link", "set", "wlan0", "up")
        routes.restore()
        assert ours(node) == installed
        routes.close()

    inside(node, NODE, scenario)


def test_an_interface_that_vanishes_is_reported_and_survived(node: Mark) -> None:
    said: list[str] = []

    def scenario() -> None:
        ip(node, "link", "add", "mesh0", "type", "bridge")
        ip(node, "link", "set", "mesh0", "up")
        routes = KernelRoutes(["mesh0", "wlan0"], said.append)
        routes.claim()
        wanted = {NEIGHBOUR: DIRECT, FAR: HostRoute(NEIGHBOUR, "mesh0", 2)}
        routes.replace(wanted)
        installed = ours(node)
        assert len(installed) == 2
        ip(node, "link", "del", "mesh0")
        routes.restore()
        routes.replace(wanted)
        assert said == ["mesh0 is gone: no routes over it until it is back"]
        assert len(ours(node)) == 1
        ip(node, "link", "add", "mesh0", "type", "bridge")
        ip(node, "link", "set", "mesh0", "up")
        routes.restore()
        assert ours(node) == installed
        routes.close()

    inside(node, NODE, scenario)


def test_who_may_not_is_told() -> None:
    program = "from node_agent.host.kernel_routes import *; KernelRoutes(['lo'], print)"
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            sys.executable,
            "-c",
            program,
        ],
        capture_output=True,
        text=True,
    )
    assert f"{RoutesRefused.__name__}: changing the kernel's routes needs root" in done.stderr
