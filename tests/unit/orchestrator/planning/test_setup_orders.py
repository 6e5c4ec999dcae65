"""From a topology file to what each real node is told about its network."""

from pathlib import Path

from node_agent.host.setup.order import Ibss, Lan, Mesh, SetupOrder, ShapedLink
from orchestrator.planning.load import load_topology
from orchestrator.planning.setup_orders import setup_order, shapes_links
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.topology import Topology

LAB = """
name: lab
nodes: [n01, n02, n03, n04]
area: 100 m x 100 m
mobility: {model: static, positions: {n01: [0, 0], n02: [10, 0], n03: [20, 0], n04: [30, 0]}}
defaults: {user: pi, interface: eth0, setup: lan}
hosts:
  n01: {host: 192.168.1.21}
  n02: {host: 192.168.1.22, setup: {mode: ibss, channel: 36, bssid: "02:AA:00:00:00:01"}, interface: wlan0}
  n03: {host: 192.168.1.23, setup: {mode: mesh, ssid: ours, channel: 14, prefix: 24}, daemon: running}
  n04: {host: 192.168.1.24, setup: configured}
"""
LINKS = """
links:
  others: none
  pairs:
    - {between: [n01, n02], loss: 10%, rate: 2 Mb/s, delay: 5 ms}
    - {between: [n02, n03], one_way: true, loss: 0.3}
    - {between: [n03, n02], one_way: true, rate: 1 Mb/s}
    - {between: [n03, n04]}
"""
HARDWARE = {f"n{number:02}": f"02:00:00:00:00:{number:02x}" for number in range(1, 5)}


def topology(text: str, folder: Path) -> Topology:
    path = folder / "lab.yaml"
    path.write_text(text)
    return load_topology(path)


def test_modes(tmp_path: Path) -> None:
    lab = topology(LAB, tmp_path)
    orders = [setup_order(lab, node, {}, "r1") for node in lab.node_names]
    assert orders == [
        SetupOrder("r1", "eth0", "10.77.0.1/16", Lan(), True),
        SetupOrder("r1", "wlan0", "10.77.0.2/16", Ibss("rove", 5180, "02:aa:00:00:00:01"), True),
        SetupOrder("r1", "eth0", "10.77.0.3/24", Mesh("ours", 2484), True),
        None,
    ]
    assert not shapes_links(lab)
    assert [node.daemon for node in lab.real_nodes().values()] == ["start", "start", "running", "start"]


def test_links_in_words(tmp_path: Path) -> None:
    links = topology(LAB + LINKS, tmp_path).links
    assert links is not None
    assert links.summary() == (
        "n01 – n02 (loss 10%, 2 Mb/s, 5 ms); n02 → n03 (loss 30%); n03 → n02 (1 Mb/s); "
        "n03 – n04 (as the LAN); all others: none"
    )


def test_losses_belong_to_who_receives_and_rates_to_who_sends(tmp_path: Path) -> None:
    lab = topology(LAB + LINKS, tmp_path)
    assert shapes_links(lab)
    shaped = {
        node: {link.node: (link.loss, link.rate, link.delay) for link in order.links}
        for node in lab.node_names
        if (order := setup_order(lab, node, HARDWARE, "r1")) is not None
    }
    nothing = (1.0, None, 0.0)
    assert shaped == {
        "n01": {"n02": (0.1, 2e6, 0.005), "n03": nothing, "n04": nothing},
        "n02": {"n01": (0.1, 2e6, 0.005), "n04": nothing},
        "n03": {"n01": nothing, "n02": (0.3, 1e6, 0.0)},
        "n04": {"n01": nothing, "n02": nothing},
    }


def test_a_configured_node_is_only_given_its_links(tmp_path: Path) -> None:
    lab = topology(LAB + LINKS, tmp_path)
    known = {"n01": HARDWARE["n01"]}  # the others could not be reached
    link = ShapedLink("n01", HARDWARE["n01"], 1.0)
    assert setup_order(lab, "n04", known, "r1") == SetupOrder("r1", "eth0", links=(link,))
    assert setup_order(lab, "n04", {}, "r1") is None


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    lab = topology(LAB + LINKS, tmp_path)
    assert topology(to_yaml(lab.model_dump(mode="json")), tmp_path) == lab
