"""`rove plan`: what a run would create and how long it takes, before anything is created."""

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from orchestrator.cli.outlook import outlook_document, outlook_of, show_outlook
from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import ExperimentFile
from orchestrator.errors import BadInput

if TYPE_CHECKING:
    from orchestrator.spec.experiment import Experiment
    from orchestrator.spec.sweep import Cell
    from orchestrator.spec.topology import Topology

_MOST_ROWS = 20


def plan(
    file: ExperimentFile,
    cell: Annotated[
        int | None,
        typer.Option(
            "--cell", min=1, help="Place this cell of a sweep; the first if not given.", show_default=False
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            help="Write how its nodes move: for BonnMotion (.movements) or ns-2 (.ns_movements, .tcl).",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a run would create: nodes, replicas on nodes, the cells of a sweep, and how long they take.

    And what may be expected of the radio: its range, how many neighbours nodes have, how much of the time
    source and sink are connected, and over how many hops.

    Nothing is created, but for the file that --trace asks for.

    [bold]Examples[/]

      rove plan experiments/quickstart.yaml

      rove plan experiments/quickstart.yaml --cell 2

      rove plan experiments/quickstart.yaml --json

      rove plan experiments/quickstart.yaml --trace quickstart.movements
    """
    # Imported here: completion and --help must not wait for them.
    from orchestrator.spec.load import load_experiment
    from orchestrator.spec.sweep import cells

    experiment = load_experiment(file)
    every = cells(experiment)
    if cell is not None and cell > len(every):
        raise BadInput(f"--cell {cell}: {file} has {len(every)} cells, numbered from 1")
    chosen = every[(cell or 1) - 1]
    if trace is not None:
        _write_trace(trace, chosen)
    if as_json:
        shown = every if cell is None else (chosen,)
        print_json({**_document(experiment, every, shown), "outlook": _outlook_document(chosen)})
    else:
        _show(experiment, every, chosen)
        if trace is not None:
            console.print(f"[bold]Movements[/] of cell {chosen.number} written to {trace}", soft_wrap=True)


def _outlook_document(cell: "Cell") -> dict[str, Any]:
    return {"cell": cell.number, **outlook_document(outlook_of(cell))}


def _write_trace(file: Path, cell: "Cell") -> None:
    from orchestrator.mobility.formats import write_trace
    from orchestrator.mobility.generate import generate_trace

    topology, end = cell.experiment.topology, _seconds(cell)
    write_trace(file, generate_trace(topology, cell.experiment.seed, end).until(end), topology.area, end)


def _seconds(cell: "Cell") -> float:
    return cell.experiment.warmup + cell.experiment.duration


def _document(
    experiment: "Experiment", every: "tuple[Cell, ...]", shown: "tuple[Cell, ...]"
) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "backend": experiment.backend,
        "cell_count": len(every),
        "virtual_seconds": sum(map(_seconds, every)),
        "cells": [_cell_document(cell) for cell in shown],
    }


def _cell_document(cell: "Cell") -> dict[str, Any]:
    from orchestrator.planning.placement import deployment_plan

    topology = cell.experiment.topology
    return {
        "cell": cell.number,
        "factors": cell.factors,
        "virtual_seconds": _seconds(cell),
        "nodes": topology.addresses(),
        "replicas": [
            {"replica": replica.id, "operator": replica.operator, "node": replica.node}
            for replica in deployment_plan(cell.experiment).replicas
        ],
    }


def _show(experiment: "Experiment", every: "tuple[Cell, ...]", chosen: "Cell") -> None:
    console.print(f"[bold]{experiment.name}[/] on {experiment.backend}: nothing is created by planning\n")
    console.print(_nodes_table(chosen.experiment.topology))
    title = (
        f"\n[bold]Replicas[/] of cell {chosen.number} ({_factors(chosen)})"
        if chosen.factors
        else "\n[bold]Replicas[/]"
    )
    console.print(title)
    console.print(_replicas_table(chosen.experiment))
    show_outlook(outlook_of(chosen))
    if experiment.sweep:
        console.print(f"\n[bold]Sweep[/] of {len(every)} cells")
        console.print(_cells_table(every))
    _show_time(every)


def _factors(cell: "Cell") -> str:
    return ", ".join(f"{path} = {value}" for path, value in cell.factors.items())


def _nodes_table(topology: "Topology") -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    names, addresses = topology.node_names, topology.addresses()
    first, last = names[0], names[-1]
    table.add_row("Nodes", f"{len(names)}: {first} ({addresses[first]}) … {last} ({addresses[last]})")
    table.add_row("Area", str(topology.area))
    table.add_row("Mobility", _mobility(topology))
    for title, line in zip_longest(["Radio"], topology.radio.summary(), fillvalue=""):
        table.add_row(title, line)
    return table


def _mobility(topology: "Topology") -> str:
    from orchestrator.spec.recorded import RecordedTrace

    mobility = topology.mobility
    if not isinstance(mobility, RecordedTrace):
        return mobility.summary()
    paths = mobility.read(topology.node_names, topology.area).paths.values()
    return f"{mobility.summary()}, standing still after {max(path[-1].t for path in paths):g} s"


def _replicas_table(experiment: "Experiment") -> Table:
    from orchestrator.planning.placement import deployment_plan

    deployment = deployment_plan(experiment)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("operator", "kind", "after", "replicas → nodes"):
        table.add_column(heading)
    for operator in deployment.query.operators:
        hosts = "  ".join(f"{replica.index} → {replica.node}" for replica in deployment.of(operator.name))
        table.add_row(operator.name, operator.kind, ", ".join(operator.after), hosts)
    return table


def _cells_table(every: "tuple[Cell, ...]") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("cell", *every[0].factors, "nodes in use", "virtual time"):
        table.add_column(heading, justify="right")
    for cell in every[:_MOST_ROWS]:
        replicas = sum(cell.experiment.replica_counts().values())
        table.add_row(
            str(cell.number), *map(str, cell.factors.values()), str(replicas), f"{_seconds(cell):g} s"
        )
    if len(every) > _MOST_ROWS:
        table.caption = f"… and {len(every) - _MOST_ROWS} more: --json lists them all"
    return table


def _show_time(every: "tuple[Cell, ...]") -> None:
    total = sum(map(_seconds, every))
    console.print(f"\n[bold]Virtual time[/] {_duration(total)} in total: warm-up and measurement, exact")
    console.print(
        f"[bold]Time on your clock[/] probably less than {_duration(total)}: an estimate, not measured here; "
        "the simulator jumps from event to event",
        soft_wrap=True,
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
