"""`rove plan`: what a run would create and how long it takes, before anything is created."""

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from orchestrator.cli.applications import AppOption, defines, planned_app
from orchestrator.cli.contact_chart import contacts_document, contacts_of, show_contacts, write_contacts
from orchestrator.cli.outlook import outlook_document, outlook_of, show_outlook
from orchestrator.cli.output import JsonFlag, console, print_json, print_shown
from orchestrator.cli.references import DEFAULT_ROOT, ExperimentFile, RunsDir
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import resolve

if TYPE_CHECKING:
    from orchestrator.planning.planned import PlannedRun
    from orchestrator.planning.sweep import Cell
    from orchestrator.runs.run_directory import RunDirectory
    from orchestrator.spec.experiment import Experiment
    from orchestrator.spec.topology import Topology

_MOST_ROWS = 20
MERMAID = "mermaid"


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
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="FILE.svg|FILE.mmd|mermaid",
            help="Draw the query with its replicas and windows: to a file, or as Mermaid text to stdout.",
            show_default=False,
        ),
    ] = None,
    contacts: Annotated[
        Path | None,
        typer.Option(
            "--contacts",
            metavar="FILE.csv|FILE.svg",
            help="Write when links are up, of a topology with contacts: as a trace, or drawn.",
            show_default=False,
        ),
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option(
            "--measured",
            metavar="RUN",
            help="Plan the detection of events with the rates and contacts that this run showed.",
            show_default=False,
        ),
    ] = None,
    app: AppOption = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Show what a run would create: nodes, replicas on nodes, the cells of a sweep, and how long they take.

    And what may be expected of the radio: its range, how many neighbours nodes have, how much of the time
    source and sink are connected, and over how many hops. With contacts: who meets whom when.

    Nothing is created, but for the files that --trace, --graph and --contacts ask for.

    [bold]Examples[/]

      rove plan experiments/quickstart.yaml

      rove plan experiments/quickstart.yaml --cell 2

      rove plan experiments/quickstart.yaml --json

      rove plan experiments/quickstart.yaml --trace quickstart.movements

      rove plan experiments/quickstart.yaml --graph quickstart.svg

      rove plan experiments/comet/ferry.yaml --measured latest
    """
    # Imported here: completion and --help must not wait for them.
    from orchestrator.backends.choice import with_backend
    from orchestrator.planning.load import load_planned

    experiment, every = load_planned(file, lambda read: with_backend(read)[0])
    if cell is not None and cell > len(every):
        raise BadInput(f"--cell {cell}: {file} has {len(every)} cells, numbered from 1")
    chosen = every[(cell or 1) - 1]
    if measured is not None:
        chosen = _with_measured(chosen, app, resolve(measured, runs_dir))
        every = tuple(chosen if each.number == chosen.number else each for each in every)
    if graph == MERMAID:
        if as_json:
            raise BadInput("--graph mermaid and --json cannot both have the output: name a file to draw to")
        typer.echo(planned_app(chosen.run, app).graph("mmd"), nl=False)
        return
    if trace is not None:
        _write_trace(trace, chosen)
    if graph is not None:
        _write_graph(Path(graph), chosen, app)
    if contacts is not None:
        write_contacts(contacts, chosen)
    if as_json:
        shown = every if cell is None else (chosen,)
        print_json({**_document(experiment, every, shown), **_expected_document(chosen)})
    else:
        _show(experiment, every, chosen)
        if trace is not None:
            console.print(f"[bold]Movements[/] of cell {chosen.number} written to {trace}", soft_wrap=True)
        if graph is not None:
            console.print(f"[bold]Query[/] of cell {chosen.number} drawn to {graph}", soft_wrap=True)
        if contacts is not None:
            console.print(f"[bold]Contacts[/] of cell {chosen.number} written to {contacts}", soft_wrap=True)


def _with_measured(cell: "Cell", app: str | None, directory: "RunDirectory") -> "Cell":
    """Returns the cell with one application planned anew."""
    from orchestrator.planning.application import application

    entries = cell.experiment.entries()
    name = app or next((n for n, each in entries.items() if defines(each.kind, "measured_plan")), None)
    if name is None or name not in entries:
        raise BadInput("--measured: no application of this experiment plans with what runs measure")
    plan = application(entries[name].kind).measured_plan(entries[name], directory)
    return replace(cell, run=replace(cell.run, apps={**cell.run.apps, name: plan}))


def _is_real(cell: "Cell") -> bool:
    """Whether nodes are real machines, whose radio is unknown here."""
    return cell.experiment.traits.own_machines


def _expected_document(cell: "Cell") -> dict[str, Any]:
    """Returns what is to be expected of the radio, or of contacts."""
    if _is_real(cell):
        return {"outlook": None}
    if (plan := contacts_of(cell)) is not None:
        return {"outlook": None, "contacts": {"cell": cell.number, **contacts_document(plan)}}
    return {"outlook": {"cell": cell.number, **outlook_document(outlook_of(cell))}}


def _write_trace(file: Path, cell: "Cell") -> None:
    from orchestrator.mobility.formats import write_trace
    from orchestrator.mobility.generate import generate_trace

    topology, end = cell.experiment.topology, _seconds(cell)
    write_trace(file, generate_trace(topology, cell.experiment.seed, end).until(end), topology.area, end)


def _write_graph(file: Path, cell: "Cell", app: str | None) -> None:
    form = file.suffix.removeprefix(".")
    if form not in ("svg", "mmd"):
        raise BadInput(f"--graph {file}: name a file that ends in .svg or .mmd, or write --graph {MERMAID}")
    drawn = planned_app(cell.run, app).graph(form)
    try:
        file.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--graph {file}: {(error.strerror or 'cannot be written').lower()}") from None


def _apps_document(run: "PlannedRun") -> dict[str, Any]:
    """As in the experiment file: an application that has the name of its kind is at the top level."""
    own = [plan for name, plan in run.apps.items() if name == plan.kind]
    named = {name: plan.document() for name, plan in run.apps.items() if name != plan.kind}
    document = {key: value for plan in own for key, value in plan.document().items()}
    return {**document, **({"apps": named} if named else {})}


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
    topology = cell.experiment.topology
    real = topology.real_nodes() if _is_real(cell) else {}
    return {
        "cell": cell.number,
        "factors": cell.factors,
        "virtual_seconds": _seconds(cell),
        "nodes": {**topology.addresses(), **{name: node.address for name, node in real.items()}},
        "hosts": {name: str(node.host) for name, node in real.items()},
        "wires": [wire.model_dump(mode="json") for wire in topology.wires],
        **_apps_document(cell.run),
        "expect": list(cell.experiment.expect),
        "warnings": warnings_of(cell.experiment),
    }


def _show(experiment: "Experiment", every: "tuple[Cell, ...]", chosen: "Cell") -> None:
    console.print(f"[bold]{experiment.name}[/] on {experiment.backend}: nothing is created by planning\n")
    console.print(_nodes_table(chosen))
    for plan in chosen.run.apps.values():
        whose = f" of {plan.name}" if len(chosen.run.apps) > 1 else ""
        which = f" of cell {chosen.number} ({_factors(chosen)})" if chosen.factors else ""
        console.print(f"\n[bold]{plan.title}[/]{whose}{which}")
        print_shown(plan.shown())
    if (contacts := contacts_of(chosen)) is not None:
        show_contacts(contacts)
    elif not _is_real(chosen):
        show_outlook(outlook_of(chosen))
    if experiment.sweep:
        console.print(f"\n[bold]Sweep[/] of {len(every)} cells")
        console.print(_cells_table(every))
    _show_time(every)
    for warning in dict.fromkeys(text for cell in every for text in warnings_of(cell.experiment)):
        console.print(f"[bold yellow]warning[/] {warning}", soft_wrap=True)


def warnings_of(experiment: "Experiment") -> list[str]:
    from orchestrator.planning.settling import settling_warning

    warning = settling_warning(experiment)
    return [] if warning is None else [warning]


def _factors(cell: "Cell") -> str:
    return ", ".join(f"{path} = {value}" for path, value in cell.factors.items())


def _nodes_table(cell: "Cell") -> Table:
    experiment = cell.experiment
    topology = experiment.topology
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    if _is_real(cell):
        for title, line in zip_longest(["Nodes"], _hosts(topology), fillvalue=""):
            table.add_row(title, line)
        if topology.links is None:
            table.add_row("Radio", "their own: what it can do shows when they run")
        else:
            table.add_row("Links", f"emulated: {topology.links.summary()}")
        table.add_row("Lease", f"{experiment.lease:g} s without a word from here, and a node ends by itself")
    else:
        names, addresses = topology.node_names, topology.addresses()
        first, last = names[0], names[-1]
        table.add_row("Nodes", f"{len(names)}: {first} ({addresses[first]}) … {last} ({addresses[last]})")
        from orchestrator.spec.backends import BACKENDS

        for title, line in BACKENDS[experiment.backend].facts(topology).items():
            table.add_row(title, line)
        table.add_row("Area", str(topology.area))
        table.add_row("Mobility", topology.mobility.summary_for(names, topology.area))
        for title, line in zip_longest(["Radio"], topology.radio.summary(), fillvalue=""):
            table.add_row(title, line)
        for number, wire in enumerate(topology.wires):
            table.add_row("" if number else "Wires", wire.summary())
    table.add_row("Routing", experiment.routing.summary())
    for plan in cell.run.apps.values():
        for title, line in plan.summary():
            table.add_row(title if len(cell.run.apps) == 1 else f"{title} ({plan.name})", line)
    for title, line in zip_longest(["Expected"][: len(experiment.expect)], experiment.expect, fillvalue=""):
        table.add_row(title, line)
    return table


def _hosts(topology: "Topology") -> list[str]:
    return [
        f"{name}: {node.host} ({node.host.profile}), {node.address} on {node.interface}"
        + (f", through {node.host.jump}" if node.host.jump else "")
        for name, node in topology.real_nodes().items()
    ]


def _cells_table(every: "tuple[Cell, ...]") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("cell", *every[0].factors, "nodes in use", "time"):
        table.add_column(heading, justify="right")
    for cell in every[:_MOST_ROWS]:
        nodes = str(len(cell.run.nodes_in_use()))
        table.add_row(str(cell.number), *map(str, cell.factors.values()), nodes, f"{_seconds(cell):g} s")
    if len(every) > _MOST_ROWS:
        table.caption = f"… and {len(every) - _MOST_ROWS} more: --json lists them all"
    return table


def _show_time(every: "tuple[Cell, ...]") -> None:
    real = sum(_seconds(cell) for cell in every if not cell.experiment.traits.virtual_time)
    virtual = sum(_seconds(cell) for cell in every if cell.experiment.traits.virtual_time)
    if virtual:
        console.print(
            f"\n[bold]Virtual time[/] {_duration(virtual)} in total: warm-up and measurement, exact"
        )
        console.print(
            f"[bold]Time on your clock[/] probably less than {_duration(virtual)}: an estimate, not measured "
            "here; the simulator jumps from event to event",
            soft_wrap=True,
        )
    if real:
        console.print(
            f"\n[bold]Real time[/] {_duration(real)} in total: warm-up and measurement, exact; each run also "
            "takes the time until its network is up and routing has converged",
            soft_wrap=True,
        )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
