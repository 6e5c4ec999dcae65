"""The sinks of a query that has several, in its report: a sink that got nothing must not go unseen."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.analytics.markup import number, table
from orchestrator.analytics.views import label_of


def sinks(groups: Sequence[Mapping[str, Any]]) -> str:
    """Of the cells of a summary; nothing where queries have one sink."""
    several = len(groups) > 1
    rows = [
        [
            *([escape(label_of(cell["factors"]))] if several else []),
            escape(sink),
            number(figures["owed"], 1, 0),
            number(figures["delivered"], 1, 0),
            number(figures["loss_ratio"], 100, 1),
            number(figures["goodput_fps"], 1, 2),
            number(figures["latency_p50_s"], 1, 3),
            number(figures["latency_p95_s"], 1, 3),
        ]
        for cell in groups
        for sink, figures in cell.get("sinks", {}).items()
    ]
    if not rows:
        return ""
    headings = [*([""] if several else []), "sink", "owed<br>tuples", "delivered<br>tuples", "loss<br>%"]
    headings += ["goodput<br>tuples/s", "latency p50<br>s", "latency p95<br>s"]
    note = "A tuple owes a delivery to every sink that its stream leads to; the loss above is of all of them."
    return f'<h3 id="sinks">Sinks</h3>{table(headings, rows)}<p class="soft">{escape(note)}</p>'
