"""Stores tables in ``<runs>/.tables/v<VERSION>/<table>/run=<run>/``: complete for a run, or not at all.

A run's tables are renamed into place under the store's lock. A marker written last says that all of them are
there, and from which input. Everything in here is derived and may be deleted at any time.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from orchestrator.analytics.layout import VERSION
from orchestrator.analytics.schemas import struct
from orchestrator.errors import RoveError
from orchestrator.results import registry
from orchestrator.results.inputs import RunInput
from orchestrator.runs.files import read_json, write_json

LOCK_TIMEOUT_S = 300.0


class TableStore:
    def __init__(self, runs_root: Path) -> None:
        self.root = runs_root / ".tables" / f"v{VERSION}"

    def partition(self, table: str, run: str) -> Path:
        return self.root / table / f"run={run}"

    def results(self, run: str) -> Path:
        """Returns the file that stores results computed from the run's tables."""
        return self.root / "results" / f"{run}.json"

    def holds(self, run: str, fingerprint: str) -> bool:
        marker = read_json(self._marker(run))
        return (
            isinstance(marker, dict)
            and marker.get("fingerprint") == fingerprint
            and marker.get("files") == self._files(run)
        )

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Makes this process the only writer, with an empty staging directory. The lock ends with the
        process.
        """
        staging = self.root / "staging"
        try:
            self._make_private()
            self._refuse_links()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            lock = os.open(self.root / "lock", flags, 0o644)
        except OSError as error:
            raise RoveError(f"cannot keep tables in {self.root}: {error.strerror}") from error
        try:
            _acquire(lock, self.root)
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir()
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        finally:
            os.close(lock)

    def _make_private(self) -> None:
        """Makes the store private:
        tables contain everything that records do, and their content is trusted.
        """
        tables = self.root.parent
        if tables.is_symlink():
            return
        tables.mkdir(mode=0o700, parents=True, exist_ok=True)
        if tables.stat().st_uid == os.geteuid():
            tables.chmod(0o700)
        self.root.mkdir(exist_ok=True)

    def _refuse_links(self) -> None:
        """Refuses symbolic links, so that nothing outside is replaced or removed."""
        for path in (self.root.parent, self.root, *self.root.iterdir()):
            if path.is_symlink():
                raise RoveError(f"cannot keep tables in {self.root}: {path} is a link: remove it")

    def commit(self, staging: Path, ingested: RunInput, fingerprint: str) -> None:
        """Replaces the run's tables by those in ``staging``.
        If interrupted, the run counts as not ingested.
        """
        run = ingested.run
        marker = self._marker(run)
        marker.unlink(missing_ok=True)
        for table in registry.tables():
            final = self.partition(table, run)
            if final.exists():
                final.rename(staging / f"replaced-{table}-{run}")
            prepared = staging / table / final.name
            if prepared.exists():
                final.parent.mkdir(exist_ok=True)
                prepared.rename(final)
        marker.parent.mkdir(exist_ok=True)
        self._mark(ingested, fingerprint)

    def restate(self, run: RunInput) -> None:
        """Updates the verdict in the ``runs`` table, if nothing else has changed."""
        marker = read_json(self._marker(run.run))
        if not isinstance(marker, dict) or marker.get("judgement") == run.judgement():
            return
        with self.writing() as staging:
            for path in self.partition("runs", run.run).glob("*.parquet"):
                table = parquet.read_table(path, partitioning=None)
                for name, value in run.judgement().items():
                    field = table.schema.field(name)
                    column = table.schema.get_field_index(name)
                    table = table.set_column(column, field, pa.array([value], field.type))
                # Use another name, because Spark stores a checksum beside the old one.
                parquet.write_table(table, staging / "restated.parquet", compression="zstd")
                (staging / "restated.parquet").rename(path.with_stem(f"{path.stem}-restated"))
                path.unlink()
            self._mark(run, str(marker.get("fingerprint")))

    def read(self, spark: SparkSession, table: str, runs: Sequence[str]) -> DataFrame:
        """Returns the rows of ``runs``; a run without rows in this table has no directory there."""
        schema = struct(registry.tables()[table].columns)
        partitions = [str(path) for run in runs if (path := self.partition(table, run)).exists()]
        if not partitions:
            return spark.createDataFrame([], schema)
        reader = spark.read.schema(schema).option("basePath", str(self.root / table))
        return reader.parquet(*map(literal_path, partitions))

    def _marker(self, run: str) -> Path:
        return self.root / "ingested" / f"{run}.json"

    def _mark(self, run: RunInput, fingerprint: str) -> None:
        content = {"fingerprint": fingerprint, "judgement": run.judgement(), "files": self._files(run.run)}
        write_json(self._marker(run.run), content)

    def _files(self, run: str) -> dict[str, int]:
        """Returns names and sizes, so that deleted or truncated tables are noticed."""
        parts = (path for table in registry.tables() for path in self.partition(table, run).glob("*.parquet"))
        return {str(path.relative_to(self.root)): path.stat().st_size for path in sorted(parts)}


def literal_path(path: Path | str) -> str:
    """Escapes a path, because Spark takes paths for patterns: a directory may be called ``a[1]``."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def _acquire(lock: int, root: Path) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RoveError(
                    f"another analysis has been writing to {root} for {LOCK_TIMEOUT_S:.0f} s"
                ) from None
            time.sleep(0.1)
