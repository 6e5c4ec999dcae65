"""Records vanish during a run in namespaces: Rove must notice what is gone, and never call the run valid."""

import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.drilling.checks import verdict_of
from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import Moment, come, events
from benchmarks.drilling.settling import settle


def lost_segments(drill: Drill) -> None:
    """Removes a node's segments, its whole directory, or one segment during the measurement."""
    what, path_of = LOSSES[drill.number % len(LOSSES)]
    phase = ("measure", "stop", "measure", "collect")[drill.number // len(LOSSES) % 4]
    node = drill.dice.choice(drill.nodes)
    drill.note(f"{node} loses {what} in {phase}")
    process = drill.start_run(drill.experiment(duration="3 s"))
    come(drill, drill.run, Moment(phase), process)
    _remove(path_of(drill.run.nodes / node))
    code = drill.wait(process)
    if verdict_of(drill.run).get("verdict") == "valid":
        drill.found.wrong_verdicts.append(f"valid, though {node} lost {what}")
    settle(drill, drill.run, code)


def lost_and_restarted(drill: Drill) -> None:
    """An agent crashes by a fault, its segments vanish, and it restarts: Rove must notice that its first boot
    is gone.
    """
    node = "b"
    drill.note(f"{node} crashes, loses its segments and comes back")
    fault = {"at": "500 ms", "for": "1500 ms", "crash": {"operator": "work", "replica": 0}}
    process = drill.start_run(drill.experiment(duration="4 s", faults=[fault]))

    def crashed() -> bool:
        return any(event["kind"] == "fault" and event.get("action") == "crash" for event in events(drill.run))

    if not drill.until(crashed, process):
        drill.found.wrong_verdicts.append(f"it never crashed: {drill.stderr[-300:]}")
    _remove(drill.run.segments(node))
    code = drill.wait(process)
    if verdict_of(drill.run).get("verdict") == "valid":
        drill.found.wrong_verdicts.append(f"valid, though {node}'s first boot is gone")
    settle(drill, drill.run, code)


def lost_run_directory(drill: Drill) -> None:
    """Removes the run's whole directory.
    Nothing can be judged; the error must be clear and nothing may stay.
    """
    phase = ("up", "measure", "stop")[drill.number % 3]
    drill.note(f"the run's directory is removed in {phase}")
    process = drill.start_run(drill.experiment())
    come(drill, drill.run, Moment(phase), process)
    shutil.rmtree(drill.run.path, ignore_errors=True)
    shutil.rmtree(drill.run.path, ignore_errors=True)
    code = drill.wait(process)
    if code not in (1, 3):
        drill.found.wrong_verdicts.append(f"exit code {code}: {drill.stderr[-300:]}")
    settle(drill, drill.run, code)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _first_segment(node: Path) -> Path:
    return next(iter(sorted((node / "segments").glob("*"))), node / "segments")


LOSSES: tuple[tuple[str, Callable[[Path], Path]], ...] = (
    ("its segments", lambda node: node / "segments"),
    ("its directory", lambda node: node),
    ("a segment", _first_segment),
)
