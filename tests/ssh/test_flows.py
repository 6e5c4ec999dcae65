"""Flows between machines that are reached over SSH: deployed, run over their radios, collected."""

from pathlib import Path
from typing import Any

import pytest

from node_agent.telemetry.segments import read_records
from tests.ssh.drill import TEST_S, Drill
from tests.ssh.lab import Lab

pytestmark = pytest.mark.timeout(TEST_S)

FLOWS = [
    {"name": "video", "from": "n01", "to": "n02", "rate": "64 kb/s", "size": "512 B"},
    {"name": "file", "from": "n02", "to": "n01", "protocol": "tcp", "bytes": "50 kB", "size": "1000 B"},
]


def last(segments: Path, kind: str, flow: str) -> dict[str, Any]:
    found = [each for each in read_records(segments) if each["kind"] == kind and each["flow"] == flow]
    assert found, f"no {kind} of {flow}"
    return found[-1]


def test_flows_beside_a_query(standing_lab: Lab) -> None:
    with Drill(standing_lab, "flows", flows=FLOWS, duration="5s") as drill:
        drill.finish()
    segments = drill.run.segments
    sent, received = (
        last(segments("n01"), "flow_sent", "video"),
        last(segments("n02"), "flow_received", "video"),
    )
    assert sent["packets"] > 30 and received["packets"] >= 0.8 * sent["packets"], (sent, received)
    done, whole = last(segments("n02"), "flow_sent", "file"), last(segments("n01"), "flow_received", "file")
    assert done["acknowledged"] == whole["bytes"] == 50_000
    assert drill.delivered(standing_lab.node("n03")) > 0
