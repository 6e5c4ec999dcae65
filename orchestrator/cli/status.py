"""`rove status`: which runs there are, and how they are doing."""

import time
from typing import Annotated, Any

import typer
from rich.table import Table

from orchestrator.backends.core.remains import sessions_left
from orchestrator.backends.remote.ledger import waiting
from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.cli.results import verdict_text
from orchestrator.lifecycle.files import read_json
from orchestrator.lifecycle.run_directory import RunDirectory, all_runs, resolve
from orchestrator.lifecycle.teardown import State, last_phase, state_of

_STATE_STYLES = {State.ALIVE: "cyan", State.FINISHED: "default", State.DEAD: "red"}


def status(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """List the runs, newest first, or show one in detail.

    A run is alive (its orchestrator holds it), finished, or dead (the orchestrator was killed:
    [bold]rove down[/] cleans up).

    [bold]Examples[/]

      rove status

      rove status latest

      rove status quickstart --json
    """
    if run is not None:
        _show_one(resolve(run, runs_dir), as_json)
        return
    rows = [overview(directory) for directory in all_runs(runs_dir)]
    if as_json:
        print_json({"runs": rows})
    elif not rows:
        console.print(
            f"No runs under {runs_dir} yet. Start one: rove run experiments/quickstart.yaml", markup=False
        )
    else:
        console.print(_table(rows))


def overview(directory: RunDirectory) -> dict[str, Any]:
    verdict = read_json(directory.verdict) or {}
    return {
        "run": directory.id,
        "experiment": directory.experiment,
        "state": state_of(directory),
        "phase": last_phase(directory),
        "verdict": verdict.get("verdict"),
        "age_s": round(time.time() - directory.created(), 1),
        "directory": str(directory.path),
    }


def _show_one(directory: RunDirectory, as_json: bool) -> None:
    verdict = read_json(directory.verdict)
    facts = overview(directory)
    places = [directory, *directory.members()] if directory.is_sweep else [directory]
    waits = list(dict.fromkeys(node for place in places for node in waiting(place.path)))
    sessions = [session for place in places for session in sessions_left(place.path)]
    members = [overview(member) for member in directory.members()] if directory.is_sweep else []
    if as_json:
        print_json(
            {
                **facts,
                "waiting": waits,
                "core_sessions": sessions,
                "judgement": verdict,
                "summary": read_json(directory.summary),
                "members": members,
            }
        )
        return
    facts["age"] = _age(facts.pop("age_s"))
    if waits and facts["state"] is not State.ALIVE:
        facts["still on"] = f"{', '.join(waits)}: rove collect {directory.id} fetches it"
    if sessions:
        hint = "" if facts["state"] is State.ALIVE else f": rove down {directory.id} removes it"
        facts["CORE session"] = f"{', '.join(sessions)}{hint}"
    if directory.report.exists():
        facts["report"] = str(directory.report)
    width = max(map(len, facts))
    for name, value in facts.items():
        console.print(f"{name:<{width}}  {'–' if value is None else value}", markup=False, soft_wrap=True)
    for reason in (verdict or {}).get("reasons", []):
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    for phase in (verdict or {}).get("phases", []):
        console.print(f"  {phase['phase']:<9} {phase['seconds']:>9.2f} s  {phase['outcome']}", markup=False)
    if members:
        console.print(_table(members))


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for heading in ("experiment", "state", "phase", "verdict"):
        table.add_column(heading)
    table.add_column("age", justify="right")
    for row in rows:
        style = _STATE_STYLES[row["state"]]
        verdict = verdict_text(row["verdict"])
        table.add_row(
            row["run"],
            row["experiment"],
            f"[{style}]{row['state']}[/]",
            row["phase"] or "–",
            verdict,
            _age(row["age_s"]),
        )
    return table


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
