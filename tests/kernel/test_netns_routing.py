"""Routing daemons in namespaces, over the emulated radio: they converge, the query flows, they are gone."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import read_records
from orchestrator.backends.netns import network
from orchestrator.backends.netns.daemons import LOG
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle import teardown
from orchestrator.runs import run_directory
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.services.olsrd import OlsrdService
from orchestrator.services.olsrd2 import Olsrd2Service
from tests.kernel.test_netns_by_hand import LINE, PING, up
from tests.kernel.test_netns_run import own_reasons, processes_on
from tests.unit.rove_process import (
    RUN_ID,
    experiment_file,
    finish,
    phases,
    rove,
    start,
    wait_for_phase,
    wait_until,
)

pytestmark = pytest.mark.timeout(120)

NODES = "abcde"
NEEDS_BABELD = pytest.mark.skipif(shutil.which("babeld") is None, reason="needs babeld")
NEEDS_OLSRD = pytest.mark.skipif(
    any(each.lacking for each in OlsrdService.executables), reason="needs olsrd and its jsoninfo plug-in"
)
NEEDS_OLSRD2 = pytest.mark.skipif(
    any(each.lacking for each in Olsrd2Service.executables), reason="needs olsrd2"
)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "runs"
    yield root
    for left in run_directory.all_runs(root):
        if teardown.state_of(left) is not teardown.State.FINISHED:
            teardown.tear_down(left, teardown.stop_orchestrator(left, patience=1.0))
        assert network.down(Mark(left.id, left.path)) == []


@pytest.fixture
def run(root: Path) -> RunDirectory:
    return RunDirectory(root / "line" / RUN_ID)


def records(run: RunDirectory, node: str, kind: str) -> list[dict[str, Any]]:
    told = tuple_by_tuple(read_records(run.segments(node)))
    return [record for record in told if record["kind"] == kind]


@pytest.mark.parametrize(
    ("protocol", "source", "more"),
    [
        ("olsr", "olsrd_jsoninfo", {}),
        ("aodv", "aodv", {}),
        ("olsr", "olsrd_jsoninfo", {"authentication": True}),
        ("olsr", "olsrd_jsoninfo", {"quality": "fast"}),
        ("aodv", "aodv", {"authentication": True}),
        pytest.param("babel", "babeld", {}, marks=NEEDS_BABELD),
        pytest.param("olsrd", "olsrd_jsoninfo", {}, marks=NEEDS_OLSRD),
        pytest.param("olsrd", "olsrd_jsoninfo", {"metric": "hops"}, marks=NEEDS_OLSRD),
        pytest.param("olsrd2", "oonf", {}, marks=NEEDS_OLSRD2),
    ],
)
def test_it_finds_the_ways_and_the_query_flows(
    tmp_path: Path, root: Path, run: RunDirectory, protocol: str, source: str, more: dict[str, Any]
) -> None:
    routing = {"protocol": protocol, **more}
    file = experiment_file(tmp_path, backend="netns", routing=routing, warmup="2s", duration="6s")
    ended = rove(root, "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=100)
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    assert own_reasons(run) == []
    assert {record["source"] for record in records(run, "a", "link_cost")} == {source}
    assert len(records(run, "e", "tuple_delivered")) > 40
    assert (run.path / "nodes" / "c" / LOG).stat().st_size < 100_000
    if protocol in ("olsr", "aodv"):  # others do not say what they send
        counted = records(run, "c", "routing_overhead")
        assert {record["protocol"] for record in counted} == {protocol}
        assert counted[-1]["sent_bytes"] > 0
        assert any(record["message"] == "SEAL" for record in counted) == ("authentication" in more)
        assert any(record["message"] == "GREETING" for record in counted) == ("quality" in more)
        assert records(run, "c", "refused") == []
        config = run.path / "nodes" / "c" / f"{protocol}.json"
        assert config.stat().st_mode & 0o777 == 0o600
    assert network.leftovers(Mark(run.id, run.path)) == []


def test_a_daemon_that_is_killed_fails_its_node(tmp_path: Path, root: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", routing="olsr", warmup="0s", duration="4s")
    process = start(root, file, "--no-analyze")
    wait_for_phase(run, "measure")
    # Of the two programs on the node, the daemon is the one that was started first.
    daemon, _agent = sorted(processes_on(run, "c"))
    os.kill(daemon, signal.SIGKILL)
    code, _, err = finish(process)
    assert code == 1, err
    (measure,) = (reason for reason in own_reasons(run) if reason.startswith("measure failed"))
    assert measure.endswith(
        "1 of 5 nodes did not come through (c: the routing daemon (olsr) was ended by SIGKILL)"
    )
    assert network.leftovers(Mark(run.id, run.path)) == []


def test_who_does_not_converge_in_time_is_named(tmp_path: Path, root: Path, run: RunDirectory) -> None:
    routing = {"protocol": "olsr", "hello": "20s", "hello_validity": "60s"}
    limits = {"converge": "5s"}
    file = experiment_file(tmp_path, backend="netns", routing=routing, timeouts=limits, duration="4s")
    ended = rove(root, "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode in (1, 3), ended.stderr
    (converge,) = (reason for reason in own_reasons(run) if reason.startswith("converge failed"))
    assert "(a: routing knows no way to 4 of 4 nodes (b, c, d, e); also b, c, d, e)" in converge
    assert "measure" not in phases(run)


def test_a_network_by_hand_with_a_routing_daemon(root: Path) -> None:
    document = up(root, "--routing", "olsr", "--run-id", "routed")
    addresses = {node["node"]: node["address"] for node in document["nodes"]}
    ping = (sys.executable, "-c", PING, addresses["e"])

    def answers() -> bool:
        return rove(root, "exec", "a", "--", *ping).returncode == 0

    wait_until(answers, "olsr finds the way from a to e")
    shown = rove(root, "exec", "a", "--", "ip", "-json", "route", "show", "proto", "83")
    assert {route["dst"] for route in json.loads(shown.stdout)} >= {addresses["c"], addresses["e"]}
    assert (
        json.loads(rove(root, "exec", "a", "--", "ip", "-json", "route", "show", "proto", "82").stdout) == []
    )
    run = RunDirectory(Path(document["directory"]))
    (daemon,) = processes_on(run, "c")
    os.kill(daemon, signal.SIGKILL)  # as people do, to see what the others make of it
    wait_until(lambda: "ended by SIGKILL" in rove(root, "events", "routed").stdout, "it is noticed")
    assert rove(root, "exec", "a", "--", "true").returncode == 0
    assert rove(root, "down").returncode == 0


def test_a_protocol_that_cannot_be_used_by_hand_is_refused_before_anything_is_there(root: Path) -> None:
    unknown = rove(root, "up", str(LINE), "--routing", "olrs")
    assert unknown.returncode == 2
    assert 'did you mean "olsr"?' in unknown.stderr
    assert not root.exists()
