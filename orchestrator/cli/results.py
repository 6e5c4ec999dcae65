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
    for heading in ("throughput", "latency\np50", "latency\np95", "loss", "switches"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    names = _short_names([str(summary["run"]) for summary in summaries])
    for name, summary in zip(names, summaries, strict=True):
        metrics = summary.get("metrics") or {}
        table.add_row(
            name,
            *(str(summary.get("factors", {}).get(factor, _NO_VALUE)) for factor in factors),
            _number(metrics.get("throughput_fps"), 1, "{:.2f} /s"),
            _number(metrics.get("latency_p50_s"), 1e3, "{:.1f} ms"),
            _number(metrics.get("latency_p95_s"), 1e3, "{:.1f} ms"),
            _number(metrics.get("loss_ratio"), 100, "{:.1f} %"),
            _number(metrics.get("switches"), 1, "{:.0f}"),
            verdict_text(summary.get("verdict")),
        )
    return table


def _short_names(runs: Sequence[str]) -> list[str]:
    """Members of one sweep are told apart by their numbers; their ids would leave no room for the rest."""
    parts = [run.rpartition(".") for run in runs]
    of_one_sweep = len({sweep for sweep, _, _ in parts}) == 1 and all(dot for _, dot, _ in parts)
    return [f".{number}" for _, _, number in parts] if of_one_sweep else list(runs)


def verdict_text(verdict: str | None) -> str:
    if verdict is None:
        return _NO_VALUE
    style = VERDICT_STYLES.get(verdict)
    return f"[{style}]{verdict}[/]" if style else verdict


def _number(value: float | None, factor: float, template: str) -> str:
    return _NO_VALUE if value is None else template.format(value * factor)
