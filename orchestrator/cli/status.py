"""`rove status`: lists the runs and their states."""

import time
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.table import Table
from rich.text import Text

from orchestrator.backends.leftovers import noted
from orchestrator.backends.remote.ledger import waiting
from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.cli.verdicts import verdict_text
from orchestrator.errors import RoveError
from orchestrator.lifecycle.teardown import State, last_phase, state_of
from orchestrator.runs.files import read_json, read_object
from orchestrator.runs.refused import refused_text
from orchestrator.runs.run_directory import RunDirectory, all_runs, resolve
from orchestrator.runs.verdict import Verdict, read_verdict

_STATE_STYLES = {State.ALIVE: "cyan", State.FINISHED: "default", State.DEAD: "red"}
_UNREADABLE = "unreadable"


def status(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """List the runs, newest first, or show one in detail.

    A run is alive (its orchestrator holds it), finished, or dead (the orchestrator was killed:
    [bold]rove down[/] cleans up). Below the list: what runs still have on other machines by their journals,
    such as supervisors, CORE's sessions, and records that wait to be collected. No machine is asked.

    [bold]Examples[/]

      rove status

      rove status latest

      rove status quickstart --json
    """
    if run is not None:
        _show_one(resolve(run, runs_dir), as_json)
        return
    rows = [_overview_or_trouble(directory) for directory in all_runs(runs_dir)]
    if as_json:
        print_json({"runs": rows})
    elif not rows:
        console.print(
            f"No runs under {runs_dir} yet. Start one: rove run experiments/quickstart.yaml", markup=False
        )
    else:
        console.print(_table(rows))
        for row in rows:
            for text in _elsewhere(row):
                console.print(f"{row['run']}: {text}", markup=False, soft_wrap=True)


def _overview_or_trouble(directory: RunDirectory) -> dict[str, Any]:
    """Returns a run's overview, or why it cannot be read, so that the others are still listed."""
    try:
        return overview(directory)
    except (OSError, ValueError, RoveError) as error:
        return {
            "run": directory.id,
            "experiment": directory.experiment,
            "state": _UNREADABLE,
            "phase": None,
            "verdict": None,
            "elsewhere": [],
            "waiting": [],
            "age_s": 0.0,
            "directory": str(directory.path),
            "trouble": str(error),
        }


def overview(directory: RunDirectory) -> dict[str, Any]:
    verdict = read_object(directory.verdict).get("verdict")
    return {
        "run": directory.id,
        "experiment": directory.experiment,
        "state": state_of(directory),
        "phase": last_phase(directory),
        "verdict": verdict if isinstance(verdict, str) else None,
        "elsewhere": noted(directory.path),
        "waiting": waiting(directory.path),
        "age_s": round(time.time() - directory.created(), 1),
        "directory": str(directory.path),
    }


def _show_one(directory: RunDirectory, as_json: bool) -> None:
    verdict = read_verdict(directory)
    facts = overview(directory)
    places = [directory, *directory.members()] if directory.is_sweep else [directory]
    waits = list(dict.fromkeys(node for place in places for node in waiting(place.path)))
    members = [_overview_or_trouble(member) for member in directory.members()] if directory.is_sweep else []
    if as_json:
        print_json(
            {
                **facts,
                "waiting": waits,
                "judgement": None if verdict is None else verdict.document(),
                "summary": read_json(directory.summary),
                "members": members,
            }
        )
        return
    facts["age"] = _age(facts.pop("age_s"))
    notes = _elsewhere({**facts, "waiting": waits})
    del facts["elsewhere"], facts["waiting"]
    if directory.report.exists():
        facts["report"] = str(directory.report)
    width = max(map(len, facts))
    for name, value in facts.items():
        console.print(f"{name:<{width}}  {'–' if value is None else value}", markup=False, soft_wrap=True)
    for text in notes:
        console.print(f"  {text}", markup=False, soft_wrap=True)
    if verdict is not None:
        _show_verdict(verdict)
    if members:
        console.print(_table(members))


def _elsewhere(row: dict[str, Any]) -> list[str]:
    """Returns what a run still has on other machines; nothing for a living run, which handles it itself."""
    if row["state"] is State.ALIVE:
        return [f"runs elsewhere: {', '.join(row['elsewhere'])}"] if row["elsewhere"] else []
    notes = [f"cannot be read: {row['trouble']}"] if "trouble" in row else []
    if row["elsewhere"]:
        notes.append(f"not seen to end: {', '.join(row['elsewhere'])}: rove down {row['run']} ends it")
    if row["waiting"]:
        notes.append(f"still on {', '.join(row['waiting'])}: rove collect {row['run']} fetches it")
    return notes


def _show_verdict(verdict: Verdict) -> None:
    if refused := refused_text([to_builtins(each) for each in verdict.refused]):
        console.print(f"refused: {refused}", markup=False, soft_wrap=True)
    for reason in verdict.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    for note in verdict.notes:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    for done in verdict.interventions:
        console.print(f"  by hand: {done}", markup=False, soft_wrap=True)
    for phase in verdict.phases:
        console.print(f"  {phase.phase:<9} {phase.seconds:>9.2f} s  {phase.outcome}", markup=False)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for heading in ("experiment", "state", "phase", "verdict"):
        table.add_column(heading)
    table.add_column("age", justify="right")
    for row in rows:
        table.add_row(
            Text(row["run"]),  # foreign text may look like markup
            Text(row["experiment"]),
            Text(row["state"], _STATE_STYLES.get(row["state"], "red")),
            Text(str(row["phase"] or "–")),
            verdict_text(row["verdict"]),
            _age(row["age_s"]),
        )
    return table


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
