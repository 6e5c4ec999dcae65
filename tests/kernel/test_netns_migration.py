"""An operator with state moves in network namespaces while its agent is killed: nothing is lost."""

from pathlib import Path

from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import assert_nothing_is_left, own_reasons, records, root_of
from tests.unit.rove_process import RUN_ID, experiment_file, rove

STATE = 1_500_000
QUERY = {
    "operators": {
        "camera": {"kind": "synthetic_source", "rate": 10, "payload": "1 kB"},
        "detect": {"kind": "work", "after": "camera", "cpu": "2 ms"},
        "recognise": {"kind": "work", "after": "detect", "cpu": "2 ms", "state": STATE},
        "screen": {"kind": "sink", "after": "recognise"},
    }
}


def test_the_source_is_killed_while_state_is_copied(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(
        tmp_path,
        backend="netns",
        query=QUERY,
        migrations=[{"at": 2, "operator": "recognise", "to": "c"}],
        faults=[{"at": 3, "for": 2, "crash": {"node": "d"}}],
        warmup="0s",
        duration="25s",
    )
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode in (0, 3), ended.stderr
    assert own_reasons(run) == []
    steps = {node: [r["step"] for r in records(run, node, "migration")] for node in "cde"}
    assert steps["d"][0] == "began" and "took_over" in steps["c"]
    assert steps["e"] == ["ordered", "finished"]
    assert [r["size"] >= STATE for r in records(run, "c", "migration") if r["step"] == "took_over"] == [True]
    emitted = [r["tau"] for r in records(run, "a", "tuple_emitted")]
    delivered = [r["tau"] for r in records(run, "e", "tuple_delivered")]
    assert len(emitted) > 200
    assert delivered == list(range(1, len(delivered) + 1)), "lost, repeated or reordered"
    assert len(delivered) > len(emitted) - 20, "only what is under way at the end is missing"
    assert records(run, "c", "tuple_processed") and records(run, "d", "tuple_processed")
    assert not list(run.nodes.glob("*/kept"))
    assert_nothing_is_left(run)
