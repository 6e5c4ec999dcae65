"""Runs the whole analysis: run directories → tables → metrics and series → ``summary.json`` and
``report.html``.

``analysed`` computes once; summaries and reports are written from the ``Analysis`` that it returns. Values
from unchanged telemetry are not computed again; if nothing changed, Spark is not started.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.analytics.failures import failing_clearly
from orchestrator.analytics.summaries import run_summary, sweep_summary
from orchestrator.errors import BadInput
from orchestrator.results.inputs import RunInput, runs_in, unique
from orchestrator.runs.files import read_json, write_atomic
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from orchestrator.analytics.log import Held
    from orchestrator.analytics.store import TableStore

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of the whole that is done, 0 to 1."""

Document = dict[str, Any]
Spark = Callable[[], "SparkSession"]
"""Returns the session to use; called only if something must be computed."""


def _say_nothing(stage: str, fraction: float) -> None:
    """Ignores progress, for callers that do not ask for it."""


@dataclass(frozen=True)
class Analysis:
    """The computed results of some directories of runs or sweeps. ``results`` are by the path of a run."""

    directories: tuple[Path, ...]
    members: tuple[tuple[RunInput, ...], ...]
    results: Mapping[Path, Document]

    @property
    def runs(self) -> list[RunInput]:
        return unique([run for group in self.members for run in group])

    @cached_property
    def summaries(self) -> dict[Path, Document]:
        """Returns the summary of every run and every sweep, by path."""
        found = {run.directory.path: run_summary(run, self.results[run.directory.path]) for run in self.runs}
        for directory, group in zip(self.directories, self.members, strict=True):
            place = RunDirectory(directory.resolve())
            if place.is_sweep:
                found[place.path] = sweep_summary(place, group, [found[run.directory.path] for run in group])
        return found

    def write_summaries(self) -> list[Document]:
        """Writes each ``summary.json``; returns those of the directories in their order."""
        found = self.summaries
        for path, summary in found.items():
            write_json(RunDirectory(path).summary, summary)
        return [found[directory.resolve()] for directory in self.directories]

    def judged_anew(self) -> "Analysis":
        """Returns the analysis with the current verdicts, and updates the tables; nothing else may have
        changed.
        """
        members = tuple(tuple(runs_in(directory)) for directory in self.directories)
        anew = replace(self, members=members)
        _restate(anew.runs)
        return anew

    def write_report(self, directory: Path, output: Path | None = None) -> Path:
        """Writes the report of one of the directories (default: its ``report.html``)."""
        from orchestrator.analytics.report import render

        place = RunDirectory(directory.resolve())
        page = render(place, self.summaries[place.path], self._pairs(place))
        target = output or place.report
        try:
            write_atomic(target, page.encode())
        except OSError as error:
            raise BadInput(f"cannot write the report to {target}: {error.strerror}") from error
        return target

    def write_files(self, directory: Path, folder: Path) -> list[Path]:
        """Writes the report's figures and tables as files of their own; returns them."""
        from orchestrator.analytics.report_files import write_files

        place = RunDirectory(directory.resolve())
        pairs = self._pairs(place)
        summaries = [self.summaries[run.directory.path] for run, _ in pairs]
        return write_files(folder, place, self.summaries[place.path], pairs, summaries)

    def _pairs(self, place: RunDirectory) -> list[tuple[RunInput, Document]]:
        """Returns the runs of one of the directories with their results."""
        group = self.members[[each.resolve() for each in self.directories].index(place.path)]
        return [(run, self.results[run.directory.path]) for run in group]


def analysed(
    directories: Sequence[Path],
    progress: Progress | None = None,
    *,
    spark: "SparkSession | Spark | None" = None,
) -> Analysis:
    """Ingests and computes. ``spark``: uses this session instead of a new one."""
    tell = progress or _say_nothing
    members = tuple(tuple(runs_in(directory)) for directory in directories)
    runs = unique([run for group in members for run in group])
    _require_names(runs)
    results = _results(runs, tell, spark)
    _restate(runs)
    return Analysis(tuple(directories), members, results)


def analyze(
    directories: Sequence[Path], progress: Progress | None = None, *, spark: "SparkSession | None" = None
) -> list[Document]:
    """Ingests, computes, writes each ``summary.json``; returns those of ``directories`` in their order."""
    tell = progress or _say_nothing
    analysis = analysed(directories, progress, spark=spark)
    tell("writing summaries", 0.97)
    documents = analysis.write_summaries()
    tell("done", 1.0)
    return documents


def tables_so_far(
    directories: Sequence[Path], progress: Progress | None = None, *, spark: "SparkSession"
) -> None:
    """Brings the tables of runs that still go on up to date. Results are for runs that have ended."""
    tell = progress or _say_nothing
    runs = unique([run for directory in directories for run in runs_in(directory)])
    _require_names(runs)
    with _telling(runs, tell) as tell:
        _take_in_and_then(_by_root(runs), tell, spark, lambda session, store, runs: None)


def write_report(
    directory: Path,
    progress: Progress | None = None,
    *,
    output: Path | None = None,
    spark: "SparkSession | None" = None,
) -> Path:
    """Writes summary and report of a run or a sweep; analyses it first if needed."""
    analysis = analysed([directory], progress, spark=spark)
    analysis.write_summaries()
    return analysis.write_report(directory, output)


def write_json(path: Path, document: Document) -> None:
    write_atomic(path, (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _root(run: RunInput) -> Path:
    return run.directory.path.parent.parent


def _by_root(runs: Sequence[RunInput]) -> dict[Path, list[RunInput]]:
    found: dict[Path, list[RunInput]] = {}
    for run in runs:
        found.setdefault(_root(run), []).append(run)
    return found


def _require_names(runs: Sequence[RunInput]) -> None:
    """Refuses a run and its copy: tables know runs by their id, and would have the rows of both under it."""
    for group in _by_root(runs).values():
        found: dict[str, RunInput] = {}
        for run in group:
            if (other := found.setdefault(run.run, run)) is not run:
                raise BadInput(namesakes_text(run.directory.path, other.directory.path))


def namesakes_text(path: Path, other: Path) -> str:
    return (
        f"{path} cannot be analysed beside {other}, which has the same id: tables would have the rows of both"
        " as one run; move one of them to another runs' directory"
    )


def _restate(runs: Sequence[RunInput]) -> None:
    """Updates the verdicts in the tables."""
    from orchestrator.analytics.store import TableStore

    for root, group in _by_root(runs).items():
        TableStore(root).restate(group)


def _results(
    runs: Sequence[RunInput], tell: Progress, spark: "SparkSession | Spark | None"
) -> Mapping[Path, Document]:
    """Returns results by run directory: stored ones of unchanged runs, the others computed in one go."""
    from orchestrator.analytics.kept import KeptResults
    from orchestrator.analytics.place import StorePlace

    files: dict[Path, Path] = {}
    missing: dict[Path, list[RunInput]] = {}
    for root, group in _by_root(runs).items():
        store = StorePlace(root)
        held = store.state.runs
        for run in group:
            kept = files[run.directory.path] = store.results(run.run)
            if not _is_current(kept, run, held.get(run.run)):
                missing.setdefault(root, []).append(run)
    if missing:
        with _telling([run for group in missing.values() for run in group], tell) as tell:
            _compute(missing, tell, spark)
    return KeptResults(files)


def _is_current(kept: Path, run: RunInput, held: "Held | None") -> bool:
    """Says whether the file has the results of the run as it is now. ``held``: what the store has of it."""
    document = read_json(kept)
    if not document or held is None or not held.made:
        return False
    from orchestrator.analytics.intake import rules
    from orchestrator.analytics.kept import is_result
    from orchestrator.analytics.layout import layout, stamp

    now = run.fingerprint(layout(run))
    return (
        held.made == now
        and held.read in ("", run.fingerprint(rules.stamp()))  # empty: the tables are there, the records not
        and is_result(document, run)
        and bool(document["stamp"] == stamp(run, now))
    )


@contextmanager
def _telling(runs: Sequence[RunInput], tell: Progress) -> Iterator[Progress]:
    """Gives a progress that remembers the step, so that an error can name it."""
    step = "preparing"

    def remember(stage: str, fraction: float) -> None:
        nonlocal step
        step = stage
        tell(stage, fraction)

    with failing_clearly([run.run for run in runs], lambda: step):
        yield remember


@contextmanager
def _starting(
    tell: Progress, spark: "SparkSession | Spark | None", runs: Sequence[RunInput]
) -> Iterator[Spark]:
    """Gives what returns the session: the one that is given, or one that starts meanwhile."""
    if spark is not None:
        yield spark if callable(spark) else lambda: spark
        return
    from orchestrator.spark.session import starting_session

    size = sum(run.bytes() for run in runs)
    with starting_session(input_bytes=size, archive_classes=True) as connect:
        yield connect
        tell("ending Spark", 0.95)


def _compute(
    missing: Mapping[Path, Sequence[RunInput]], tell: Progress, spark: "SparkSession | Spark | None"
) -> None:
    """Reads the runs, makes their tables, computes their results and stores them."""
    runs = [run for group in missing.values() for run in group]
    with _starting(tell, spark, runs) as connect:
        # All that takes long comes after the start of the JVM. Stamps come before anything is read: what
        # changes meanwhile is read again the next time.
        from orchestrator.analytics.layout import layout, stamp

        stamps = {run.run: stamp(run, run.fingerprint(layout(run))) for run in runs}

        def computing(session: "SparkSession", store: "TableStore", group: Sequence[RunInput]) -> None:
            from orchestrator.analytics.compute import compute

            tell("computing results", 0.7)
            with store.reading():
                for run, result in compute(session, store, group):
                    kept = store.results(run.run)
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    document = {"stamp": stamps[run.run], **result}
                    write_atomic(kept, json.dumps(document, separators=(",", ":")).encode())

        _take_in_and_then(missing, tell, connect, computing)


def _take_in_and_then(
    missing: Mapping[Path, Sequence[RunInput]],
    tell: Progress,
    spark: "SparkSession | Spark | None",
    then: Callable[["SparkSession", "TableStore", Sequence[RunInput]], None],
) -> None:
    """Reads the runs and makes their tables, one folder of runs after the other; calls ``then`` for each.

    Little telemetry is read here, while Spark starts; much of it by Spark's processes, side by side.
    """
    runs = [run for group in missing.values() for run in group]
    what = f"reading telemetry of {len(runs)} run{'s' if len(runs) > 1 else ''}"
    with _starting(tell, spark, runs) as connect:
        # Imported here: the JVM starts meanwhile.
        from orchestrator.analytics.ingest import make_tables
        from orchestrator.analytics.intake.taking import take_in, unread
        from orchestrator.analytics.store import TableStore
        from orchestrator.spark.tuning import BULK_BYTES

        groups = {TableStore(root): group for root, group in missing.items()}
        new = [run for store, group in groups.items() for run in unread(store, group)]
        is_much = sum(run.bytes() for run in new) >= BULK_BYTES
        if new and not is_much:
            tell(what, 0.02)
            for store, group in groups.items():
                take_in(store, group, lambda fraction: tell(what, 0.02 + 0.08 * fraction))
        tell("starting Spark", 0.1)
        session = connect()
        for store, group in groups.items():
            if is_much:
                tell(what, 0.25)
                take_in(store, group, lambda fraction: tell(what, 0.25 + 0.2 * fraction), session)
            tell("making tables", 0.45)
            make_tables(session, store, group, lambda fraction: tell("making tables", 0.45 + 0.25 * fraction))
            then(session, store, group)
