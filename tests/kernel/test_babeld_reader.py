"""A real babeld on three nodes in a row, read over its local socket; and the kernel routes that it makes."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from node_agent.linkstate.babeld import BabeldReader
from node_agent.linkstate.kernel import KernelReader
from node_agent.linkstate.reader import LinkStateError, Reading
from orchestrator.backends.netns import names, syscalls

PATIENCE_S = 120.0
ADDRESSES = ("10.77.0.1", "10.77.0.2", "10.77.0.3")

pytestmark = pytest.mark.skipif(shutil.which("babeld") is None, reason="needs babeld")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=10)


def babeld(namespace: str, interfaces: tuple[str, ...], directory: Path) -> subprocess.Popen[bytes]:
    """Every link counts as wireless, so that its quality is measured; it announces its own address only."""
    options = [
        *("-S", str(directory / f"{namespace}.state"), "-I", "", "-c", "/dev/null", "-w", "-g", "33123"),
        *("-h", "0.5", "-M", "0", "-C", "skip-kernel-setup true"),
        *("-C", "redistribute local ip 10.77.0.0/24 eq 32 allow", "-C", "redistribute local deny"),
    ]
    with (directory / f"{namespace}.log").open("wb") as log:
        return subprocess.Popen(
            ["ip", "netns", "exec", namespace, "babeld", *options, *interfaces],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Namespaces of three nodes, each with a link to the next, and babeld running in them."""
    nodes = tuple(f"rove-test-{os.getpid()}-b{number}" for number in (1, 2, 3))
    daemons: list[subprocess.Popen[bytes]] = []
    made: list[str] = []
    try:
        for node in nodes:
            ip("netns", "add", node)
            made.append(node)
            ip("-n", node, "link", "set", "lo", "up")
        for left, right in pairwise(nodes):
            ip("link", "add", "right", "netns", left, "type", "veth", "peer", "name", "left", "netns", right)
        interfaces = (("right",), ("left", "right"), ("left",))
        for node, address, own in zip(nodes, ADDRESSES, interfaces, strict=True):
            for interface in own:
                ip("-n", node, "addr", "add", f"{address}/32", "dev", interface)
                ip("-n", node, "link", "set", interface, "up")
        for node, own in zip(nodes, interfaces, strict=True):
            daemons.append(babeld(node, own, tmp_path))
        yield nodes
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(10)
        for node in made:
            ip("netns", "del", node)


def read_in(node: str, make: Callable[[], BabeldReader | KernelReader]) -> Reading:
    def run() -> Reading:
        descriptor = names.open_namespace(names.HOST_NAMES / node)
        assert descriptor is not None
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        return asyncio.run(make().read())

    return syscalls.in_own_thread(run)


def settled(node: str, address: str, expected: Mapping[str, object]) -> dict[str, float]:
    """Costs once they are as expected, or when patience is over."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            row = read_in(node, BabeldReader).edges[address]
            costs = {to: edge.cost for to, edge in row.items()}
            if costs == expected or time.monotonic() > deadline:
                return costs
        except LinkStateError:  # it does not listen yet, or has found no interface
            if time.monotonic() > deadline:
                raise
        time.sleep(0.3)


def test_own_costs_of_every_node(chain: tuple[str, ...]) -> None:
    hops = {
        "10.77.0.1": {"10.77.0.2": 1, "10.77.0.3": 2},
        "10.77.0.2": {"10.77.0.1": 1, "10.77.0.3": 1},
        "10.77.0.3": {"10.77.0.1": 2, "10.77.0.2": 1},
    }
    for node, address in zip(chain, ADDRESSES, strict=True):
        # ETX 1 a link, once enough HELLOs have been counted; babeld smooths a little over it.
        expected = {to: pytest.approx(count, rel=0.2) for to, count in hops[address].items()}
        assert settled(node, address, expected) == expected
        kernel = read_in(node, partial(KernelReader, address, Path("/proc/thread-self/net/route")))
        assert {to: edge.hops for to, edge in kernel.edges[address].items()} == hops[address]
