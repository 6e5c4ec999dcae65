"""Whole runs with flows, in virtual time."""

from pathlib import Path

from node_agent.telemetry.segments import read_records
from tests.unit.flows_beside_a_query import FLOWS, check_flows, of
from tests.unit.rove_process import RUN_ID, experiment_file, rove, run_under_test, verdict


def test_flows_beside_a_query(tmp_path: Path) -> None:
    with run_under_test(tmp_path / "runs") as run:
        file = experiment_file(tmp_path, flows=FLOWS, backend="sim", warmup="1s", duration="10s")
        ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        check_flows(run)
        delivered = [r for r in read_records(run.segments("e")) if r["kind"] == "tuple_delivered"]
        assert {record["app"] for record in delivered} == {"query"}


def test_a_sink_that_crashes_goes_on_counting(tmp_path: Path) -> None:
    with run_under_test(tmp_path / "runs") as run:
        fault = {"at": "4s", "for": "2s", "crash": {"flow": "video"}}
        file = experiment_file(
            tmp_path, flows=FLOWS[:2], faults=[fault], backend="sim", warmup="0s", duration="15s"
        )
        ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
        assert ended.returncode == 2 and "the flow file begins at d" in ended.stderr
        file = experiment_file(
            tmp_path, flows=FLOWS[:1], faults=[fault], backend="sim", warmup="0s", duration="15s"
        )
        ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert verdict(run)["verdict"] == "valid"
        sent = of(run, "b", "flow_sent")["video"]["packets"]
        boots = {
            record["boot"]: record["packets"]
            for record in read_records(run.segments("d"))
            if record["kind"] == "flow_received"
        }
        assert sorted(boots) == [1, 2]
        assert 0.8 * sent < sum(boots.values()) < 0.9 * sent
