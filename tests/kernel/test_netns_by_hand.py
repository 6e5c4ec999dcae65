"""A network without a run: `rove up`, `rove exec`, `rove down`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backends.netns import names, network, rootless
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle import teardown
from orchestrator.runs import journal as journals
from orchestrator.runs import run_directory
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import PATIENCE_S, command, environment, rove, wait_until

# Some of these start ten interpreters, one after the other.
pytestmark = pytest.mark.timeout(180)

LINE = Path(__file__).parents[2] / "topologies" / "line-5.yaml"

PING = """
import socket, sys
from ipaddress import IPv4Address
from tests.kernel.inside import answered, send_ping
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
icmp.settimeout(5)
send_ping(icmp, IPv4Address(sys.argv[1]))
sys.exit(0 if answered(icmp, IPv4Address(sys.argv[1])) else 1)
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "runs"
    yield root
    for left in run_directory.all_runs(root):
        if teardown.state_of(left) is not teardown.State.FINISHED:
            teardown.tear_down(left, teardown.stop_orchestrator(left, patience=1.0))
        assert network.down(Mark(left.id, left.path)) == []


def up(root: Path, *options: str) -> dict[str, Any]:
    brought_up = rove(root, "up", str(LINE), "--detach", "--json", *options)
    assert brought_up.returncode == 0, brought_up.stderr
    document: dict[str, Any] = json.loads(brought_up.stdout)
    return document


def directory_of(root: Path, run_id: str) -> RunDirectory:
    return RunDirectory(root / "line-5" / run_id)


def test_up_exec_and_down(root: Path) -> None:
    document = up(root, "--run-id", "first")
    addresses = {node["node"]: node["address"] for node in document["nodes"]}
    assert list(addresses) == ["a", "b", "c", "d", "e"]
    over_four_hops = rove(root, "exec", "a", "--", sys.executable, "-c", PING, addresses["e"])
    assert over_four_hops.returncode == 0, over_four_hops.stderr
    routes = rove(root, "exec", "a", "--run", "first", "--", "ip", "route", "show", "proto", "82")
    ways = {line.split()[0]: line.split()[1:3] for line in routes.stdout.splitlines()}
    assert ways == {
        addresses["b"]: ["dev", "wlan0"],
        **{addresses[far]: ["via", addresses["b"]] for far in "cde"},
    }
    down = rove(root, "down")
    assert (down.returncode, down.stdout) == (0, "first: stopped; nothing is left; data kept\n")
    run = directory_of(root, "first")
    assert network.leftovers(Mark(run.id, run.path)) == []
    assert not run.network.exists()
    assert "Nothing to do" in rove(root, "down").stdout
    nowhere = rove(root, "exec", "a", "--", "true")
    assert nowhere.returncode == 2 and "no network is up" in nowhere.stderr


def test_a_network_is_changed_by_hand(root: Path) -> None:
    document = up(root, "--run-id", "first")
    far = {node["node"]: node["address"] for node in document["nodes"]}["e"]

    def reaches() -> bool:
        return rove(root, "exec", "a", "--", sys.executable, "-c", PING, far).returncode == 0

    assert reaches()
    for words, done in (
        (["cut", "b", "c"], "link cut: b – c"),
        (["silence", "c"], "radio silent on c"),
        (["partition", "a,b"], "network split: a, b | the other 3"),
    ):
        told = rove(root, "set", "first", *words)
        assert (told.returncode, told.stdout.strip()) == (0, done), told.stderr
        assert not reaches()
        assert rove(root, "set", "first", "restore").stdout.strip() == f"restored: {done}"
        wait_until(reaches, "the routes are back")
    for words, message in (
        (["silence", "q"], 'there is no node "q"'),
        (["crash", "a"], "no agents run"),
        (["restore"], "nothing to restore"),
        (["explode"], "there is no action"),
    ):
        wrong = rove(root, "set", "first", *words)
        assert wrong.returncode == 2 and message in wrong.stderr
    assert rove(root, "down").returncode == 0
    run = directory_of(root, "first")
    events = [json.loads(line) for line in run.events.read_text().splitlines()]
    actions = [event["action"] for event in events if event["kind"] == "fault"]
    assert actions == ["cut", "mend", "silence", "unsilence", "partition", "heal"]
    assert not run.temporary.exists()
    ended = rove(root, "set", "first", "cut", "a", "b")
    assert ended.returncode == 2 and "run first has ended" in ended.stderr


def test_the_newest_network_is_meant_and_another_can_be_named(root: Path) -> None:
    for run_id in ("older", "newer"):
        up(root, "--run-id", run_id)

    def mark_on(*which: str) -> str:
        shown = rove(root, "exec", "a", *which, "--", "ip", "link", "show", "lo")
        return shown.stdout.rpartition("rove ")[2].split()[1]

    assert mark_on() == "newer"
    assert mark_on("--run", "older") == "older"
    unknown = rove(root, "exec", "z", "--", "true")
    assert unknown.returncode == 2 and "it has a, b, c, d, e" in unknown.stderr
    assert rove(root, "exec", "a", "--", "sh", "-c", "exit 7").returncode == 7
    assert rove(root, "down", "older").returncode == 0
    assert mark_on() == "newer"


def test_in_the_foreground_ctrl_c_takes_it_down(root: Path) -> None:
    process = subprocess.Popen(
        command("up", str(LINE), "--run-id", "here"),
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = directory_of(root, "here")
    wait_until(run.network.exists, "the network is up")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "10.77.0.5" in out and "rove exec a --" in out
    assert network.leftovers(Mark(run.id, run.path)) == []
    assert journals.is_closed(journals.read(run.journal))


def test_after_kill_9_of_its_owner_down_removes_it(root: Path) -> None:
    up(root, "--run-id", "orphan")
    run = directory_of(root, "orphan")
    owner = journals.owner(journals.read(run.journal))
    assert owner is not None
    subprocess.run(["kill", "-KILL", str(owner.pid)], check=True)
    wait_until(lambda: not journals.is_locked(run.journal), "the owner is gone")
    down = rove(root, "down")
    assert down.returncode == 0, down.stdout
    assert network.leftovers(Mark(run.id, run.path)) == []


def test_a_network_in_the_background_that_breaks_leaves_word(root: Path) -> None:
    up(root, "--run-id", "broken")
    run = directory_of(root, "broken")
    (radio,) = (entry["pid"] for entry in journals.read(run.journal) if entry.get("pid") and entry.get("id"))
    os.kill(radio, signal.SIGKILL)
    wait_until(lambda: journals.is_closed(journals.read(run.journal)), "the network is down")
    assert "the radio ended" in run.events.read_text()


def test_a_network_of_one_node_is_shown_as_well(root: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "lonely.yaml"
    mobility = "{model: static, grid: {columns: 1, spacing: 10 m}}"
    lonely.write_text(f"name: lonely\nnodes: [a]\narea: 10 m x 10 m\nmobility: {mobility}\n")
    brought_up = rove(root, "up", str(lonely), "--detach")
    assert brought_up.returncode == 0, brought_up.stderr
    assert "10.77.0.1" in brought_up.stdout
    assert "stopped; nothing is left" in rove(root, "down").stdout


def test_what_cannot_be_brought_up_says_why(root: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\n")
    refused = rove(root, "up", str(bad), "--detach")
    assert refused.returncode == 2 and "problem" in refused.stderr
    up(root, "--run-id", "taken")
    again = rove(root, "up", str(LINE), "--detach", "--run-id", "taken")
    assert again.returncode == 2 and "already exists" in again.stderr


def test_a_network_in_a_user_namespace_is_used_from_outside(root: Path) -> None:
    """As for a user who is not root, whom `rove` makes root of a namespace of their own."""
    inside = [sys.executable, "-m", rootless.__name__, "/run", *command("up", str(LINE), "--run-id", "mine")]
    run = directory_of(root, "mine")
    with subprocess.Popen(inside, env=environment(root), stdout=subprocess.DEVNULL) as process:
        wait_until(run.network.exists, "the network is up")
        assert not any(Mark(run.id, run.path).node_of(path.name) for path in names.HOST_NAMES.iterdir())
        pinged = rove(root, "exec", "a", "--", sys.executable, "-c", PING, "10.77.0.5")
        assert pinged.returncode == 0, pinged.stderr
        assert "nothing is left" in rove(root, "down").stdout
        assert process.wait(PATIENCE_S) == 0
