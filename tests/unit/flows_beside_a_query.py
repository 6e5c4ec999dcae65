"""A query with flows as background load, on the experiment ``line``, and what must come of it."""

from typing import Any

from node_agent.apps.flows.events import Heard
from node_agent.telemetry.segments import read_records
from orchestrator.runs.run_directory import RunDirectory

FLOWS = [
    {"name": "video", "from": "b", "to": "d", "rate": "64 kb/s", "size": "512 B"},
    {"name": "file", "from": "d", "to": "b", "protocol": "tcp", "bytes": "100 kB", "size": "1000 B"},
    {"name": "talk", "from": "a", "to": "c", "rate": "64 kb/s", "size": "160 B", "on": "1s", "off": "1s"},
]


def of(run: RunDirectory, node: str, kind: str) -> dict[str, dict[str, Any]]:
    """The last record of a kind, by flow."""
    found = (record for record in read_records(run.segments(node)) if record["kind"] == kind)
    return {record["flow"]: record for record in found}


def check_flows(run: RunDirectory) -> None:
    """Nearly nothing is lost on a line whose nodes stand still; the transfer is whole."""
    for name, source, sink in (("video", "b", "d"), ("talk", "a", "c")):
        sent, received = of(run, source, "flow_sent")[name], of(run, sink, "flow_received")[name]
        assert sent["packets"] > 50 and sent["skipped"] == 0
        assert received["packets"] >= 0.9 * sent["packets"], (sent, received)
        delays = [Heard.of(row) for row in received["heard"]]
        assert all(0 < each.base_ns + each.least_ns < 1e9 for each in delays)
    sent, received = of(run, "d", "flow_sent")["file"], of(run, "b", "flow_received")["file"]
    assert sent["bytes"] == sent["acknowledged"] == received["bytes"] == 100_000
    assert {record["app"] for record in read_records(run.segments("b"))} >= {"", "query", "flows"}
