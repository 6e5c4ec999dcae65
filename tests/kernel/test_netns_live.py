"""A run in namespaces, watched while it goes on: its nodes' metrics, its radio, and its records."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from node_agent.agent import metrics
from node_agent.telemetry.metrics import Sample
from orchestrator.live.door import NotLive, node_metrics
from orchestrator.runs.files import parse_lines
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import assert_nothing_is_left, own_reasons, processes_on, root_of
from tests.unit.rove_process import experiment_file, finish, rove, start, wait_for_phase, wait_until


def asked(run: RunDirectory, node: str) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in asyncio.run(node_metrics(run, node, 5.0)):
        found.setdefault(sample.name, []).append(sample)
    return found


def test_a_live_run_answers_through_its_door(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration="9s")
    process = start(root_of(run), file, "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    samples = asked(run, "b")
    assert {sample.labels[0] for sample in samples[metrics.LINK_COST]} == {"a", "c"}
    assert samples[metrics.RECORDS][0].value > 0
    records = samples[metrics.RECORDS][0].value
    wait_until(lambda: asked(run, "b")[metrics.RECORDS][0].value > records, "more is recorded")
    with pytest.raises(NotLive, match="no such node"):
        asked(run, "z")
    positions = run.radio / "positions.jsonl"
    seen = len(positions.read_bytes())
    wait_until(lambda: len(positions.read_bytes()) > seen, "the radio's record can be followed")
    code, _, err = finish(process)
    assert code in (0, 3), err
    assert own_reasons(run) == []
    with pytest.raises(NotLive, match="it does not go on"):
        asked(run, "b")
    events = parse_lines(run.events.read_bytes())
    radio = [event for event in events if event["kind"] == "radio"]
    assert radio and radio[0]["p99_us"] >= 0 and 0 <= radio[0]["late_ratio"] <= 1
    assert not [event for event in events if event["kind"] in ("live", "monitor")]
    kinds = {json.loads(line)["kind"] for path in run.segments("b").iterdir() for line in path.open()}
    assert "neighbours" not in kinds, "the true links are known here"
    assert_nothing_is_left(run)


def test_a_run_that_was_changed_by_hand_says_so(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration="9s")
    process = start(root_of(run), file, "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    told = rove(root_of(run), "set", run.id, "silence", "c", "--for", "1s")
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == "radio silent on c, for 1 s"
    code, out, err = finish(process)
    assert code in (0, 3), err
    (done,) = json.loads(out)["interventions"]
    assert done.startswith("radio silent on c, by ")
    assert json.loads(run.verdict.read_text())["interventions"] == [done]
    assert own_reasons(run) == []
    events = [e for e in parse_lines(run.events.read_bytes()) if e["kind"] == "fault"]
    assert [(e["action"], e["node"]) for e in events] == [("silence", "c"), ("unsilence", "c")]
    assert_nothing_is_left(run)


def test_a_killed_agent_is_told_while_the_run_goes_on(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="0s", duration="6s")
    process = start(root_of(run), file, "--no-analyze", "--json")
    wait_for_phase(run, "measure")
    (agent,) = processes_on(run, "c")
    os.kill(agent, signal.SIGKILL)

    def told() -> bool:
        events = parse_lines(run.events.read_bytes())
        states = [(e["node"], e["status"]) for e in events if e["kind"] == "node"]
        return states == [("c", "failed")]

    wait_until(told, "the monitor sees it")
    assert process.poll() is None
    with pytest.raises(NotLive, match="no agent runs on c now"):
        asked(run, "c")
    assert asked(run, "b")
    finish(process)
    assert_nothing_is_left(run)
