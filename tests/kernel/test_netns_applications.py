"""Two queries at once in network namespaces: each with its own sockets and records."""

from pathlib import Path

from node_agent.telemetry.segments import inspect
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import assert_nothing_is_left, own_reasons, root_of
from tests.unit.rove_process import RUN_ID, rove
from tests.unit.two_queries import NODES, SINKS, delivered, two_queries


def test_each_query_has_its_own_records(tmp_path: Path, run: RunDirectory) -> None:
    file = two_queries(tmp_path, backend="netns", duration="5s")
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode in (0, 3), ended.stderr
    assert own_reasons(run) == []
    assert all(inspect(run.segments(node)).complete for node in NODES)
    counts = delivered(run)
    assert set(counts) == set(SINKS.items())
    assert min(counts.values()) > 10  # of 120 and 30: a busy machine loses some
    assert_nothing_is_left(run)
