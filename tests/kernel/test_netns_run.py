"""The real command with the backend netns: whatever happens to it, data is kept and nothing else is left."""

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.runs import OF_THE_HOST
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import inspect, read_records
from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.marks import Mark
from orchestrator.runs.files import parse_lines
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import (
    RUN_ID,
    experiment_file,
    finish,
    marked,
    phases,
    rove,
    start,
    verdict,
    wait_for_phase,
    wait_until,
)

NODES = "abcde"
ENDLESS = "100000s"


def mark_of(run: RunDirectory) -> Mark:
    return Mark(run.id, run.path)


def root_of(run: RunDirectory) -> Path:
    return run.path.parent.parent


def assert_nothing_is_left(run: RunDirectory) -> None:
    assert network.leftovers(mark_of(run)) == []
    assert run.temporary_paths() == []


def own_reasons(run: RunDirectory) -> list[str]:
    return [reason for reason in verdict(run)["reasons"] if not reason.startswith(OF_THE_HOST)]


def records(run: RunDirectory, node: str, kind: str) -> list[dict[str, Any]]:
    told = tuple_by_tuple(read_records(run.segments(node)))
    return [record for record in told if record["kind"] == kind]


def processes_on(run: RunDirectory, node: str) -> list[int]:
    place = (names.HOST_NAMES / mark_of(run).namespace(node)).stat().st_ino
    found = []
    for pid in marked(run):
        try:
            if Path(f"/proc/{pid}/ns/net").stat().st_ino == place:
                found.append(pid)
        except OSError:
            continue
    return found


def test_a_run_from_file_to_verdict(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="1s", duration="8s")
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode in (0, 3), ended.stderr
    assert own_reasons(run) == []
    assert all(inspect(run.segments(node)).complete for node in NODES)
    manifest = json.loads(run.manifest.read_text())
    measured = range(manifest["measure_from_ns"], manifest["measure_until_ns"])
    assert 7.9e9 < len(measured) < 12e9
    # Ten a second over four hops, the first and the last perhaps cut off.
    delivered = [record for record in records(run, "e", "tuple_delivered") if record["t_ns"] in measured]
    assert len(delivered) >= 70
    assert {record["source"] for record in records(run, "a", "route_switch")} == {"ground_truth"}
    lateness = json.loads((run.radio / "lateness.json").read_text())
    assert lateness["deliveries"] > 4 * len(delivered)
    assert (verdict(run)["verdict"] == "invalid") == bool(verdict(run)["reasons"])
    positions = [json.loads(line) for line in (run.radio / "positions.jsonl").read_text().splitlines()]
    assert sum(record["t_ns"] in measured for record in positions) >= 7 * len(NODES)
    assert_nothing_is_left(run)
    assert_the_keys_are_in_the_files_of_their_agents_only(run)


def assert_the_keys_are_in_the_files_of_their_agents_only(run: RunDirectory) -> None:
    own = {node: run.path / "nodes" / node / "agent.json" for node in NODES}
    assert {file.stat().st_mode & 0o777 for file in own.values()} == {0o600}
    files = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    for node, file in own.items():
        for other, key in json.loads(file.read_text())["agent"]["keys"].items():
            assert {f for f, content in files.items() if key.encode() in content} == {file, own[other]}, node


def test_the_first_ctrl_c_stops_in_order(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration=ENDLESS)
    process = start(root_of(run), file, "--no-analyze")
    wait_for_phase(run, "measure")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130, err
    assert own_reasons(run) == ["interrupted by user"]
    assert phases(run)[-3:] == ["stop", "collect", "down"]
    assert all(inspect(run.segments(node)).complete for node in NODES)
    assert (run.radio / "lateness.json").exists()
    assert_nothing_is_left(run)


def test_the_second_ctrl_c_tears_down_at_once(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration=ENDLESS)
    process = start(root_of(run), file, "--no-analyze")
    wait_for_phase(run, "measure")
    (agent,) = processes_on(run, "c")
    os.kill(agent, signal.SIGSTOP)  # so that it cannot stop in order
    process.send_signal(signal.SIGINT)
    wait_for_phase(run, "stop")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130, err
    assert phases(run)[-2:] == ["stop", "down"]
    assert_nothing_is_left(run)


def test_an_agent_that_is_killed_fails_its_node_and_no_other(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration="6s")
    process = start(root_of(run), file, "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    wait_until(lambda: len(records(run, "e", "tuple_delivered")) > 5, "tuples arrive")
    (agent,) = processes_on(run, "c")  # hosts nothing: its kernel forwards on
    os.kill(agent, signal.SIGKILL)
    killed_ns = time.time_ns()
    code, _, err = finish(process)
    assert code == 1, err
    (measure,) = (reason for reason in own_reasons(run) if reason.startswith("measure failed"))
    assert measure.endswith("1 of 5 nodes did not come through (c: the agent was ended by SIGKILL)")
    assert any(record["t_ns"] > killed_ns + 1e9 for record in records(run, "e", "tuple_delivered"))
    assert [node for node in NODES if not inspect(run.segments(node)).complete] == ["c"]
    assert_nothing_is_left(run)


def test_an_agent_that_is_killed_on_purpose_comes_back_and_spoils_nothing(
    tmp_path: Path, run: RunDirectory
) -> None:
    dies = {"at": "2s", "for": "2s"}
    target = {"operator": "detect", "replica": 0}
    faults = [{**dies, "crash": target}, {**dies, "silence": target}, {"at": "6s", "crash": {"node": "d"}}]
    file = experiment_file(tmp_path, backend="netns", warmup="1s", duration="7s", faults=faults)
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode in (0, 3), ended.stderr
    assert own_reasons(run) == []
    events = parse_lines(run.events.read_bytes())
    done = [(event["action"], event["node"]) for event in events if event["kind"] == "fault"]
    assert done == [("silence", "b"), ("crash", "b"), ("unsilence", "b"), ("restart", "b"), ("crash", "d")]
    assert inspect(run.segments("b")).boots == 2
    assert [inspect(run.segments(node)).unclosed_boots for node in NODES] == [0, 1, 0, 1, 0]
    links = parse_lines((run.radio / "links.jsonl").read_bytes())
    assert {link["dst"]: link["up"] for link in links if link["src"] == "b"} == {"a": True, "c": True}
    assert {link["dst"] for link in links if link["src"] == "b" and not link["up"]} == {"a", "c"}
    assert_nothing_is_left(run)


def test_a_radio_that_dies_fails_the_run(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration=ENDLESS)
    process = start(root_of(run), file, "--no-analyze")
    wait_for_phase(run, "measure")
    for entry in map(json.loads, run.journal.read_text().splitlines()):
        if entry.get("what") == "radio":
            intent = entry["id"]
        elif entry["entry"] == "done" and "pid" in entry and entry["id"] == intent:
            os.kill(entry["pid"], signal.SIGKILL)
    code, _, err = finish(process)
    assert code == 1, err
    assert any(reason.startswith("measure broke: the radio ended") for reason in own_reasons(run))
    assert all(inspect(run.segments(node)).complete for node in NODES)
    assert_nothing_is_left(run)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_killed_at_random_moments_and_taken_down_nothing_is_left(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration=ENDLESS)
    moments = random.Random(3)
    for round_number, phase in enumerate(["plan", "up", "up", "converge", "measure"]):
        directory = RunDirectory(run.path.with_name(f"{RUN_ID}-{round_number}"))
        process = start(root_of(run), file, "--no-analyze", run_id=directory.id)
        wait_for_phase(directory, phase)
        time.sleep(moments.uniform(0, 0.6 if phase == "up" else 0.1))
        process.kill()
        finish(process)
        down = rove(root_of(run), "down")
        assert down.returncode == 0, down.stdout + down.stderr
        assert "nothing is left" in down.stdout
        assert verdict(directory)["reasons"][0].startswith("orchestrator died")
        assert_nothing_is_left(directory)
    assert "Nothing to do" in rove(root_of(run), "down").stdout


def test_down_cleans_up_when_nobody_else_can(tmp_path: Path, run: RunDirectory) -> None:
    """The owner, the fork server and the radio are all gone before they could clean up after each other."""
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration=ENDLESS)
    process = start(root_of(run), file, "--no-analyze")
    wait_for_phase(run, "measure")
    helpers = marked(run)
    for pid in helpers:
        os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.wait()
    for pid in helpers:
        os.kill(pid, signal.SIGKILL)
    finish(process)
    kinds = {entry.kind for entry in network.leftovers(mark_of(run))}
    assert "namespace" in kinds
    down = json.loads(rove(root_of(run), "down", "--json").stdout)
    assert [removal["left"] for removal in down["runs"]] == [[]]
    assert_nothing_is_left(run)
