"""A supervisor and its set-up on a LAN of namespaces: whichever is killed, the node is as it was before."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.host.marked_processes import marked
from node_agent.host.setup.order import Lan, SetupOrder, ShapedLink, to_json
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.order import Program, SupervisorOrder, Undo
from tests.kernel.lan import INTERFACE, LanNode, lan

pytestmark = pytest.mark.skipif(shutil.which("nft") is None, reason="needs nftables")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LanNode]]:
    with lan(["n01", "n02"], tmp_path) as made:
        made["n01"].sh("ip", "link", "set", INTERFACE, "up")
        yield made


@pytest.fixture
def place(nodes: dict[str, LanNode], tmp_path: Path) -> Path:
    place = tmp_path / "rove" / "runs" / "r1" / "n01"
    place.mkdir(mode=0o700, parents=True)
    node, peer = nodes["n01"], nodes["n02"]
    links = (ShapedLink(peer.name, peer.hardware, loss=1.0, rate=1e6),)
    file = place / "setup.json"
    file.write_bytes(to_json(SetupOrder("r1", INTERFACE, f"{node.address}/16", Lan(), True, links)))
    module = (sys.executable, "-m", "node_agent.host.setup")
    order = SupervisorOrder(
        run="r1",
        node="n01",
        protocol=PROTOCOL,
        lease=60.0,
        setup=Program("set-up", (*module, "--order", str(file)), "setup.log", privileged=True),
        services=(),
        agent=Program("agent", ("true",), "agent.log"),
        undo=Undo((*module, "--undo", str(file)), "setup.json.undo"),
    )
    (place / "order.json").write_bytes(msgspec.json.encode(order))
    return place


def supervise(node: LanNode, command: str, place: Path) -> dict[str, Any]:
    entered = ["ip", "netns", "exec", node.namespace, sys.executable, "-m", "node_agent.supervisor"]
    done = subprocess.run([*entered, command, str(place)], capture_output=True, timeout=60)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize(("killed", "was"), [("set-up", "running"), ("both", "dead")])
def test_a_killed_set_up_is_undone_when_the_run_is_ended(
    nodes: dict[str, LanNode], place: Path, killed: str, was: str
) -> None:
    node = nodes["n01"]
    before = node.state()
    supervisor = supervise(node, "start", place)["pid"]
    assert node.state() != before
    for process in marked("r1", place):  # the supervisor first, so that it cannot do anything about it
        if process.pid != supervisor or killed == "both":
            with suppress(ProcessLookupError):  # it may have ended with the supervisor
                os.kill(process.pid, signal.SIGKILL)
    said = supervise(node, "end", place)
    assert (said["was"], said["left"], said["trouble"]) == (was, [], "")
    assert node.state() == before
    assert not (place / "setup.json.undo").exists()


def test_what_could_not_be_given_back_is_in_the_exit_report(nodes: dict[str, LanNode], place: Path) -> None:
    node = nodes["n01"]
    supervise(node, "start", place)
    node.sh("ip", "address", "add", "10.9.9.9/24", "dev", INTERFACE)
    assert supervise(node, "end", place)["ended"]["trouble"] == [
        "set-up ended with status 1: not as before: eth0: address 10.9.9.9/24 is left"
    ]
