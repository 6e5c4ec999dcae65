"""`rove export`: writes the records of a run in a format of other programs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from orchestrator.cli.output import JsonFlag, errors, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir, require_folder
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs.run_directory import RunDirectory, resolve

if TYPE_CHECKING:
    from orchestrator.live.prometheus.backfill import RunRecords


def export(
    run: RunReference,
    openmetrics: Annotated[
        bool, typer.Option("--openmetrics", help="OpenMetrics with times, to be filled into Prometheus.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write; if not given, standard output.", dir_okay=False
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="When a run in virtual time is to begin, such as 2026-05-01T12:00:00Z; if not given, when "
            "it was started.",
        ),
    ] = None,
    job: Annotated[
        str, typer.Option(help="The label job of all series; that of what `rove serve` offers is rove.")
    ] = "rove-records",
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Write what a run's nodes recorded as time series, also for times when they could not be reached.

    The series have the names and labels that Prometheus gets while the run goes on. Only records that are
    believed count. Of a sweep, all its runs are written.

    [bold]Examples[/]

      rove export latest --openmetrics --output run.om

      promtool tsdb create-blocks-from openmetrics run.om data

      rove export latest --openmetrics --start 2026-05-01T12:00:00Z -o run.om
    """
    from orchestrator.live.prometheus.backfill import write

    if not openmetrics:
        raise BadInput("say in which format: --openmetrics is the one there is")
    if as_json and output is None:
        raise BadInput("--json needs --output: both would be written to standard output")
    require_folder(output)
    directory = resolve(run, runs_dir)
    records = [_records(each, start) for each in _members(directory)]
    with _opened(output) as file:
        written = write(records, file, job)
        if not written.samples and not written.left_out:
            raise RoveError(f"nothing is recorded in {directory.id}: rove status {directory.id} says why")
    if as_json:
        print_json({"output": str(output), **written._asdict()})
        return
    left_out = f"; {written.left_out} left out: of impossible times or values" if written.left_out else ""
    errors.print(f"{written.samples} samples of {written.series} series{left_out}", markup=False)
    if written.cut:
        first, more = written.cut_nodes[0], len(written.cut_nodes) - 1
        nodes = f"{first} and {more} more" if more else first
        errors.print(
            f"{written.cut} rounds of samples left out: {nodes} recorded more than a node may have",
            markup=False,
        )
    if output is not None:
        errors.print(f"next: promtool tsdb create-blocks-from openmetrics {output} DATA", markup=False)


def _members(directory: RunDirectory) -> list[RunDirectory]:
    return directory.members() if directory.is_sweep else [directory]


def _records(directory: RunDirectory, start: str | None) -> "RunRecords":
    from orchestrator.live.facts import read_facts
    from orchestrator.live.prometheus.backfill import RunRecords
    from orchestrator.live.prometheus.targets import run_target

    facts = read_facts(directory)
    if facts is None:
        raise BadInput(f"run {directory.id} was not planned: it has no records")
    offset_ns = 0
    if facts.virtual:
        begin_ns = _moment_ns(start) if start is not None else facts.started_ns
        if begin_ns is None:
            raise BadInput(f"manifest.json of {directory.id} does not say when it was started: use --start")
        offset_ns = begin_ns
    elif start is not None:
        raise BadInput(f"run {directory.id} has real times: --start is for runs in virtual time")
    return RunRecords(directory, facts, run_target(directory, facts), offset_ns)


def _moment_ns(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--start {text}: not a time such as 2026-05-01T12:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment.year < 1971:
        raise BadInput(f"--start {text}: Prometheus has no times before 1970")
    return round(moment.timestamp() * 1e9)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Opens what is written to; a file takes its name only when it is complete."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    draft = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
        draft.replace(output)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
