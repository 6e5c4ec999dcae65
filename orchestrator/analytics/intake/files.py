"""Writes rows of several kinds to one Parquet file each, in bounded memory."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from orchestrator.analytics.intake.columns import array

BLOCK_ROWS = 32_768
"""Rows that are held as plain values before they become columns."""
GROUP_ROWS = 262_144
"""Rows of a row group of a file."""
PIECE_ROWS = 4 * GROUP_ROWS
"""Rows of a run that are held in memory at the same time, to be put in order."""
COMPRESSION = {"compression": "zstd", "compression_level": 1}


class Written(NamedTuple):
    """A file: what it holds (``of``), its name in its directory, and of which runs it has rows."""

    of: str
    name: str
    runs: tuple[str, ...]


class Columnar:
    """Collects rows of one kind. A row has the values of all columns but ``run``, in their order."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self._of_runs: list[tuple[str, int]] = []
        self._blocks: list[pa.RecordBatch] = []
        self._held = 0
        self._writer: parquet.ParquetWriter | None = None
        self.runs: dict[str, None] = {}

    def add(self, run: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Adds rows of a run."""
        if not rows:
            return
        self.runs[run] = None
        self._rows += rows
        self._of_runs.append((run, len(rows)))
        if len(self._rows) >= BLOCK_ROWS:
            self._close_block()

    def add_columns(self, run: str, table: pa.Table) -> None:
        """Adds rows of a run that are columns already, all but ``run``."""
        self._close_block()
        self.runs[run] = None
        whole = table.add_column(0, self._schema.field(0), pa.repeat(run, table.num_rows))
        self._hold(whole.cast(self._schema).to_batches())

    def finish(self) -> None:
        """Writes the rest, and completes the file."""
        self._close_block()
        self._write_group()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _close_block(self) -> None:
        if not self._rows:
            return
        names = pa.array([run for run, _ in self._of_runs], pa.string())
        places = [place for place, (_, count) in enumerate(self._of_runs) for _ in range(count)]
        values = zip(*self._rows, strict=True)
        columns = [names.take(pa.array(places, pa.int32()))]
        columns += [
            array(column, field.type) for column, field in zip(values, list(self._schema)[1:], strict=True)
        ]
        self._rows, self._of_runs = [], []
        self._hold([pa.RecordBatch.from_arrays(columns, schema=self._schema)])

    def _hold(self, blocks: Sequence[pa.RecordBatch]) -> None:
        self._blocks += blocks
        self._held += sum(block.num_rows for block in blocks)
        if self._held >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if not self._blocks:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, self._schema, **COMPRESSION)
        self._writer.write_table(pa.Table.from_batches(self._blocks, self._schema), GROUP_ROWS)
        self._blocks, self._held = [], 0


class Sheaf:
    """One file for each kind, made when its first row comes. ``schemas``: by kind, gives its columns, of
    which ``run`` is the first.
    """

    def __init__(self, directory: Path, prefix: str, schemas: Mapping[str, Callable[[], pa.Schema]]) -> None:
        self._directory = directory
        self._prefix = prefix
        self._schemas = schemas
        self._files: dict[str, Columnar] = {}

    def add(self, of: str, run: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._file(of).add(run, rows)

    def add_columns(self, of: str, run: str, table: pa.Table) -> None:
        if table.num_rows:
            self._file(of).add_columns(run, table)

    def _file(self, of: str) -> Columnar:
        if of not in self._files:
            self._files[of] = Columnar(self._path(of), self._schemas[of]())
        return self._files[of]

    def finish(self) -> list[Written]:
        """Completes all files and says what they are."""
        for file in self._files.values():
            file.finish()
        return [Written(of, self._path(of).name, tuple(file.runs)) for of, file in self._files.items()]

    def _path(self, of: str) -> Path:
        return self._directory / f"{self._prefix}-{of.replace(' ', '-')}.parquet"
