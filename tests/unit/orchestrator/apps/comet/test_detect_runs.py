"""A whole run that detects events, in virtual time, with nodes that are killed, against the observer."""

import json
from pathlib import Path

import pytest

from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.grammar import parse
from node_agent.apps.comet.reference import detections
from node_agent.telemetry.segments import read_records
from tests.unit.rove_process import RUN_ID, rove, run_under_test, verdict

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

PATTERN = "and(smoke, heat, !drill; 20s)"
FILE = f"""
name: line
topology:
  name: ferry
  nodes: [base, ferry, north, south, idle]
  radio:
    model: contacts
    rate: 256 kb/s
    latency: 20 ms
    links:
      - {{between: [ferry, base], periodic: {{up: 20s, down: 20s, phase: 10s}}}}
      - {{between: [north, ferry], periodic: {{up: 15s, down: 20s}}}}
      - {{between: [south, ferry], periodic: {{up: 15s, down: 20s, phase: 18s}}}}
      - {{between: [idle, ferry], periodic: {{up: 15s, down: 20s}}}}
routing: none
backend: sim
detect:
  events:
    smoke: {{node: north, rate: 12 /min}}
    heat: {{node: south, rate: 2 /min}}
    drill: {{node: base, rate: 1 /min}}
    rain: {{node: idle, rate: 1 /min}}
  patterns:
    fire: {{pattern: "{PATTERN}", sink: base, tolerance: 10 min}}
faults: [{{at: 100s, for: 10s, crash: {{node: ferry}}}}, {{at: 160s, for: 5s, crash: {{node: north}}}}]
duration: 300s
seed: 3
"""


def test_agents_detect_what_an_omniscient_observer_sees(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(FILE)
    with run_under_test(tmp_path / "runs") as run:
        ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert verdict(run)["verdict"] == "valid"
        occurred, found, asked, until = set(), [], 0, 0
        for node in ("base", "ferry", "north", "south"):
            for record in read_records(run.segments(node)):
                until = max(until, record["t_ns"])
                if record["kind"] == "event_occurred":
                    start, end = record["start_ns"] / 1e9, record["end_ns"] / 1e9
                    occurred.add(Instance(start, end, record["event"], record["number"]))
                elif record["kind"] == "event_detected":
                    found.append(tuple(record["constituents"]))
                asked += record["kind"] == "event_asked"
        explained = rove(tmp_path / "runs", "explain", RUN_ID, "--event", "fire#1", "--json")
        assert explained.returncode == 0, explained.stderr
        steps = [step["text"] for step in json.loads(explained.stdout)["steps"]]
        assert sum("occurred" in text for text in steps) == 2 and steps[-1] == "detected"
        moment = rove(tmp_path / "runs", "explain", RUN_ID, "--at", "105s", "--json")
        assert moment.returncode == 0, moment.stderr
        told = json.loads(moment.stdout)
        assert told["patterns"][0]["pattern"] == "fire" and told["departures"] == []
        ferry = next(each for each in told["nodes"] if each["node"] == "ferry")
        assert {link["neighbour"] for link in ferry["links"]} == {"base", "north", "south"}
        late = rove(tmp_path / "runs", "explain", RUN_ID, "--at", "2 h")
        assert late.returncode == 2 and "has records until" in late.stderr
        anew = rove(tmp_path / "runs", "plan", str(file), "--measured", RUN_ID)
        assert anew.returncode == 0, anew.stderr
        assert "planned anew it costs" in anew.stdout and "assumed held" in anew.stdout
        unknown = rove(tmp_path / "runs", "explain", RUN_ID, "--event", "fire#9999")
        assert unknown.returncode == 2 and "fire was detected" in unknown.stderr
    true = {
        tuple(f"{each.event}#{each.number}" for each in one.constituents): one.end
        for one in detections(parse(PATTERN), occurred)
    }
    due = {keys for keys, end in true.items() if end <= until / 1e9 - 150}
    assert len(due) > 5 and asked > 0
    assert len(found) == len(set(found)) and set(found) <= set(true) and due <= set(found)
