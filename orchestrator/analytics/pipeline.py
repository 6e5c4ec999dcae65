"""The whole analysis: run directories → tables → figures of merit → ``summary.json`` and ``report.html``.

What has been computed from unchanged telemetry is not computed again, and then Spark is not even started.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.analytics.cells import cells
from orchestrator.analytics.inputs import RunInput, runs_in, unique
from orchestrator.analytics.kept import is_result
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs.files import read_json, read_object, write_atomic
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from orchestrator.analytics.store import TableStore

SUMMARY_SCHEMA = 1
RESULTS_VERSION = 7
"""Part of what results are kept under: raise it when metrics or series are computed in another way."""

_OF_MEMBERS = ("run", "factors", "seed", "verdict", "metrics", "operator_faults")

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of the whole that is done, 0 to 1."""

Document = dict[str, Any]


def analyze(
    directories: Sequence[Path], progress: Progress | None = None, *, spark: "SparkSession | None" = None
) -> list[Document]:
    """Ingest and compute, write each ``summary.json``, and return those of ``directories`` in their order.

    A directory is that of a run or of a sweep. ``spark``: use this session instead of one of our own.
    """
    tell = progress or _say_nothing
    members = [runs_in(directory) for directory in directories]
    runs = unique([run for group in members for run in group])
    results = _results(runs, tell, spark)
    tell("writing summaries", 0.97)
    summaries = {run.directory.path: _summary(run, results[run.directory.path]) for run in runs}
    for path, summary in summaries.items():
        write_json(RunDirectory(path).summary, summary)
    documents = []
    for directory, group in zip(directories, members, strict=True):
        place = RunDirectory(directory.resolve())
        if place.is_sweep:
            document = _sweep_summary(place, group, [summaries[run.directory.path] for run in group])
            write_json(place.summary, document)
        else:
            document = summaries[place.path]
        documents.append(document)
    tell("done", 1.0)
    return documents


def write_report(
    directory: Path,
    progress: Progress | None = None,
    *,
    output: Path | None = None,
    spark: "SparkSession | None" = None,
) -> Path:
    """Write the report of a run or a sweep (default: its ``report.html``); analyses it first where needed."""
    from orchestrator.analytics.report import render

    summary = analyze([directory], progress, spark=spark)[0]
    runs = runs_in(directory)
    results = _results(runs, _say_nothing, spark)
    place = RunDirectory(directory.resolve())
    page = render(place, summary, [(run, results[run.directory.path]) for run in runs])
    target = output or place.report
    try:
        write_atomic(target, page.encode())
    except OSError as error:
        raise BadInput(f"cannot write the report to {target}: {error.strerror}") from error
    return target


def write_json(path: Path, document: Document) -> None:
    write_atomic(path, (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _say_nothing(stage: str, fraction: float) -> None:
    """For callers that do not ask for progress."""


def _results(runs: Sequence[RunInput], tell: Progress, spark: "SparkSession | None") -> dict[Path, Document]:
    """By run directory; from the store where the run is unchanged, otherwise computed in one go."""
    from orchestrator.analytics.store import TableStore

    roots = {run.directory.path: run.directory.path.parent.parent for run in runs}
    stores = {root: TableStore(root) for root in roots.values()}
    prints = {run.directory.path: run.fingerprint() for run in runs}
    stamps = {path: f"{RESULTS_VERSION} {found}" for path, found in prints.items()}
    known: dict[Path, Document] = {}
    for run in runs:
        path = run.directory.path
        store = stores[roots[path]]
        kept = read_json(store.results(run.run))
        if is_result(kept) and kept["stamp"] == stamps[path] and store.holds(run.run, prints[path]):
            known[path] = kept
    missing = [run for run in runs if run.directory.path not in known]
    if missing:
        with _session(tell, spark, missing) as session:
            for root, store in stores.items():
                group = [run for run in missing if roots[run.directory.path] == root]
                if group:
                    known |= _compute(session, store, group, stamps, tell)
    for run in runs:
        stores[roots[run.directory.path]].restate(run)
    return known


@contextmanager
def _session(
    tell: Progress, spark: "SparkSession | None", runs: Sequence[RunInput]
) -> Iterator["SparkSession"]:
    from orchestrator.analytics.session import spark_session

    tell("starting Spark", 0.02)
    with nullcontext(spark) if spark else spark_session(input_bytes=sum(r.bytes() for r in runs)) as session:
        yield session


def _compute(
    spark: "SparkSession",
    store: "TableStore",
    runs: Sequence[RunInput],
    stamps: dict[Path, str],
    tell: Progress,
) -> dict[Path, Document]:
    import pyarrow as pa
    from pyspark.errors import PySparkException

    try:
        return _computed(spark, store, runs, stamps, tell)
    except (PySparkException, pa.ArrowException, OverflowError) as error:
        names = ", ".join(run.run for run in runs[:3])
        text = str(error).partition("\n")[0]
        raise RoveError(f"the analysis of {names} failed in Spark: {text}") from error


def _computed(
    spark: "SparkSession",
    store: "TableStore",
    runs: Sequence[RunInput],
    stamps: dict[Path, str],
    tell: Progress,
) -> dict[Path, Document]:
    from orchestrator.analytics.ingest import ingest
    from orchestrator.analytics.metrics import measure
    from orchestrator.analytics.series import draw_from

    what = f"reading telemetry of {len(runs)} run{'s' if len(runs) > 1 else ''}"
    tell(what, 0.25)
    ingest(spark, store, runs, lambda fraction: tell(what, 0.25 + 0.4 * fraction))
    tell("computing results", 0.7)
    measured = measure(spark, store, runs)
    tell("preparing figures", 0.85)
    series = draw_from(spark, store, runs)
    results = {}
    for run in runs:
        path = run.directory.path
        results[path] = {"stamp": stamps[path], **measured[run.run], "series": series[run.run]}
        kept = store.results(run.run)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, json.dumps(results[path], separators=(",", ":")).encode())
    return results


def _summary(run: RunInput, result: Document) -> Document:
    return {
        "schema": SUMMARY_SCHEMA,
        "run": run.run,
        "experiment": run.manifest.get("experiment", run.directory.experiment),
        "factors": run.factors,
        "seed": run.manifest.get("seed"),
        "clock": run.manifest.get("clock"),
        "verdict": run.verdict.get("verdict"),
        "reasons": list(run.verdict.get("reasons") or []),
        "refused": list(run.verdict.get("refused") or []),
        "started": run.manifest.get("started"),
        "finished": run.manifest.get("finished"),
        "metrics": result["metrics"],
        "operator_faults": result["operator_faults"],
        "telemetry": result["telemetry"],
        "nodes": result["nodes"],
        "radio": run.punctuality(),
    }


def _in_all(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = sorted({name for counted in counts for name in counted})
    return {name: sum(counted.get(name, 0) for counted in counts) for name in names}


def _sweep_summary(place: RunDirectory, runs: Sequence[RunInput], summaries: Sequence[Document]) -> Document:
    sweep = read_object(place.sweep)
    verdict = read_object(place.verdict)
    varied = list(dict.fromkeys(name for summary in summaries for name in summary["factors"]))
    return {
        "schema": SUMMARY_SCHEMA,
        "run": place.id,
        "experiment": place.experiment,
        "factors": sweep.get("factors") or varied,
        "verdict": verdict.get("verdict"),
        "reasons": list(verdict.get("reasons") or []),
        "refused": [entry for summary in summaries for entry in summary["refused"]],
        "started": min((s["started"] for s in summaries if s["started"]), default=None),
        "finished": max((s["finished"] for s in summaries if s["finished"]), default=None),
        "operator_faults": _in_all([summary["operator_faults"] for summary in summaries]),
        "cells": cells(summaries, [run.is_usable for run in runs]),
        "runs": [{name: summary[name] for name in _OF_MEMBERS} for summary in summaries],
    }
