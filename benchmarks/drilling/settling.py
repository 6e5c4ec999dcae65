"""After the trouble: the verbs that people would use then, the checks, and whether another run works."""

import json

from benchmarks.drilling.checks import (
    check_kept,
    check_left,
    check_verdict,
    own_reasons,
    records_of,
    verdict_of,
)
from benchmarks.drilling.drill import Drill
from orchestrator.lifecycle.run_directory import RunDirectory

FOLLOWING = "following"


def settle(drill: Drill, run: RunDirectory, code: int, follow: bool = True) -> None:
    """`rove status`, `rove down`, and all checks; nothing that was recorded may vanish by that."""
    judged_before = bool(verdict_of(run))
    before = records_of(run)
    status = drill.rove("status", "--json")
    listed = json.loads(status.stdout)["runs"] if status.returncode == 0 else None
    if listed is None:
        drill.found.wrong_verdicts.append(f"rove status: exit code {status.returncode}: {status.stderr[-200:]}")
    if not run.journal.exists():  # it came too early to be a run
        drill.rove("down", "--json")
        check_left(drill, run)
    else:
        down = drill.rove("down", run.id, "--json")
        if down.returncode != 0:
            drill.found.leftovers.append(f"rove down: exit code {down.returncode}: {down.stdout[-300:]}{down.stderr}")
        check_left(drill, run)
        check_verdict(drill, run, code, judged_before)
        check_kept(drill, before, records_of(run), "here")
    if "Traceback" in drill.told:
        drill.found.wrong_verdicts.append(f"rove run broke: {drill.told.strip().splitlines()[-1]}")
    if follow:
        follow_up(drill)


def follow_up(drill: Drill) -> None:
    """Another run in the same directory works as if nothing had been."""
    changes = {} if drill.lab else {"routing": "ground_truth", "warmup": "0 s", "duration": "1 s"}
    file = drill.experiment(FOLLOWING, **changes)
    done = drill.rove("run", file, "--run-id", FOLLOWING, "--no-analyze", "--json")
    run = RunDirectory(drill.run.path.with_name(FOLLOWING))
    check_verdict(drill, run, done.returncode)
    if done.returncode not in (0, 3) or own_reasons(run):
        drill.found.wrong_verdicts.append(f"the following run: {own_reasons(run) or done.stderr[-300:]}")
    check_left(drill, run)
