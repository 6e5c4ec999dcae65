"""Stores what was read from runs, and the tables made of it, in the folder that ``place`` names.

``records/`` has a run's records in columns, ``<table>/`` the tables; files hold rows of several runs. The log
(``log``) names the files that count: a run's tables are complete, or not there. Files that no longer count
are removed when nobody reads. Everything in here is derived and may be deleted at any time.
"""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from orchestrator.analytics import log
from orchestrator.analytics.frames import frame_of
from orchestrator.analytics.log import RECORDS, TABLES, State, StoredFile
from orchestrator.analytics.place import StorePlace
from orchestrator.analytics.schemas import struct
from orchestrator.errors import RoveError
from orchestrator.results import registry
from orchestrator.results.inputs import RunInput

LOCK_TIMEOUT_S = 300.0
MOST_SMALL_FILES = 32
SMALL_BYTES = 8 * 2**20
"""When a kind of rows has more than so many files smaller than this, they are put together."""
BATCH_ROWS = 262_144
"""Rows that are read at a time."""
READERS = "readers"
"""A file that all who read the store lock together."""
_LEAVING_S = 3.0
_QUIET_S = 0.2

Change = Callable[[pa.Table], pa.Table]


class Fresh(NamedTuple):
    """A Parquet file that is not in the store yet. ``runs``: those that it has rows of."""

    of: str
    path: Path
    runs: tuple[str, ...]


class TableStore(StorePlace):
    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Makes this process the only writer, with an empty staging directory. The lock ends with the
        process; a JVM that outlives it for a moment still writes to the directory that was that one's.
        """
        staging = self.root / "staging"
        own = staging / secrets.token_hex(8)
        lock = self._lock_file("lock")
        try:
            _acquire(lock, self.root)
            shutil.rmtree(staging, ignore_errors=True)
            self._sweep(self.state)
            own.mkdir(parents=True)
            try:
                yield own
            except BaseException:
                _remove_until_it_stays_away(staging)
                raise
            shutil.rmtree(staging, ignore_errors=True)
        finally:
            os.close(lock)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keeps the files that the log names now: another analysis may replace them meanwhile, but does not
        remove them.
        """
        lock = self._lock_file(READERS)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)  # held the other way only while files are removed
            yield
        finally:
            os.close(lock)

    def make_place(self) -> None:
        """Makes the folder of the store, if it is missing. Raises RoveError."""
        try:
            self._make_private()
            self._refuse_links()
        except OSError as error:
            raise RoveError(f"cannot keep tables in {self.root}: {error.strerror}") from error

    def _lock_file(self, name: str) -> int:
        self.make_place()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(self.root / name, flags, 0o644)
        except OSError as error:
            raise RoveError(f"cannot keep tables in {self.root}: {error.strerror}") from error

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

    def _sweep(self, state: State) -> None:
        """Removes files that do not count, unless somebody reads: then the next change does."""
        lock = self._lock_file(READERS)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = {file.path for file in state.files}
            for path in self.root.glob("*/*.parquet"):
                if path.relative_to(self.root).as_posix() not in named:
                    path.unlink(missing_ok=True)
        except BlockingIOError:
            return
        finally:
            os.close(lock)

    def commit(
        self, layer: str, fresh: Sequence[Fresh], marks: Mapping[str, Mapping[str, str]], staging: Path
    ) -> None:
        """Replaces what the layer has of the runs in ``marks`` by the fresh files; ``marks`` say what is new
        about each run. If interrupted, nothing has changed.
        """
        state = self.state.numbered(marks)
        gone = state.numbers(marks)
        places = _Places(self.root, staging, state)
        kept: list[StoredFile] = []
        for file in state.files:
            if file.layer != layer or gone.isdisjoint(file.runs):
                kept.append(file)
            elif others := tuple(number for number in file.runs if number not in gone):
                names = {run for run, held in state.runs.items() if held.number in others}
                kept.append(places.rewritten(file, others, _only(names)))
        kept += [places.placed(layer, each, sorted(state.numbers(each.runs))) for each in fresh]
        files = tuple(_compacted(kept, layer, places))
        following = replace(state.marked(marks), files=files, names=places.names)
        log.save(self.root / "log", following)
        self._sweep(following)

    def restate(self, runs: Sequence[RunInput]) -> None:
        """Updates the verdicts in the ``runs`` table, if nothing else has changed."""
        found = self.state.runs
        changed = [run for run in runs if run.run in found and found[run.run].judged not in ("", judged(run))]
        if not changed:
            return
        with self.writing() as staging:
            state = self.state
            places = _Places(self.root, staging, state)
            old = state.files_of(TABLES, "runs", [run.run for run in changed])
            change = _judged_anew({run.run: run for run in changed})
            files = tuple(
                places.rewritten(file, file.runs, change) if file in old else file for file in state.files
            )
            marked = state.marked({run.run: {"judged": judged(run)} for run in changed})
            following = replace(marked, files=files, names=places.names)
            log.save(self.root / "log", following)
            self._sweep(following)

    def read(self, spark: SparkSession, table: str, runs: Sequence[str]) -> DataFrame:
        """Returns a table's rows of ``runs``."""
        return self.frame(spark, TABLES, [table], runs, struct(registry.tables()[table].columns))

    def frame(
        self, spark: SparkSession, layer: str, kinds: Sequence[str], runs: Sequence[str], schema: StructType
    ) -> DataFrame:
        """Returns the rows of ``runs`` of all ``kinds``, with the columns of ``schema``; a column that a kind
        does not have is null."""
        state = self.state
        files = [file for kind in kinds for file in state.files_of(layer, kind, runs)]
        if not files:
            return frame_of(spark, [], schema)
        paths = [literal_path(self.root / file.path) for file in files]
        found = spark.read.schema(schema).parquet(*paths)
        has_others = not state.numbers(runs).issuperset(number for file in files for number in file.runs)
        return found.where(F.col("run").isin(*runs)) if has_others else found

    def paths(self, layer: str, kind: str, runs: Sequence[str]) -> list[Path]:
        """Returns the files that have rows of one of the runs, and maybe of others."""
        return [self.root / file.path for file in self.state.files_of(layer, kind, runs)]

    def rows(
        self, layer: str, kind: str, runs: Sequence[str], schema: pa.Schema, choose: Change | None = None
    ) -> pa.Table:
        """Returns the rows of ``runs`` as plain columns, those of ``schema``, without Spark; ``choose``: what
        is wanted of them, called for some rows after the others.
        """
        wanted = pa.array(list(runs), pa.string())
        choose = choose or (lambda rows: rows)
        found = [choose(schema.empty_table())]
        for path in self.paths(layer, kind, runs):
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=schema.names):
                    rows = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
                    found.append(choose(rows.filter(pc.is_in(rows["run"], wanted))))
        return pa.concat_tables(found)


class _Places:
    """Gives files their names in the store; they are prepared in ``staging``."""

    def __init__(self, root: Path, staging: Path, state: State) -> None:
        self._root = root
        self._staging = staging
        self.names = state.names

    def placed(self, layer: str, fresh: Fresh, runs: Sequence[int]) -> StoredFile:
        """Moves a file into the store."""
        self.names += 1
        directory = self._root / (RECORDS if layer == RECORDS else fresh.of)
        directory.mkdir(exist_ok=True)
        name = f"{self.names:06d}.parquet"
        if layer == RECORDS:
            name = f"{fresh.of.replace(' ', '-')}-{name}"
        place = directory / name
        fresh.path.rename(place)
        path = place.relative_to(self._root).as_posix()
        return StoredFile(layer, fresh.of, path, place.stat().st_size, tuple(runs))

    def rewritten(self, file: StoredFile, runs: Sequence[int], change: Change) -> StoredFile:
        """Writes a file anew, with fewer rows or other values."""
        return self.merged([file], runs, change)

    def merged(self, files: Sequence[StoredFile], runs: Sequence[int], change: Change) -> StoredFile:
        """Writes files as one, in bounded memory."""
        first = files[0]
        target = self._staging / f"anew-{self.names}.parquet"
        schema = parquet.read_schema(self._root / first.path)
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            for file in files:
                with parquet.ParquetFile(self._root / file.path) as found:
                    for number in range(found.num_row_groups):
                        writer.write_table(change(found.read_row_group(number)).cast(schema))
        return self.placed(first.layer, Fresh(first.of, target, ()), runs)


def _compacted(files: Sequence[StoredFile], layer: str, places: _Places) -> Iterator[StoredFile]:
    """Puts small files of one kind together, if there are many."""
    small: dict[str, list[StoredFile]] = {}
    for file in files:
        if file.layer == layer and file.size < SMALL_BYTES:
            small.setdefault(file.of, []).append(file)
        else:
            yield file
    for alike in small.values():
        if len(alike) <= MOST_SMALL_FILES:
            yield from alike
        else:
            runs = sorted({number for file in alike for number in file.runs})
            yield places.merged(alike, runs, lambda table: table)


def _only(runs: set[str]) -> Change:
    wanted = pa.array(sorted(runs), pa.string())
    return lambda table: table.filter(pc.is_in(table["run"], wanted))


def _judged_anew(runs: Mapping[str, RunInput]) -> Change:
    def change(table: pa.Table) -> pa.Table:
        names = table["run"].to_pylist()
        for column in ("verdict", "reasons"):
            values = [
                runs[run].judgement()[column] if run in runs else value
                for run, value in zip(names, table[column].to_pylist(), strict=True)
            ]
            field = table.schema.field(column)
            place = table.schema.get_field_index(column)
            table = table.set_column(place, field, pa.array(values, field.type))
        return table

    return change


def judged(run: RunInput) -> str:
    """Returns a text that changes with the run's verdict."""
    return sha256(repr(run.judgement()).encode()).hexdigest()[:16]


def file_url(path: Path) -> str:
    """Names a file of this machine, or of a mounted file system, whatever Spark's own default is: on YARN it
    is HDFS."""
    return f"file://{path.absolute()}"


def literal_path(path: Path) -> str:
    """The same where Spark takes paths for patterns: a directory may be called ``a[1]``."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in file_url(path))


def _remove_until_it_stays_away(directory: Path) -> None:
    """Removes the directory again and again for at most ``_LEAVING_S``: tasks of a job that failed may still
    write there for a moment."""
    until = time.monotonic() + _LEAVING_S
    while True:
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(_QUIET_S)
        if not directory.exists() or time.monotonic() > until:
            return


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
