"""Draws processor time and memory of the analysis against the number of records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.analytics.report_files import standalone
from orchestrator.results.svg import WIDTH, canvas, finish, logarithmic_x

HEIGHT = 3.1


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Writes the drawing. ``rows``: those of the benchmark, smallest size first."""
    millions = [row["records"] / 1e6 for row in rows]
    with canvas(1, 2, figsize=(WIDTH + 1.6, HEIGHT)) as (picture, ((time, memory),)):
        for axis, what, title in (
            (time, "cpu_s", "processor time, s"),
            (memory, "peak_gb", "memory at most, GB"),
        ):
            axis.plot(millions, [row[f"rove_{what}"] for row in rows], marker="o", label="rove analyze")
            known = [(x, row[f"duckdb_{what}"]) for x, row in zip(millions, rows, strict=True)]
            points = [(x, y) for x, y in known if y is not None]
            axis.plot(*zip(*points, strict=True), marker="D", linestyle="none", label="DuckDB")
            logarithmic_x(axis, millions[-1] / millions[0])
            axis.set_title(title, loc="left")
            axis.set_xlabel("million records")
        time.set_yscale("log")
        memory.set_ylim(bottom=0)
        time.legend()
        told = "; ".join(
            f"{x:.2g} million records: {row['rove_cpu_s']:.0f} s, {row['rove_peak_gb']:.1f} GB"
            for x, row in zip(millions, rows, strict=True)
        )
        figure = finish(picture, "pipeline", "What the analysis costs", told)
    file.write_text(standalone(figure))
