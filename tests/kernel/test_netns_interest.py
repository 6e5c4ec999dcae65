"""An interest that moves with a vehicle, over links of namespaces: the same results as in virtual time."""

from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect, read_records
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.kernel.test_netns_run import assert_nothing_is_left, root_of
from tests.unit.orchestrator.apps.mcep.town import BROKERS, CARS, document
from tests.unit.rove_process import RUN_ID, rove, run_under_test


def delivered(run: RunDirectory, file: Path, backend: str) -> list[tuple[object, ...]]:
    cuts = {BROKERS: [["0s", "4s"], ["8s", "100s"]]}
    file.write_text(to_yaml(document({"stop": "12s"}, cuts, backend=backend, duration="22s")))
    # A busy machine may make the run invalid; what it delivers must be the same.
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=100)
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    assert all(inspect(run.segments(node)).complete for node in (*BROKERS, *CARS))
    found = [each for each in read_records(run.segments("car1")) if each["kind"] == "situation_found"]
    return [(each["epoch"], each["type"], each["at_ns"], *each["ancestors"]) for each in found]


@pytest.mark.timeout(150)
def test_namespaces_deliver_what_virtual_time_does(tmp_path: Path, run: RunDirectory) -> None:
    with run_under_test(tmp_path / "virtual") as virtual:
        in_virtual_time = delivered(virtual, tmp_path / "virtual.yaml", "sim")
    in_namespaces = delivered(run, tmp_path / "namespaces.yaml", "netns")
    assert in_namespaces == in_virtual_time and len(in_virtual_time) > 5
    assert_nothing_is_left(run)
