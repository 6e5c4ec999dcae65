"""A power cut loses everything that was not synced. Rove must not rely on anything that is gone."""

import signal
from random import Random

from benchmarks.drilling.checks import check_left, flaws, verdict_of
from benchmarks.drilling.disk import Disk, hooked
from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import MOMENTS_OF_LOSS, Moment, come
from benchmarks.drilling.settling import follow_up
from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.errors import EXIT_OK
from orchestrator.runs import processes
from orchestrator.runs.run_directory import RunDirectory


def power_loss(drill: Drill) -> None:
    """Cuts the power in each phase in turn, and after the end; every other time the disk had written some of
    the rest.
    """
    moment = MOMENTS_OF_LOSS[drill.number % len(MOMENTS_OF_LOSS)]
    backend = "sim" if drill.number % 3 == 2 else "netns"
    lose_power(drill, moment, backend, drill.dice if drill.number % 2 else None)


def lose_power(drill: Drill, moment: Moment | None, backend: str, torn: Random | None) -> None:
    """Cuts the power. ``moment``: None means after the end."""
    drill.note(f"{backend}: power lost at {moment or 'the end'}, {'torn' if torn else 'strictly'}")
    disk = forgetful_disk(drill)
    run = drill.run
    process = drill.start_run(drill.experiment(backend=backend), env=hooked(drill, **disk.variable))
    if moment is not None and come(drill, run, moment, process) and process.poll() is None:
        process.send_signal(signal.SIGKILL)
    code = drill.wait(process)
    # A machine without power has no processes and no namespaces.
    processes.end(processes.marked(run.id, run.path), 0.0)
    network.down(Mark(run.id, run.path))
    cut_power(drill, disk, code, torn)
    check_aftermath(drill, run)


def forgetful_disk(drill: Drill) -> Disk:
    """Puts the runs directory on such a disk; it does not exist yet, as before the first run."""
    base = drill.folder / "disk"
    base.mkdir()
    drill.runs = base / "runs"
    return Disk(drill.folder / "shadow", base)


def cut_power(drill: Drill, disk: Disk, code: int, torn: Random | None) -> None:
    """Cuts the power. ``code``: the command's exit code before; if it said that a run is valid, that must
    stay true.
    """
    disk.cut_power(torn)
    verdict = verdict_of(drill.run)
    if code == EXIT_OK and verdict.get("verdict") != "valid":
        drill.found.lost.append(f"it had said valid, and now {verdict or 'nothing'}")


def check_aftermath(drill: Drill, run: RunDirectory) -> None:
    """Checks that the verbs work on what is left, and that valid runs are complete."""
    verbs: list[tuple[str, ...]] = [("status", "--json"), ("down", "--json"), ("status", "--json")]
    if run.journal.exists():
        verbs += [
            ("status", run.id),
            ("events", run.id),
            ("down", run.id),
            ("collect", run.id, "--no-analyze"),
        ]
        if drill.number % 10 == 9:
            verbs.append(("analyze", run.id))
    for verb in verbs:
        done = drill.rove(*verb)
        allowed = (0,) if verb[0] in ("status", "down", "events") else (0, 1, 2, 3)
        if done.returncode not in allowed:
            message = f"rove {' '.join(verb)}: exit code {done.returncode}: {done.stderr.strip()[-200:]}"
            drill.found.wrong_verdicts.append(message)
    check_left(drill, run)
    if verdict_of(run).get("verdict") == "valid":
        drill.found.lost.extend(f"valid, but {flaw}" for flaw in flaws(drill, run))
    elif run.journal.exists() and not verdict_of(run):
        drill.found.wrong_verdicts.append("no verdict after rove down")
    follow_up(drill)
