"""Flows over real kernels: as background load of a query, in namespaces."""

from pathlib import Path

from node_agent.telemetry.segments import inspect, read_records
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import NODES, assert_nothing_is_left, own_reasons, root_of
from tests.unit.flows_beside_a_query import FLOWS, check_flows
from tests.unit.rove_process import RUN_ID, experiment_file, rove


def test_flows_beside_a_query(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, flows=FLOWS, backend="netns", warmup="1s", duration="10s")
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode in (0, 3), ended.stderr
    assert own_reasons(run) == []
    assert all(inspect(run.segments(node)).complete for node in NODES)
    check_flows(run)
    delivered = [r for r in read_records(run.segments("e")) if r["kind"] == "tuple_delivered"]
    assert len(delivered) > 10
    assert_nothing_is_left(run)
