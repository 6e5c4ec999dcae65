"""Nodes on one switch: namespaces with an Ethernet interface each, and the set-up program run inside them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from node_agent.host.setup import order as orders
from node_agent.host.setup.order import SetupOrder
from orchestrator.backends.netns import syscalls

INTERFACE = "eth0"
T = TypeVar("T")
_NAMES = Path("/run/netns")
_WITHIN_S = 20.0


def sh(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_WITHIN_S)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class LanNode:
    name: str
    namespace: str
    hardware: str
    address: str
    directory: Path = field(repr=False)

    def sh(self, *argv: str) -> str:
        return sh("ip", "netns", "exec", self.namespace, *argv)

    def inside(self, function: Callable[[], T]) -> T:
        """What ``function`` returns in the node's namespace. Sockets it opens stay there."""

        def entered() -> T:
            descriptor = os.open(_NAMES / self.namespace, os.O_RDONLY)
            try:
                syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
            finally:
                os.close(descriptor)
            return function()

        return syscalls.in_own_thread(entered)

    def state(self) -> dict[str, Any]:
        """All that a set-up could have changed, told by the system's own programs."""
        table = json.loads(self.sh("nft", "-j", "list", "ruleset"))["nftables"][1:]
        sysctls = self.sh("sysctl", "-a", "-r", r"^net\.ipv4\.(ip_forward|conf\..*(redirect|forwarding))")
        links = json.loads(self.sh("ip", "-json", "address", "show"))
        for link in links:
            # Those of IPv6 come and go by themselves, in their own time.
            link["addr_info"] = [each for each in link["addr_info"] if each["family"] == "inet"]
            link.pop("operstate"), link.pop("qdisc")
        queues = json.loads(self.sh("tc", "-json", "qdisc", "show", "dev", INTERFACE))
        for queue in queues:
            queue["options"].pop("direct_packets_stat", None)  # counts on
        return {
            "links": links,
            "routes": json.loads(self.sh("ip", "-json", "-4", "route", "show", "table", "all")),
            "queues": queues,
            "filters": self.sh("tc", "filter", "show", "dev", INTERFACE),
            "rules": table,
            "sysctls": sysctls,
            "offloads": self.sh(sys.executable, "-m", "tests.kernel.offloads", INTERFACE),
        }

    def write_order(self, order: SetupOrder) -> Path:
        file = self.directory / f"{self.name}.json"
        file.write_bytes(orders.to_json(order))
        return file

    def begin(self, order: SetupOrder) -> "subprocess.Popen[str]":
        """Without waiting for it."""
        command = self._command("--order", self.write_order(order))
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def intended(self) -> int:
        """How many commands the way back has so far."""
        try:
            return len(json.loads((self.directory / f"{self.name}.json.undo").read_bytes())["undo"])
        except FileNotFoundError:
            return 0

    def start(self, order: SetupOrder, **variables: str) -> "Held":
        return Held(self._command("--order", self.write_order(order)), variables)

    def undo(self, **variables: str) -> dict[str, Any]:
        command = self._command("--undo", self.directory / f"{self.name}.json")
        environment = {**os.environ, **variables}
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, env=environment)
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def _command(self, action: str, file: Path) -> list[str]:
        entered = ["ip", "netns", "exec", self.namespace]
        return [*entered, sys.executable, "-m", "node_agent.host.setup", action, str(file)]


class Held:
    """A running set-up program; ``told`` is its first line."""

    def __init__(self, command: Sequence[str], variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
        )
        assert self.process.stdout is not None
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline())

    def end(self) -> dict[str, Any]:
        """By closing its standard input."""
        return self._last(self.process.communicate(timeout=_WITHIN_S)[0])

    def signal(self, number: int) -> dict[str, Any]:
        self.process.send_signal(number)
        assert self.process.stdout is not None
        told = self.process.stdout.read()
        self.process.wait(_WITHIN_S)
        return self._last(told)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=_WITHIN_S)

    def _last(self, told: str) -> dict[str, Any]:
        last: dict[str, Any] = json.loads(told.splitlines()[-1]) if told else {}
        return {**last, "status": self.process.returncode}


@contextmanager
def lan(names: Sequence[str], directory: Path) -> Iterator[dict[str, LanNode]]:
    """Their interfaces are down and have no addresses."""
    prefix = f"rove-lan-{os.getpid()}"
    made: list[str] = []
    try:
        for name in ("switch", *names):
            sh("ip", "netns", "add", f"{prefix}-{name}")
            made.append(f"{prefix}-{name}")
        switch = ("ip", "-n", f"{prefix}-switch")
        sh(*switch, "link", "add", "name", "br0", "up", "type", "bridge")
        nodes = {}
        for number, name in enumerate(names, start=1):
            hardware = f"02:00:00:00:01:{number:02x}"
            peer = ("peer", "name", INTERFACE, "address", hardware, "netns", f"{prefix}-{name}")
            sh(*switch, "link", "add", "name", f"port{number}", "type", "veth", *peer)
            sh(*switch, "link", "set", f"port{number}", "master", "br0", "up")
            sh("ip", "-n", f"{prefix}-{name}", "link", "set", "lo", "up")
            nodes[name] = LanNode(name, f"{prefix}-{name}", hardware, f"10.77.0.{number}", directory)
        yield nodes
    finally:
        for namespace in made:
            sh("ip", "netns", "delete", namespace)
