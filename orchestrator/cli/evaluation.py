"""After the runs: computes figures from their records in Spark, and checks them against expectations."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from orchestrator.lifecycle.invocation import Finished, FinishedRun
from orchestrator.results.expectations import evaluate_expectations, expected_value, parse_expectation
from orchestrator.results.inputs import read_run
from orchestrator.runs import processes
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import read_object, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict, judge_expectations, judge_reading, noted


class Owner(Protocol):
    """The owner of the runs of one command: the command that ran them, or one that collected them later."""

    @property
    def directory(self) -> RunDirectory: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def events(self) -> EventLog: ...

    def judge(self, runs: Sequence[FinishedRun]) -> Verdict:
        """Judges all runs together."""
        ...


@dataclass(frozen=True)
class Evaluated:
    """The results of the runs; ``summaries`` are by run id, ``report`` is None if nothing was measured."""

    verdict: Verdict
    runs: tuple[FinishedRun, ...]
    summaries: dict[str, Any]
    report: Path | None


def evaluate(
    invocation: Owner, finished: Finished, expect: Sequence[str], progress: Callable[[str, float], None]
) -> Evaluated:
    # Imported here: only the analysis needs it.
    from orchestrator.analytics import pipeline
    from orchestrator.spark.session import starting_session

    measured = [read_run(run.directory) for run in finished.runs if _was_measured(run.directory)]
    if not any(run.segments for run in measured):
        return Evaluated(finished.verdict, finished.runs, {}, None)
    path = invocation.directory.path
    size = sum(run.bytes() for run in measured)
    with _scratch(invocation), starting_session(input_bytes=size, archive_classes=True) as spark:
        analysis = pipeline.analysed([path], progress, spark=spark)
    found = analysis.summaries
    runs = tuple(_held_to(expect, run, found.get(run.directory.path)) for run in finished.runs)
    verdict = invocation.judge(runs)
    # Summaries, tables and report contain the verdicts as they are now.
    analysis = analysis.judged_anew()
    progress("writing summaries", 0.9)
    analysis.write_summaries()
    report = analysis.write_report(path)
    progress("done", 1.0)
    invocation.events.add("analysis", report=report.name)
    summaries = {run.directory.id: analysis.summaries.get(run.directory.path) for run in runs}
    return Evaluated(verdict, runs, summaries, report)


def _was_measured(directory: RunDirectory) -> bool:
    """Whether the run was measured; one that failed before has nothing but its verdict."""
    return read_object(directory.manifest).get("measure_from_ns") is not None


def _held_to(expect: Sequence[str], run: FinishedRun, summary: dict[str, Any] | None) -> FinishedRun:
    if summary is None:
        return run
    sound = noted(judge_reading(run.verdict, summary["nodes"]), summary["notes"])
    if not expect and sound == run.verdict:
        return run
    failed = evaluate_expectations(expect, summary)
    unmet = [failure.expectation for failure in failed]
    expected = [parse_expectation(text) for text in expect]
    documents = [
        {"expect": str(e), "value": expected_value(e, summary), "holds": e not in unmet} for e in expected
    ]
    verdict = judge_expectations(sound, documents, [str(failure) for failure in failed])
    write_json(run.directory.verdict, verdict.document())
    return FinishedRun(run.directory, run.factors, verdict)


@contextmanager
def _scratch(invocation: Owner) -> Iterator[None]:
    """Spark's JVM carries the run's mark and keeps its files in the run's own temporary directory."""
    directory = invocation.directory
    intent = invocation.journal.intend("analysis", path=directory.temporary.name, mark=directory.id)
    directory.temporary.mkdir(exist_ok=True)
    marks = processes.mark(directory.id, directory.path)
    os.environ.update(marks)
    before, tempfile.tempdir = tempfile.tempdir, str(directory.temporary.resolve())
    try:
        yield
    finally:
        tempfile.tempdir = before
        for name in marks:
            os.environ.pop(name, None)
    invocation.journal.done(intent)
