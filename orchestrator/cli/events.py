"""`rove events`: what the orchestrator did and saw in a run."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from node_agent.telemetry.segment_files import open_regular
from orchestrator.cli.output import console, json_text, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.lifecycle.teardown import State, state_of
from orchestrator.runs.events import describe
from orchestrator.runs.files import MOST_BYTES, parse_lines
from orchestrator.runs.run_directory import RunDirectory, resolve

POLL_S = 0.2


def events(
    run: RunReference,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only events of this kind (phase, nodes, verdict, …); may be repeated."),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON: one document, or with --follow one object a line."),
    ] = False,
) -> None:
    """Show the events of a run: phases, outcomes of nodes, the verdict.

    [bold]Examples[/]

      rove events latest

      rove events latest --follow

      rove events quickstart --kind nodes --json
    """
    directory = resolve(run, runs_dir)
    found = _follow(directory) if follow else iter(_Tail(directory.events).read())
    wanted = (event for event in found if not kind or event.get("kind") in kind)
    if as_json and not follow:
        print_json({"run": directory.id, "events": list(wanted)})
        return
    for event in wanted:
        text = json_text(event) if as_json else f"{event.get('t', '')}  {describe(event)}"
        console.print(text, markup=False, soft_wrap=True)


class _Tail:
    """Reads the whole lines that were added since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        try:
            with open_regular(self._path) as file:
                file.seek(self._offset)
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return parse_lines(whole)


def _follow(directory: RunDirectory) -> Iterator[dict[str, Any]]:
    tail = _Tail(directory.events)
    while True:
        # The state first: what was written before the end is then still read.
        ended = state_of(directory) is not State.ALIVE
        yield from tail.read()
        if ended:
            return
        time.sleep(POLL_S)
