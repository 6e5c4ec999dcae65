"""The table that people came for: what each run measured, one row a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

VERDICT_STYLES = {"valid": "green", "invalid": "yellow", "failed": "red"}
_NO_VALUE = "–"


def results_table(summaries: Sequence[Mapping[str, Any]]) -> Table:
    """``summaries`` are documents as in summary.json; ``metrics`` is missing where a run was not analysed."""
    factors = list({name: None for summary in summaries for name in summary.get("factors", {})})
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in factors:
        table.add_column(name, justify="right")
    for heading in ("throughput", "latency p50", "latency p95", "loss", "switches"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for summary in summaries:
        metrics = summary.get("metrics") or {}
        table.add_row(
            str(summary["run"]),
            *(str(summary.get("factors", {}).get(name, _NO_VALUE)) for name in factors),
            _number(metrics.get("throughput_fps"), 1, "{:.2f} /s"),
            _number(metrics.get("latency_p50_s"), 1e3, "{:.1f} ms"),
            _number(metrics.get("latency_p95_s"), 1e3, "{:.1f} ms"),
            _number(metrics.get("loss_ratio"), 100, "{:.1f} %"),
            _number(metrics.get("switches"), 1, "{:.0f}"),
            verdict_text(summary.get("verdict")),
        )
    return table


def verdict_text(verdict: str | None) -> str:
    if verdict is None:
        return _NO_VALUE
    style = VERDICT_STYLES.get(verdict)
    return f"[{style}]{verdict}[/]" if style else verdict


def _number(value: float | None, factor: float, template: str) -> str:
    return _NO_VALUE if value is None else template.format(value * factor)
