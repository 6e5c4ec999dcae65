"""Writes tables whose rows are records or lines of ground truth as they were read: from columns to columns,
without Spark, in bounded memory.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from orchestrator.analytics.gather import divided
from orchestrator.analytics.intake import columns as kept
from orchestrator.analytics.intake.files import COMPRESSION, GROUP_ROWS, PIECE_ROWS
from orchestrator.results.contribution import AsRead, Table

MOST_ROWS = 2**22
"""About so many rows are in a file: all of it is written anew if one of its runs changes."""


def source_of(made: AsRead) -> str:
    """Returns the name under which the store keeps these rows."""
    return kept.of_record(made.record) if made.record else kept.of_truth(made.truth)


def write_as_read(
    files: Sequence[Path], runs: Sequence[str], table: Table, made: AsRead, place: Path
) -> list[Path]:
    """Writes the rows of ``runs`` in ``files``, of each run in the table's order; returns the new files.

    Of a run with more than ``PIECE_ROWS`` rows, which were written in the order of time, each piece is put in
    order.
    """
    written: list[Path] = []
    schema = kept.arrow(table.columns)
    writer: parquet.ParquetWriter | None = None
    rows = 0
    for chunk in _grouped(_ordered(files, runs, table, made, schema)):
        if writer is None:
            written.append(place / f"part-{len(written)}.parquet")
            writer = parquet.ParquetWriter(written[-1], schema, **COMPRESSION)
        writer.write_table(chunk, GROUP_ROWS)
        rows += chunk.num_rows
        if rows >= MOST_ROWS:
            writer.close()
            writer, rows = None, 0
    if writer is not None:
        writer.close()
    return written


def _ordered(
    files: Sequence[Path], runs: Sequence[str], table: Table, made: AsRead, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yields the rows of one run after the other. A run that several tasks have read, or that is long, comes
    several times.
    """
    names = [made.names.get(name, name) for name in table.columns]
    order = [(name, "ascending") for name in table.order]
    for found in _by_run(files, pa.array(list(runs), pa.string())):
        chosen = found.filter(made.where(found)) if made.where else found
        if chosen.num_rows:
            plain = chosen.select(names).rename_columns(list(table.columns)).cast(schema)
            yield plain.sort_by(order) if order else plain


def _by_run(files: Sequence[Path], runs: pa.Array) -> Iterator[pa.Table]:
    """Yields rows that follow each other in a file and are of the same run."""
    for path in files:
        rest: list[pa.Table] = []
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number)
                for part in divided(group):
                    is_long = sum(each.num_rows for each in rest) >= PIECE_ROWS
                    if rest and (is_long or rest[0]["run"][0] != part["run"][0]):
                        yield from _wanted(rest, runs)
                        rest = []
                    rest.append(part)
        yield from _wanted(rest, runs)


def _wanted(parts: Sequence[pa.Table], runs: pa.Array) -> Iterator[pa.Table]:
    if parts and pc.is_in(parts[0]["run"][0], runs).as_py():
        yield pa.concat_tables(parts)


def _grouped(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Puts small tables together, so that a file has few groups of rows."""
    held: list[pa.Table] = []
    for each in tables:
        held.append(each)
        if sum(table.num_rows for table in held) >= GROUP_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
