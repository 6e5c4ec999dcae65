"""Writes what a report shows as files of their own: figures as SVG and PNG, tables as CSV."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from orchestrator.analytics.parts import drawings
from orchestrator.analytics.report import all_views
from orchestrator.errors import BadInput
from orchestrator.results import registry
from orchestrator.results.cells import cells
from orchestrator.results.inputs import RunInput
from orchestrator.results.rows import Row, breakdown_rows, cell_rows, comparison_rows, run_rows
from orchestrator.results.svg import Figure, with_pictures
from orchestrator.results.views import Result
from orchestrator.runs.files import write_atomic
from orchestrator.runs.run_directory import RunDirectory

_FORMULA = re.compile(r"\s*[=+@\t\r-]")
_QUANTITY = re.compile(r"[+-]?[0-9][0-9.]* ?[A-Za-z%/]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def write_files(
    folder: Path,
    place: RunDirectory,
    summary: Mapping[str, Any],
    runs: Sequence[tuple[RunInput, Result]],
    summaries: Sequence[Mapping[str, Any]],
) -> list[Path]:
    """Writes the files into ``folder``; returns them. ``summaries`` are those of the single runs."""
    found: dict[str, bytes] = {
        f"{name}.csv": _csv(rows)
        for name, rows in _tables(summary, summaries, [run.is_usable for run, _ in runs]).items()
        if rows
    }
    with with_pictures():
        for view in all_views(place, summary, runs):
            prefix = f"{view.app}-" if view.app and not view.is_only else ""
            for figure in drawings(view, "figures", "radio"):
                name = _UNSAFE.sub("_", f"{prefix}{figure.name}")
                found[f"{name}.svg"] = standalone(figure).encode()
                found[f"{name}.png"] = figure.picture
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            write_atomic(folder / name, content)
    except OSError as error:
        raise BadInput(f"cannot write the report's files to {folder}: {error.strerror}") from error
    return [folder / name for name in sorted(found)]


def standalone(figure: Figure) -> str:
    """Returns the drawing as a file of its own: with the colours that the page of a report gives it."""
    css = files("orchestrator.analytics").joinpath("report.css").read_text()
    colours = css.partition("* {")[0].replace(":root", "svg")
    head, rest = figure.markup.split(">", 1)
    style = f"<style>{colours}svg {{ background: var(--paper); font-family: sans-serif; }}</style>"
    return f'{head} xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{style}{rest}\n'


def _tables(
    summary: Mapping[str, Any], summaries: Sequence[Mapping[str, Any]], usable: Sequence[bool]
) -> dict[str, list[Row]]:
    groups = summary.get("cells") or cells([dict(each) for each in summaries], usable)
    breakdowns = {
        breakdown.metric
        for cell in groups
        for app in cell["apps"].values()
        for breakdown in registry.breakdowns(app["kind"])
    }
    return {
        "runs": run_rows(summaries, usable),
        "cells": cell_rows(groups),
        "comparisons": comparison_rows(groups),
        **{name: breakdown_rows(groups, name) for name in sorted(breakdowns)},
    }


def _csv(rows: Sequence[Row]) -> bytes:
    """Returns a table with the columns of all rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writerow({name: _inert(name) for name in columns})
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _inert(value: Any) -> Any:
    """Keeps spreadsheets from computing a text: names and factors may be somebody else's."""
    if isinstance(value, str) and _FORMULA.match(value) and not _QUANTITY.fullmatch(value):
        return f"'{value}"
    return value
