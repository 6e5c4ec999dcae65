"""Helpers of a run die or hang: fork server, radio, an agent, a routing daemon."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.drilling.checks import verdict_of
from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import Moment, come
from benchmarks.drilling.settling import settle
from orchestrator.runs import processes
from orchestrator.runs.run_directory import RunDirectory

NEEDED = ("up", "converge", "warm-up", "measure")
"""If a helper dies in one of these phases, the run is spoiled, whatever comes after."""


def _called(module: str) -> Callable[[int], bool]:
    return lambda pid: module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def _writes(log: str) -> Callable[[int], bool]:
    """Tells agents and daemons, which are forks of one server, apart by where they write."""
    return lambda pid: Path(f"/proc/{pid}/fd/2").readlink().name == log


_IS_AGENT, _IS_DAEMON = _writes("agent.log"), _writes("routing.log")
_FORK_SERVER = "orchestrator.backends.netns.forkserver"
TARGETS: dict[str, Callable[[int], bool]] = {
    "fork server": lambda pid: _called(_FORK_SERVER)(pid) and not (_IS_AGENT(pid) or _IS_DAEMON(pid)),
    "radio": _called("orchestrator.backends.netns.radio"),
    "agent": _IS_AGENT,
    "routing daemon": _IS_DAEMON,
}


def kill_helper(drill: Drill) -> None:
    """Kills, or (every third time) stops, each of them in each phase, in turn."""
    number, name = divmod(drill.number, len(TARGETS))
    target = list(TARGETS)[name]
    phase = (*NEEDED, "stop")[number % (len(NEEDED) + 1)]
    how = signal.SIGSTOP if drill.number % 3 == 2 else signal.SIGKILL
    drill.note(f"{how.name} to a {target} in {phase}")
    process = drill.start_run(drill.experiment(duration="3 s", timeouts={"up": "20s", "converge": "15s"}))
    if not come(drill, drill.run, Moment(phase), process):
        drill.found.wrong_verdicts.append(f"{phase} never came: {drill.stderr[-300:]}")
    targets: list[int] = []

    def struck() -> bool:
        targets.extend(strike(drill, drill.run, TARGETS[target], how))
        return bool(targets)

    drill.until(struck, process)
    code = drill.wait(process)
    if targets and phase in NEEDED and verdict_of(drill.run).get("verdict") == "valid":
        drill.found.wrong_verdicts.append(f"valid, though the {target} was lost in {phase}")
    settle(drill, drill.run, code)


def strike(
    drill: Drill, run: RunDirectory, is_target: Callable[[int], bool], number: signal.Signals
) -> list[int]:
    """Picks one of the helpers that are running."""
    found = []
    for process in processes.marked(run.id, run.path):
        with suppress(OSError):
            if is_target(process.pid):
                found.append(process.pid)
    if not found:
        return []
    chosen = drill.dice.choice(found)
    with suppress(ProcessLookupError):
        os.kill(chosen, number)
        return [chosen]
    return []
