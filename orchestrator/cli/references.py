"""How verbs take runs and experiment files as arguments, and how the shell completes them."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import LATEST, all_runs

DEFAULT_ROOT = Path("runs")
ROOT_VARIABLE = "ROVE_RUNS_DIR"

RunsDir = Annotated[
    Path,
    typer.Option("--runs-dir", envvar=ROOT_VARIABLE, help="Where runs are kept.", file_okay=False),
]


def command_line(verb: str, run: str, runs_dir: Path) -> str:
    """Returns a command that works as it is printed: it says where runs are kept, unless by default."""
    default = Path(os.environ.get(ROOT_VARIABLE) or DEFAULT_ROOT)
    where = () if runs_dir == default else ("--runs-dir", str(runs_dir))
    return shlex.join(["rove", verb, run, *where])


def require_folder(output: Path | None) -> None:
    """Raises BadInput if the file cannot be written because its folder is not there."""
    if output is not None and not output.parent.is_dir():
        raise BadInput(f"--output {output}: there is no folder {output.parent}")


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    """Run ids, experiment names and ``latest``."""
    root = context.params.get("runs_dir") or DEFAULT_ROOT
    runs = all_runs(Path(root))
    names = [LATEST, *sorted({run.experiment for run in runs}), *(run.id for run in runs)]
    return [name for name in names if name.startswith(incomplete)]


def complete_experiment_file(incomplete: str) -> list[str]:
    """YAML files, and directories on the way to them."""
    typed = Path(incomplete)
    directory = typed if incomplete.endswith("/") else typed.parent
    prefix = "" if incomplete.endswith("/") else typed.name
    try:
        entries = sorted(entry for entry in directory.iterdir() if entry.name.startswith(prefix))
    except OSError:
        return []
    files = [str(entry) for entry in entries if entry.suffix in (".yaml", ".yml")]
    return files + [f"{entry}/" for entry in entries if entry.is_dir() and not entry.name.startswith(".")]


RUN_HELP = "A run: its id, its directory, the name of an experiment (its latest run), or 'latest'."

RunReference = Annotated[
    str, typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False)
]
TopologyFile = Annotated[
    Path,
    typer.Argument(
        metavar="TOPOLOGY",
        help="Topology file (YAML).",
        autocompletion=complete_experiment_file,
        show_default=False,
    ),
]
ExperimentFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Experiment file (YAML).",
        autocompletion=complete_experiment_file,
        show_default=False,
    ),
]
