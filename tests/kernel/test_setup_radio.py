"""Ad-hoc and mesh mode on a real interface that `iw_double` takes for a radio, with a double of a manager."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node_agent.host.setup.order import Ibss, Mesh, SetupOrder
from tests.kernel import iw_double, nmcli_double
from tests.kernel.lan import INTERFACE, LanNode, lan

ADDRESS = "10.77.0.1/16"
IBSS = SetupOrder("r1", INTERFACE, ADDRESS, Ibss("our net", 2437, "02:12:34:56:78:9a"), True)
MESH = SetupOrder("r1", INTERFACE, ADDRESS, Mesh("our net", 5180), True)


@dataclass
class Station:
    """A node with a radio, an address and a route of its past."""

    node: LanNode
    directory: Path

    @property
    def variables(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.directory / "bin"), os.environ["PATH"]])
        state = {"IW_DOUBLE": str(self.directory / "iw"), "NMCLI_DOUBLE": str(self.directory / "nm")}
        return {"PATH": path, **state}

    def radio(self, **changes: object) -> dict[str, Any]:
        file = self.directory / "iw"
        state = json.loads(file.read_text()) if file.exists() else dict(iw_double.FRESH)
        if changes:
            file.write_text(json.dumps({**state, **changes}))
        return {key: value for key, value in {**state, **changes}.items() if key != "commands"}

    def commands(self) -> list[str]:
        told: list[str] = json.loads((self.directory / "iw").read_text())["commands"]
        return told


pytestmark = pytest.mark.skipif(shutil.which("nft") is None, reason="needs nftables")


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    with lan(["n01"], tmp_path) as nodes:
        node = nodes["n01"]
        node.sh("ip", "link", "set", INTERFACE, "up")
        node.sh("ip", "address", "add", nmcli_double.ADDRESS, "brd", "+", "dev", INTERFACE)
        node.sh("ip", "route", "add", "default", "via", "192.168.7.9", "metric", "600")
        (tmp_path / "bin").mkdir()
        for name, double in (("iw", iw_double), ("nmcli", nmcli_double)):
            program = tmp_path / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {double.__file__} "$@"\n')
            program.chmod(0o755)
        yield Station(node, tmp_path)


@pytest.mark.parametrize(
    ("order", "commands"),
    [
        (
            IBSS,
            [
                "dev eth0 set type ibss",
                "dev eth0 ibss join our net 2437 fixed-freq 02:12:34:56:78:9a",
                "dev eth0 set power_save off",
                "dev eth0 set power_save on",
                "dev eth0 ibss leave",
                "dev eth0 set type managed",
            ],
        ),
        (
            MESH,
            [
                "dev eth0 set type mp",
                "dev eth0 mesh join our net freq 5180 HT20",
                "dev eth0 set mesh_param mesh_fwding 0",
                "dev eth0 set power_save off",
                "dev eth0 set power_save on",
                "dev eth0 mesh leave",
                "dev eth0 set type managed",
            ],
        ),
    ],
)
@pytest.mark.parametrize("killed", [False, True])
def test_a_mode_and_the_way_back(
    station: Station, order: SetupOrder, commands: list[str], killed: bool
) -> None:
    node = station.node
    before, radio = node.state(), station.radio()
    held = node.start(order, **station.variables)
    assert held.told == {"ready": True, "notes": []}
    assert isinstance(order.radio, Ibss | Mesh)
    now = station.radio()
    assert (now["ssid"], now["frequency"], now["power_save"]) == ("our net", order.radio.frequency, "off")
    # Of the old network nothing is left that could draw traffic.
    (link,) = [link for link in node.state()["links"] if link["ifname"] == INTERFACE]
    assert [each["local"] for each in link["addr_info"]] == ["10.77.0.1"]
    assert node.sh("ip", "route", "show", "default") == ""
    if killed:
        held.kill()
        assert node.undo(**station.variables) == {"undone": True, "left": []}
    else:
        assert held.signal(signal.SIGTERM) == {"undone": True, "left": [], "status": 0}
    assert (node.state(), station.radio(), station.commands()) == (before, radio, commands)


def test_another_ad_hoc_network_is_joined_again(station: Station) -> None:
    was = station.radio(type="IBSS", ssid="theirs", frequency=2412, power_save="off")
    held = station.node.start(IBSS, **station.variables)
    assert station.radio()["ssid"] == "our net"
    assert held.end()["left"] == []
    assert station.radio() == was


def test_several_addresses_come_back_in_their_order(station: Station) -> None:
    """The kernel takes the later ones of a network away with the first, which is the one it sends from."""
    node = station.node
    for address in ("192.168.7.77/24", "192.168.8.1/24", "192.168.7.78/24"):
        node.sh("ip", "address", "add", address, "dev", INTERFACE)
    before = node.state()
    held = node.start(IBSS, **station.variables)
    assert held.told == {"ready": True, "notes": []}
    assert held.end()["left"] == []
    assert node.state() == before


def test_a_network_that_is_there_already_is_left_alone(station: Station) -> None:
    station.radio(type="IBSS", ssid="our net", frequency=2437, power_save="off")
    held = station.node.start(IBSS, **station.variables)
    assert held.told == {"ready": True, "notes": []}
    assert held.end()["left"] == []
    assert station.commands() == []


def test_a_radio_that_cannot_is_told_in_one_sentence(station: Station) -> None:
    before = station.node.state()
    refusals = {
        Ibss("a", 2484): "the radio of eth0 may not send on 2484 MHz here (disabled): use another channel",
        Ibss("a", 5260): "the radio of eth0 may not send on 5260 MHz here (no IR): use another channel",
        Ibss("a", 5500): "the radio of eth0 cannot be tuned to 5500 MHz: use another channel",
    }
    for radio, sentence in refusals.items():
        held = station.node.start(SetupOrder("r1", INTERFACE, ADDRESS, radio), **station.variables)
        assert held.told["error"].startswith(sentence)
        assert held.end() == {"status": 1}
    wired = station.node.start(IBSS)  # the real iw, which finds no radio
    assert wired.told["error"].startswith(("eth0 is not a wireless interface", "iw is not installed here"))
    wired.end()
    assert station.node.state() == before


def test_a_manager_lets_go_and_gets_back(station: Station) -> None:
    """NetworkManager counts where it runs in this network: that of another may know an eth0 as well."""
    node = station.node
    program = station.directory / "NetworkManager"
    shutil.copy("/bin/sleep", program)
    managed = station.directory / "nm"
    managed.write_text("yes")
    with subprocess.Popen([program, "60"]) as elsewhere:
        node.start(IBSS, **station.variables).end()
        assert managed.read_text() == "yes"
        elsewhere.kill()
    inside = ["ip", "netns", "exec", node.namespace, str(program), "60"]
    with subprocess.Popen(inside) as manager:
        held = node.start(IBSS, **station.variables)
        assert held.told == {"ready": True, "notes": []}
        assert managed.read_text() == "no"
        assert held.end() == {"undone": True, "left": [], "status": 0}
        assert managed.read_text() == "yes"
        assert nmcli_double.ADDRESS in node.sh("ip", "-4", "address", "show", "dev", INTERFACE)
        manager.kill()
