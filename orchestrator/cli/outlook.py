"""Prints what `rove plan` expects of the radio: range, neighbours, which nodes reach which."""

from typing import TYPE_CHECKING, Any

from rich.table import Table

from orchestrator.cli.output import console

if TYPE_CHECKING:
    from orchestrator.planning.radio_outlook import Outlook, PairOutlook
    from orchestrator.planning.sweep import Cell

_MOST_LINKS = 20
_MOST_ISOLATED = 5


def outlook_of(cell: "Cell") -> "Outlook":
    # Imported here: completion and --help must not wait for them.
    from orchestrator.mobility.generate import generate_trace
    from orchestrator.planning.radio_outlook import look_ahead

    experiment = cell.experiment
    seconds = experiment.warmup + experiment.duration
    return look_ahead(
        experiment.topology,
        generate_trace(experiment.topology, experiment.seed, seconds),
        seconds,
        cell.run.traffic(),
    )


def outlook_document(outlook: "Outlook") -> dict[str, Any]:
    return {
        "range_m": {f"{share:g}": _rounded(reach) for share, reach in outlook.ranges_m.items()},
        "static": outlook.static,
        "samples": outlook.samples,
        "mean_degree": round(outlook.mean_degree, 3),
        "isolated": {node: round(share, 4) for node, share in outlook.isolated.items()},
        "source_to_sink": [
            {
                "source": pair.source,
                "source_node": pair.source_node,
                "sink": pair.sink,
                "sink_node": pair.sink_node,
                "connected": round(pair.connected, 4),
                "hops": {str(hops): round(share, 4) for hops, share in pair.hops.items()},
            }
            for pair in outlook.pairs
        ],
        "links": [
            {
                "source": link.source,
                "destination": link.destination,
                "distance_m": _rounded(link.distance_m),
                "snr_db": None if link.snr_db is None else round(link.snr_db, 2),
                "expected_delivery": round(link.expected_delivery, 4),
            }
            for link in outlook.links
        ],
        "warnings": outlook.warnings,
    }


def show_outlook(outlook: "Outlook") -> None:
    from orchestrator.planning.radio_outlook import ranges_in_words

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("Range", ranges_in_words(outlook.ranges_m))
    table.add_row("Neighbours", f"{outlook.mean_degree:.1f} of a node in the mean{_isolated(outlook)}")
    for pair in outlook.pairs:
        table.add_row(f"{pair.source} → {pair.sink}", _connection(pair, outlook.static))
    console.print("\n[bold]What to expect[/] of an otherwise silent radio" + _sampled(outlook))
    console.print(table)
    if outlook.links:
        console.print(_links_table(outlook))
    for warning in outlook.warnings:
        console.print(f"[bold yellow]warning[/] {warning}", soft_wrap=True)


def _sampled(outlook: "Outlook") -> str:
    return "" if outlook.static else f", over {outlook.samples} moments {outlook.step_s:g} s apart"


def _isolated(outlook: "Outlook") -> str:
    if not outlook.isolated:
        return "; nobody is ever alone"
    worst = sorted(outlook.isolated.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{node} {share:.0%} of the time" for node, share in worst[:_MOST_ISOLATED])
    more = f" and {len(worst) - _MOST_ISOLATED} more" if len(worst) > _MOST_ISOLATED else ""
    return f"; without any: {shown}{more}"


def _connection(pair: "PairOutlook", static: bool) -> str:
    if not pair.hops:
        return "never connected"
    if static:
        (hops,) = pair.hops
        return f"connected over {hops} {'hop' if hops == 1 else 'hops'}"
    shares = ", ".join(f"{count} {share:.0%}" for count, share in pair.hops.items())
    return f"connected {pair.connected:.0%} of the time; hops: {shares}"


def _links_table(outlook: "Outlook") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("link", "distance", "SNR", "full frames arrive"):
        table.add_column(heading, justify="left" if heading == "link" else "right")
    for link in outlook.links[:_MOST_LINKS]:
        table.add_row(
            f"{link.source} → {link.destination}",
            f"{link.distance_m:.0f} m",
            "–" if link.snr_db is None else f"{link.snr_db:.1f} dB",
            f"{link.expected_delivery:.1%}",
        )
    if len(outlook.links) > _MOST_LINKS:
        table.caption = f"… and {len(outlook.links) - _MOST_LINKS} more: --json lists them all"
    return table


def _rounded(metres: float | None) -> float | None:
    return None if metres is None else round(metres, 1)
