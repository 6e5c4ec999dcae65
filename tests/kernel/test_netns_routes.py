"""True routes in real kernels, while people do things to the interfaces."""

import os
import subprocess
from ipaddress import IPv4Address
from pathlib import Path

from orchestrator.backends.netns import network
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.routes import Routes
from tests.kernel.inside import inside, path_of

HOSTS = {"n01": IPv4Address("10.77.0.1"), "n02": IPv4Address("10.77.0.2"), "n03": IPv4Address("10.77.0.3")}
ALL = {here: {there: 1.0 for there in HOSTS if there != here} for here in HOSTS}


def test_an_interface_that_is_down_gets_all_its_routes_once_it_is_up(mark: Mark) -> None:
    ends = network.up(numbered(list(HOSTS)), mark)
    routes = Routes({node: path_of(mark, node) for node in HOSTS}, HOSTS)
    try:
        routes.install({**ALL, "n01": {"n02": 1.0}})
        _set_link(mark, "down")
        routes.install(ALL)
        _set_link(mark, "up")
        routes.install({**ALL, "n02": {"n01": 1.0}})
        assert {line.split()[1] for line in _host_routes(mark)} == {"02004D0A", "03004D0A"}
    finally:
        routes.close()
        for descriptor in ends.values():
            os.close(descriptor)


def _set_link(mark: Mark, state: str) -> None:
    inside(mark, "n01", lambda: subprocess.run(["ip", "link", "set", "wlan0", state], check=True))


def _host_routes(mark: Mark) -> list[str]:
    table = inside(mark, "n01", lambda: Path("/proc/thread-self/net/route").read_text())
    return [line for line in table.splitlines() if line.startswith("wlan0") and "4D0A" in line]
