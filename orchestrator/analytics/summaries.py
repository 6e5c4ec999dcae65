"""Builds ``summary.json`` of a run and of a sweep from computed results."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.analytics.layout import contributed
from orchestrator.results.cells import cells
from orchestrator.results.inputs import RunInput
from orchestrator.results.silence import silences
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import ROUTING
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import shared_notes

SUMMARY_SCHEMA = 1

Document = dict[str, Any]


def run_summary(run: RunInput, result: Mapping[str, Any]) -> Document:
    """Returns the summary. ``metrics`` has those of the whole run and, if there is only one application, its
    own.

    ``apps`` has those of each. Counts that an application adds beside its metrics are also summed up at the
    top.
    """
    apps: Document = {}
    beside: Document = {}
    flaws: Document = {}
    for name, app in run.apps.items():
        part = result["apps"][name]
        figures = [each for contribution in contributed(app) for each in contribution.figures]
        shown = {key: part["series"][key] for each in figures for key in each.summary}
        apps[name] = {"kind": part["kind"], "metrics": part["metrics"], **shown}
        for key, counts in shown.items():
            beside[key] = in_all([beside.get(key, {}), counts])
        for key in (key for each in figures for key in each.flaws):
            flaws[key] = flaws.get(key, 0) + part["series"][key]
    only = next(iter(apps.values()))["metrics"] if len(apps) == 1 else {}
    return {
        "schema": SUMMARY_SCHEMA,
        "run": run.run,
        "experiment": run.manifest.get("experiment", run.directory.experiment),
        "factors": run.factors,
        "seed": run.manifest.get("seed"),
        "clock": run.manifest.get("clock"),
        "verdict": run.verdict.get("verdict"),
        "reasons": list(run.verdict.get("reasons") or []),
        "notes": notes_of(run, apps, result),
        "refused": list(run.verdict.get("refused") or []),
        **({"interventions": done} if (done := list(run.verdict.get("interventions") or [])) else {}),
        "started": run.manifest.get("started"),
        "finished": run.manifest.get("finished"),
        "metrics": {**result["metrics"], **only},
        "apps": apps,
        **beside,
        "telemetry": {**result["series"]["telemetry"], **flaws},
        "nodes": result["series"]["nodes"],
        "radio": run.punctuality(),
    }


def notes_of(run: RunInput, apps: Document, result: Mapping[str, Any]) -> list[str]:
    """Returns what a reader must know: the verdict's notes, and who was silent without need."""
    begin, end = result["series"]["window_s"]
    window_s = end - begin if begin is not None and end is not None else 0.0
    silent = silences(apps, window_s, relays=run.manifest.get(ROUTING) != "none")
    return list(dict.fromkeys([*(run.verdict.get("notes") or []), *silent]))


def in_all(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Returns the sums of counts by name."""
    names = sorted({name for counted in counts for name in counted})
    return {name: sum(counted.get(name, 0) for counted in counts) for name in names}


def sweep_summary(place: RunDirectory, runs: Sequence[RunInput], summaries: Sequence[Document]) -> Document:
    sweep = read_object(place.sweep)
    verdict = read_object(place.verdict)
    varied = list(dict.fromkeys(name for summary in summaries for name in summary["factors"]))
    beside = _beside(runs)
    kept = ("run", "factors", "seed", "verdict", "metrics", "apps", *beside)
    return {
        "schema": SUMMARY_SCHEMA,
        "run": place.id,
        "experiment": place.experiment,
        "factors": sweep.get("factors") or varied,
        "verdict": verdict.get("verdict"),
        "reasons": list(verdict.get("reasons") or []),
        "notes": list(shared_notes({summary["run"]: summary["notes"] for summary in summaries})),
        "refused": [entry for summary in summaries for entry in summary["refused"]],
        "started": min((s["started"] for s in summaries if s["started"]), default=None),
        "finished": max((s["finished"] for s in summaries if s["finished"]), default=None),
        **{name: in_all([summary.get(name, {}) for summary in summaries]) for name in beside},
        "apps": _apps(summaries, beside),
        "cells": cells(summaries, [run.is_usable for run in runs]),
        "runs": [{name: summary[name] for name in kept if name in summary} for summary in summaries],
    }


def _apps(summaries: Sequence[Document], beside: Sequence[str]) -> Document:
    """Returns what applications add beside their metrics, over all runs."""
    kinds = {name: app["kind"] for summary in summaries for name, app in summary["apps"].items()}
    entries = {name: [s["apps"][name] for s in summaries if name in s["apps"]] for name in kinds}
    return {
        name: {"kind": kind, **{key: in_all([each.get(key, {}) for each in entries[name]]) for key in beside}}
        for name, kind in kinds.items()
    }


def _beside(runs: Sequence[RunInput]) -> list[str]:
    """Returns the names of what applications of the runs add beside their metrics."""
    figures = [
        each
        for run in runs
        for app in run.apps.values()
        for contribution in contributed(app)
        for each in contribution.figures
    ]
    return list(dict.fromkeys(name for each in figures for name in each.summary))
