"""Flows as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from node_agent.apps.flows.model import Flow

if TYPE_CHECKING:
    from rich.table import Table


def flow_in_words(flow: Flow) -> str:
    return f"{flow.source} → {flow.sink}, {traffic_in_words(flow)}"


def traffic_in_words(flow: Flow) -> str:
    """``UDP, 256 kb/s in packets of 512 B, 1 s on and 1.35 s off (exponential), 5 to 60 s``."""
    said = [flow.protocol.upper()]
    if flow.trace:
        said.append("from a trace")
    elif flow.rate is None:
        said.append("as fast as it goes")
    else:
        said.append(f"{rate_in_words(flow.rate)} in packets of {flow.size} B")
    if flow.on_off is not None:
        mean = " (exponential)" if flow.on_off.distribution == "exponential" else ""
        said.append(f"{flow.on_off.on:g} s on and {flow.on_off.off:g} s off{mean}")
    if flow.bytes is not None:
        said.append(f"{flow.bytes:,} B in all")
    if flow.packets is not None:
        said.append(f"{flow.packets:,} packets in all")
    if flow.stop is not None:
        said.append(f"{flow.start:.4g} to {flow.stop:g} s")
    elif flow.start:
        said.append(f"from {flow.start:.4g} s on")
    return ", ".join(said)


def rate_in_words(bps: float) -> str:
    for size, unit in ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:.4g} b/s"


def flow_table(flows: Sequence[Flow]) -> "Table":
    from rich.table import Table

    table = Table("flow", "from", "to", "traffic")
    for flow in flows:
        table.add_row(flow.name, flow.source, flow.sink, traffic_in_words(flow))
    return table
