"""`rove serve --prometheus` as users start it: with a token, and twice."""

import subprocess
from pathlib import Path

from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.prometheus.served import Served
from tests.synthetic_runs import known_run
from tests.unit.rove_process import PATIENCE_S, command, environment


def test_with_a_token_targets_appear_and_samples_come(tmp_path: Path) -> None:
    writer = known_run(tmp_path, run="k1")
    writer.own_clocks(
        dict.fromkeys(("n1", "n2", "n3", "n9"), (0.0, 0.0)), 0
    )  # in virtual time nobody is asked
    run = RunDirectory(writer.write())
    run.journal.unlink(missing_ok=True)
    with Journal.create(run.journal), Served(environment(tmp_path), "--token") as served:
        assert len(served.token) >= 32 and served.login is not None
        served.wait_for('rove_run_info{run="k1", job="rove"}', "samples of the run")
        targets = served.api("targets", state="active")["activeTargets"]
        assert {each["labels"]["instance"] for each in targets} >= {"k1", "k1/n1", "k1/n2"}
        assert not [each["lastError"] for each in targets if "401" in each["lastError"]]
        assert served.get(served.port, "/api/runs")[0] == 200, "the owner is not locked out"
        assert served.query('count_over_time(up{instance="k1"}[1m]) > 0')

        second = subprocess.run(
            command("serve", "--prometheus", "--port", "0"),
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert second.returncode != 0
        assert second.stderr.count("another Prometheus of rove serve uses") == 1
        assert "Traceback" not in second.stderr
        assert served.query("vector(1)"), "the first one goes on"
