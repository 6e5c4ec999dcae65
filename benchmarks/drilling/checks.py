"""Checks what must hold after every drill: nothing is left, nothing is lost, and the verdict is true.

It counts telemetry from the files alone, without the code that judged the run.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import PHASES, events
from benchmarks.shared.runs import OF_THE_HOST
from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK
from orchestrator.runs.run_directory import RunDirectory

Contents = dict[str, bytes]
EXIT_CODES = {"valid": EXIT_OK, "invalid": EXIT_INVALID, "failed": EXIT_FAILED}
_STOP = "agent_stop"


def verdict_of(run: RunDirectory) -> dict[str, Any]:
    """Returns the verdict; empty if there is none."""
    try:
        document: dict[str, Any] = json.loads(run.verdict.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return document


def own_reasons(run: RunDirectory) -> list[str]:
    """Returns why the run is not valid, except that the machine was too busy."""
    return [reason for reason in verdict_of(run).get("reasons", []) if not reason.startswith(OF_THE_HOST)]


def contents(directory: Path) -> Contents:
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(directory))] = path.read_bytes()
    return found


def records_of(run: RunDirectory) -> Contents:
    return {name: data for name, data in contents(run.nodes).items() if "/segments/" in name}


def check_kept(drill: Drill, before: Contents, after: Contents, where: str) -> None:
    """Checks that recorded files are still there; they may have grown since."""
    for name, data in before.items():
        if not after.get(name, b"").startswith(data):
            drill.found.lost.append(f"{where}: {name} had {len(data)} bytes, now {len(after.get(name, b''))}")


def check_left(drill: Drill, run: RunDirectory) -> None:
    """Checks that nothing of the run is left in the kernel, in /tmp, half-written in its directory, or on a
    node.
    """
    mark = Mark(run.id, run.path)
    left = [str(entry) for entry in network.leftovers(mark)]
    left += [
        f"link {path.parent.name}" for path in Path("/sys/class/net").glob("*/ifalias") if _is_of(mark, path)
    ]
    left += [str(path) for path in run.temporary_paths()]
    left += [str(path) for pattern in (".*.tmp", ".*.part") for path in run.path.rglob(pattern)]
    left += [str(path) for path in drill.temporary.iterdir()]
    drill.found.leftovers.extend(dict.fromkeys(left))


def _is_of(mark: Mark, alias: Path) -> bool:
    try:
        return mark.digest in alias.read_text()
    except OSError:  # gone meanwhile, or another run's
        return False


def check_verdict(drill: Drill, run: RunDirectory, code: int, judged_before: bool = False) -> None:
    """Checks the verdict. ``code``: the exit code of `rove run`. ``judged_before``: the verdict existed when
    it was killed.
    """
    wrong = drill.found.wrong_verdicts
    verdict = verdict_of(run)
    judgement = verdict.get("verdict")
    if judgement not in EXIT_CODES:
        wrong.append(f"no verdict, exit code {code}: {drill.stderr.strip()[-200:]}")
        return
    if (judgement == "valid") == bool(verdict.get("reasons")):
        wrong.append(f"{judgement} with the reasons {verdict.get('reasons')}")
    if code == EXIT_INTERRUPTED:
        if judgement == "valid" and not came_through(run):
            wrong.append("valid, though interrupted")
    elif code < 0:
        if judgement == "valid" and not judged_before:
            wrong.append("valid, though its orchestrator was killed")
    elif code != EXIT_CODES[judgement]:
        wrong.append(f"exit code {code}, but {judgement}: {verdict['reasons']}")
    if judgement == "valid":
        wrong.extend(f"valid, but {flaw}" for flaw in flaws(drill, run))


def came_through(run: RunDirectory) -> bool:
    """Says whether every phase ended well."""
    ended = {
        event["phase"]: event.get("outcome") for event in events(run) if event.get("state") == "finished"
    }
    return all(ended.get(phase) == "ok" for phase in PHASES)


def flaws(drill: Drill, run: RunDirectory) -> list[str]:
    """Returns why its records are not complete."""
    found = [flaw for node in drill.nodes for flaw in _gaps(run.segments(node), node)]
    try:
        sums = json.loads(run.manifest.read_bytes())["files"]
    except (OSError, ValueError, KeyError):
        return [*found, "there is no manifest with checksums"]
    for name, digest in sums.items():
        path = run.path / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            found.append(f"{name} is not what the manifest says")
    return found


def _gaps(segments: Path, node: str) -> list[str]:
    boots: dict[int, list[tuple[int, str]]] = {}
    for path in sorted(segments.glob("*.jsonl")) if segments.is_dir() else []:
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                boots.setdefault(record["boot"], []).append((record["seq"], record["kind"]))
            except (ValueError, KeyError, TypeError):
                return [f"{node}: {path.name} holds a line that is no record"]
    if not boots:
        return [f"{node} has no records"]
    found = []
    for boot, lines in boots.items():
        if sorted(seq for seq, _ in lines) != list(range(len(lines))):
            found.append(f"{node}: boot {boot} has gaps")
        if max(lines)[1] != _STOP:
            found.append(f"{node}: boot {boot} has no end")
    return found
