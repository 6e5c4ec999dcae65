"""After a drill: runs the verbs that people would use then, the checks, and another run."""

import json
from collections.abc import Collection

from benchmarks.drilling.checks import (
    EXIT_CODES,
    Contents,
    check_kept,
    check_left,
    check_verdict,
    contents,
    own_reasons,
    records_of,
    verdict_of,
)
from benchmarks.drilling.drill import Drill
from orchestrator.runs.run_directory import RunDirectory

FOLLOWING = "following"


def settle(
    drill: Drill, run: RunDirectory, code: int, follow: bool = True, gone: Collection[str] = ()
) -> None:
    """Runs `rove status`, `rove down`, on real nodes `rove collect`, and all checks. Nothing recorded may
    vanish.

    ``gone``: nodes whose records the drill itself removed.
    """
    judged_before = bool(verdict_of(run))
    before = records_of(run)
    there = on_nodes(drill, run) if drill.lab is not None else {}
    status = drill.rove("status", "--json")
    listed = json.loads(status.stdout)["runs"] if status.returncode == 0 else None
    if listed is None:
        drill.found.wrong_verdicts.append(
            f"rove status: exit code {status.returncode}: {status.stderr[-200:]}"
        )
    if not run.journal.exists():  # it came too early to be a run
        drill.rove("down", "--json")
        check_left(drill, run)
    else:
        down = drill.rove("down", run.id, "--json")
        if down.returncode != 0:
            drill.found.leftovers.append(
                f"rove down: exit code {down.returncode}: {down.stdout[-300:]}{down.stderr}"
            )
        check_left(drill, run)
        check_verdict(drill, run, code, judged_before)
        check_kept(drill, before, records_of(run), "here")
    if "Traceback" in drill.stderr:
        drill.found.wrong_verdicts.append(f"rove run broke: {drill.stderr.strip().splitlines()[-1]}")
    if drill.lab is not None:
        check_ended(drill)
        fetch(drill, run, gone)
        kept = {name: data for name, data in there.items() if name.partition("/")[0] not in gone}
        check_kept(drill, kept, contents(run.nodes), "from nodes")
    if follow:
        follow_up(drill)


def check_ended(drill: Drill) -> None:
    """Checks that nothing runs on nodes after `rove down`; their records may stay."""
    assert drill.lab is not None
    left = [what for node in drill.lab.nodes for what in node.leftovers() if "file .rove/runs/" not in what]
    drill.found.leftovers.extend(f"after rove down: {what}" for what in left)


def on_nodes(drill: Drill, run: RunDirectory) -> Contents:
    """Returns what nodes have recorded, by node and file, named as they are stored here."""
    assert drill.lab is not None
    places = {
        node.name: node.home / ".rove" / "runs" / run.id / node.name / "record" for node in drill.lab.nodes
    }
    return {
        f"{node}/{name}": data for node, place in places.items() for name, data in contents(place).items()
    }


def fetch(drill: Drill, run: RunDirectory, gone: Collection[str] = ()) -> None:
    """Runs `rove collect`: everything must be here then, and nothing left there. ``gone``: nodes that lost
    their records.
    """
    assert drill.lab is not None
    before = {name: data for name, data in on_nodes(drill, run).items() if name.partition("/")[0] not in gone}
    if run.journal.exists():
        done = drill.rove("collect", run.id, "--no-analyze", "--json")
        expected = 1 if gone else EXIT_CODES.get(verdict_of(run).get("verdict", ""), None)
        if done.returncode != expected and not gone:
            output = f"{done.stdout[-300:]}{done.stderr[-300:]}"
            drill.found.wrong_verdicts.append(f"rove collect: exit code {done.returncode}: {output}")
        check_kept(drill, before, contents(run.nodes), "collected")
        check_verdict(drill, run, EXIT_CODES.get(verdict_of(run).get("verdict", ""), -1))
    drill.found.leftovers.extend(what for node in drill.lab.nodes for what in node.leftovers())


def follow_up(drill: Drill) -> None:
    """Checks that another run in the same directory works normally."""
    changes = {} if drill.lab else {"routing": "ground_truth", "warmup": "0 s", "duration": "1 s"}
    file = drill.experiment(FOLLOWING, **changes)
    done = drill.rove("run", file, "--run-id", FOLLOWING, "--no-analyze", "--json")
    run = RunDirectory(drill.run.path.with_name(FOLLOWING))
    check_verdict(drill, run, done.returncode)
    if done.returncode not in (0, 3) or own_reasons(run):
        drill.found.wrong_verdicts.append(f"the following run: {own_reasons(run) or done.stderr[-300:]}")
    check_left(drill, run)
