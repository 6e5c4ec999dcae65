"""A run in namespaces is followed while it goes on, and looks the same when it is read afterwards."""

import time
from pathlib import Path

import pytest

from orchestrator.live.run import LiveRun
from orchestrator.live.state import State
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.unit.rove_process import experiment_file, finish, start, wait_for_phase

PATIENCE_S = 120.0
PLACES = {"camera": ["a"], "detect": ["b", "c"], "recognise": ["d"], "screen": ["e"]}


@pytest.mark.timeout(180)
def test_a_run_is_seen_while_it_goes_on(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(
        tmp_path,
        backend="netns",
        replicas={"detect": 2, "recognise": 1},
        placement={"policy": "explicit", "nodes": PLACES},
        faults=[{"at": "3s", "for": "4s", "crash": {"node": "b"}}],
        warmup="2s",
        duration="12s",
    )
    process = start(run.path.parents[1], file, "--no-analyze")
    try:
        wait_for_phase(run, "up")
        live, state = LiveRun(run), State()
        found: list[Change] = []
        seen: dict[str, float] = {}
        until = time.monotonic() + PATIENCE_S
        while not live.ended and time.monotonic() < until:
            new = live.poll()
            state.take(new)
            found += new
            for change in new:
                seen.setdefault(f"{change.channel} {change.value}"[:40], time.monotonic())
            flows = state.of("rate", "query").get("screen/0", {}).get("out", 0) > 0
            if flows and process.poll() is None:
                seen.setdefault("delivers while it runs", time.monotonic())
            time.sleep(0.1)
        live.close()
    finally:
        code, _, err = finish(process)
    assert code in (0, 3), err
    assert live.ended
    assert "delivers while it runs" in seen
    channels = {change.channel for change in found}
    assert {"position", "link", "node", "phase", "host", "route", "rate", "latency", "total"} <= channels
    crashed = [c for c in found if c.channel == "node" and c.key == "b"]
    assert [c.value["state"] for c in crashed][:3] == ["ok", "crashed", "ok"]
    assert live.head["measure"] is not None
    _looks_the_same_afterwards(run, state)


def _looks_the_same_afterwards(run: RunDirectory, seen: State) -> None:
    again, later = LiveRun(run), State()
    while not again.ended:
        later.take(again.poll())
    for app, channel in (("", "node"), ("", "record"), ("", "link"), ("query", "total"), ("query", "route")):
        assert seen.of(channel, app) == later.of(channel, app), channel
