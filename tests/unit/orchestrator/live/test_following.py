"""Runs are followed while they go on: a simulation, and records of remote nodes that arrive bit by bit."""

import fcntl
import shutil
import time
from pathlib import Path

import pytest

from orchestrator.live.run import LiveRun
from orchestrator.live.state import State
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.unit.orchestrator.live.conftest import EXPERIMENT
from tests.unit.orchestrator.live.reading import of, read
from tests.unit.rove_process import finish, run_under_test, start, wait_for_phase

pytestmark = pytest.mark.timeout(120)


def test_a_simulation_is_followed_while_it_goes_on(tmp_path: Path) -> None:
    root, file = tmp_path / "runs", tmp_path / "watched.yaml"
    file.write_text(EXPERIMENT.replace("duration: 30s", "duration: 60s"))
    with run_under_test(root):
        process = start(root, file, "--no-analyze")
        run = RunDirectory(root / "watched" / "r1")
        wait_for_phase(run, "plan")
        live, found = LiveRun(run), list[Change]()
        while not live.ended:
            found += live.poll()
            time.sleep(0.02)
        assert finish(process)[0] == 0
    live.close()
    afterwards = read(run)
    seen, known = State(), State()
    seen.take(found)
    known.take(afterwards)
    for app, channel in (("", "node"), ("", "record"), ("", "link"), ("query", "total"), ("query", "route")):
        assert seen.of(channel, app) == known.of(channel, app), channel
    delivered = [sum(c.value["out"] for c in of(each, "rate", "screen/0")) for each in (found, afterwards)]
    assert delivered[0] == delivered[1]


def test_mirrored_records_give_way_to_collected_ones(watched: RunDirectory, tmp_path: Path) -> None:
    """As of a run on other machines: first there are copies, which grow, and at the end the whole record."""
    place = tmp_path / "runs" / "watched" / "r1"
    shutil.copytree(watched.path, place, ignore=shutil.ignore_patterns("nodes"))
    run = RunDirectory(place)
    manifest = run.manifest.read_text().replace('"backend": "sim"', '"backend": "ssh"')
    run.manifest.write_text(manifest)
    with run.journal.open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)  # so that it seems to go on
        live, found = LiveRun(run), list[Change]()
        segments = [p for p in watched.nodes.rglob("*.jsonl") if "b0001" in p.name]
        for share in (0.1, 0.5, 0.9):
            for path in segments:
                data = path.read_bytes()
                copy = run.temporary / "live" / path.relative_to(watched.nodes)
                copy.parent.mkdir(parents=True, exist_ok=True)
                with copy.open("ab") as file:
                    file.write(data[copy.stat().st_size : round(share * len(data))])
            for _ in range(2):
                live._follower.look()
                found += live.poll()
        half_way = len(of(found, "route"))
        assert half_way
        shutil.copytree(watched.nodes, run.nodes)
        shutil.rmtree(run.temporary)
    while not live.ended:
        live._asked = -10.0
        found += live.poll()
    seen, known = State(), State()
    seen.take(found)
    known.take(read(watched))
    for channel in ("record", "node"):
        assert seen.of(channel) == known.of(channel)
    assert seen.of("route", "query") == known.of("route", "query")
    assert len(of(found, "route")) > half_way
