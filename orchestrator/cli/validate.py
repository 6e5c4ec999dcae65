"""`rove validate`: is the file right, and if not, everything that is wrong with it."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.output import JsonFlag, console, errors, print_json
from orchestrator.cli.references import complete_experiment_file
from orchestrator.errors import EXIT_BAD_INPUT


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Experiment or topology files (YAML).",
            autocompletion=complete_experiment_file,
            show_default=False,
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Check experiment and topology files; nothing is created.

    Lists every problem at once, with its line, its path in the file and a hint.
    Exit code: 0 all files can be used, 2 at least one cannot.

    [bold]Examples[/]

      rove validate experiments/quickstart.yaml

      rove validate experiments/*.yaml topologies/*.yaml

      rove validate experiments/quickstart.yaml --json
    """
    results = [_examine(file) for file in files]
    if as_json:
        print_json({"files": results})
    else:
        for result in results:
            _show(result)
    if not all(result["ok"] for result in results):
        raise typer.Exit(EXIT_BAD_INPUT)


def _examine(file: Path) -> dict[str, Any]:
    # Imported here: completion and --help must not wait for them.
    from orchestrator.planning.load import load_any
    from orchestrator.spec.problems import BadSpec

    try:
        loaded = load_any(file)
    except BadSpec as error:
        problems = [problem._asdict() for problem in error.problems]
        return {"file": str(file), "ok": False, "text": str(error), "problems": problems}
    found = {
        "kind": "experiment" if loaded.experiment else "topology",
        "name": (loaded.experiment or loaded.topology).name,
        "nodes": len(loaded.topology.node_names),
    }
    if loaded.experiment:
        found["cells"] = math.prod(len(values) for values in loaded.experiment.sweep.values())
    return {"file": str(file), "ok": True, **found, "problems": []}


def _show(result: dict[str, Any]) -> None:
    if not result["ok"]:
        errors.print(result["text"], markup=False)
        return
    text = f"{result['file']}: ok, {result['kind']} {result['name']}, {result['nodes']} nodes"
    if result.get("cells", 1) > 1:
        text += f", {result['cells']} runs"
    console.print(text, markup=False, soft_wrap=True)
