"""Real nodes in topology files: what is meant where little is said, and that secrets are never repeated."""

from pathlib import Path

import pytest

from orchestrator.planning.load import load_topology
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.inventory import Host, Profile
from orchestrator.spec.problems import BadSpec
from orchestrator.spec.setup import ConfiguredSetup

SECRET = "hunter2"
LAB = """
name: lab
nodes: [n01, n02, n03, n04]
area: 100 m x 100 m
mobility: {model: static, positions: {n01: [0, 0], n02: [10, 0], n03: [20, 0], n04: [30, 0]}}
defaults: {user: pi, key: ~/.ssh/lab, interface: wlan1}
hosts:
  n03: {host: 192.168.1.23, port: 2200, user: me, key: /keys/other, address: 10.0.0.3, jump: {host: gw2}}
  n01: {host: 192.168.1.21}
  n02: {host: phone.lab, profile: termux, jump: "lab@gw:2222", roles: [camera]}
"""


def test_entries_are_completed_by_defaults_profile_and_place(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    nodes = load_topology(path).real_nodes()
    assert list(nodes) == ["n01", "n02", "n03"]  # n04 is not a machine; the order is that of the nodes
    assert nodes["n01"].host == Host("n01", "192.168.1.21", 22, "pi", "~/.ssh/lab")
    assert nodes["n01"][1:] == ("wlan1", "10.77.0.1", (), ConfiguredSetup(), "start")
    gateway = Host("[gw]:2222", "gw", 2222, "lab", "~/.ssh/lab")
    assert nodes["n02"].host == Host("n02", "phone.lab", 8022, "pi", "~/.ssh/lab", gateway, Profile.TERMUX)
    assert nodes["n02"].roles == ("camera",)
    second = Host("gw2", "gw2", 22, "me", "/keys/other")
    assert nodes["n03"].host == Host("n03", "192.168.1.23", 2200, "me", "/keys/other", second)
    assert nodes["n03"].address == "10.0.0.3"


def test_what_is_written_is_read_back_and_says_no_more(tmp_path: Path) -> None:
    path, again = tmp_path / "lab.yaml", tmp_path / "again.yaml"
    path.write_text(LAB)
    topology = load_topology(path)
    document = topology.model_dump(mode="json")
    assert document["hosts"]["n01"] == {"host": "192.168.1.21"}
    assert document["defaults"] == {"user": "pi", "key": "~/.ssh/lab", "interface": "wlan1"}
    again.write_text(to_yaml(document))
    assert load_topology(again) == topology


@pytest.mark.parametrize(
    "entry",
    [
        f"{{host: 10.0.0.1, password: {SECRET}}}",
        f"{{host: 10.0.0.1, Passphrase: {SECRET}}}",
        f"{{host: 10.0.0.1, sudo_password: {SECRET}}}",
        f"{{host: 'pi:{SECRET}@10.0.0.1'}}",
        f"{{host: 10.0.0.1, user: 'pi:{SECRET}@x'}}",
        f"{{host: 10.0.0.1, jump: 'pi:{SECRET}@gw'}}",
        f"{{host: 10.0.0.1, jump: {{host: gw, password: {SECRET}}}}}",
        f'{{host: 10.0.0.1, key: "-----BEGIN OPENSSH PRIVATE KEY-----\\n{SECRET}"}}',
    ],
)
def test_secrets_are_refused_and_not_repeated(entry: str, tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB.replace("{host: 192.168.1.21}", entry))
    with pytest.raises(BadSpec) as raised:
        load_topology(path)
    assert SECRET not in str(raised.value) and SECRET not in repr(raised.value.problems)
    assert all(problem.path.startswith("hosts.n01") for problem in raised.value.problems)
