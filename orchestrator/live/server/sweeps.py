"""A sweep as the page shows it: its cells, which of them are done, running or failed, and their results."""

from collections.abc import Mapping
from typing import Any

from orchestrator.foreign_text import one_line
from orchestrator.lifecycle.teardown import last_phase
from orchestrator.live.server.catalogue import Catalogue, Row
from orchestrator.runs.files import read_object
from orchestrator.runs.run_directory import RunDirectory, member_id

MOST_CELLS = 10_000
MOST_REASONS = 5
MOST_RESULTS = 60
LONGEST = 300
WAITING = "waiting"
RUNNING = "running"

Totals = Mapping[str, Mapping[str, Any]]
"""By run: what was counted in it so far, where it is known and no analysis has been made."""


class Sweeps:
    """Reads each member's files once they have changed. Blocks: call it in a thread."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[str, tuple[object, dict[str, Any]]] = {}

    def document(self, sweep_id: str, totals: Totals) -> dict[str, Any] | None:
        """Returns None if there is no such sweep."""
        row = self._catalogue.row(sweep_id)
        if row is None or not row.is_sweep:
            return None
        listed = read_object(row.directory.sweep)
        planned = _planned(listed)
        members = {run.id: run for run in row.directory.members()}
        numbers = {member_id(sweep_id, number): number for number in range(1, len(planned) + 1)}
        cells = [
            self._cell(run_id, number, planned[number - 1], run_id in members, totals)
            for run_id, number in numbers.items()
        ]
        cells += [self._cell(run_id, None, {}, True, totals) for run_id in members if run_id not in numbers]
        factors = listed.get("factors")
        return {
            **row.document(list(members)),
            "reasons": _reasons(row.directory),
            "factors": [str(name) for name in factors] if isinstance(factors, list) else [],
            "cells": cells[:MOST_CELLS],
            "counts": _counts(cells),
        }

    def unanalysed(self, document: Mapping[str, Any]) -> list[RunDirectory]:
        """Returns the runs of a sweep's document that have begun and are not analysed, the newest first."""
        cells = [cell for cell in document["cells"] if cell["state"] != WAITING and not cell["analysed"]]
        found = [self._catalogue.find(cell["run"]) for cell in reversed(cells)]
        return [run for run in found if run is not None]

    def _cell(
        self, run_id: str, number: int | None, factors: Mapping[str, Any], started: bool, totals: Totals
    ) -> dict[str, Any]:
        row = self._catalogue.row(run_id) if started else None
        cell: dict[str, Any] = {"run": run_id, "number": number, "factors": dict(factors), "state": WAITING}
        if row is None:
            return cell | {"verdict": None, "reasons": [], "phase": None, "results": {}, "analysed": False}
        facts = self._facts(row)
        results = facts["results"] or dict(totals.get(run_id, {}))
        return cell | {
            "state": row.state,
            "verdict": row.verdict,
            "started": row.started,
            **facts,
            "factors": dict(factors) or facts["factors"],
            "results": results,
        }

    def _facts(self, row: Row) -> dict[str, Any]:
        run = row.directory
        stamp = row.stamp, _mtime(run)
        known = self._known.get(run.id)
        if known is not None and known[0] == stamp and row.state != RUNNING:
            return known[1]
        summary = read_object(run.summary)
        factors = read_object(run.manifest).get("factors")
        metrics = summary.get("metrics")
        facts = {
            "factors": factors if isinstance(factors, dict) else {},
            "reasons": _reasons(run),
            "phase": last_phase(run),
            "results": _results(metrics),
            "analysed": isinstance(metrics, dict),
        }
        self._known[run.id] = stamp, facts
        return facts


def _planned(listed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the factors of each cell; sweeps of earlier versions list only what was started."""
    cells = listed.get("cells")
    if not isinstance(cells, list):
        return []
    return [cell if isinstance(cell, dict) else {} for cell in cells[:MOST_CELLS]]


def _results(metrics: Any) -> dict[str, float]:
    if not isinstance(metrics, dict):
        return {}
    numbers = {
        str(name): value
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return dict(list(numbers.items())[:MOST_RESULTS])


def _reasons(run: RunDirectory) -> list[str]:
    reasons = read_object(run.verdict).get("reasons")
    return (
        [one_line(str(each), LONGEST) for each in reasons[:MOST_REASONS]] if isinstance(reasons, list) else []
    )


def _counts(cells: list[dict[str, Any]]) -> dict[str, int]:
    """How many cells are in each state, the ended ones by verdict."""
    counts: dict[str, int] = {}
    for cell in cells:
        name = str(cell["verdict"] or cell["state"])
        counts[name] = counts.get(name, 0) + 1
    return counts


def _mtime(run: RunDirectory) -> int:
    try:
        return run.summary.stat().st_mtime_ns
    except OSError:
        return 0
