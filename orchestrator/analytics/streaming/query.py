"""Runs the streaming query over a folder of runs: to the end of what is there, or until somebody ends it.

Its source are the files of ``feed``, its checkpoint says which of them are done. A batch that was cut off is
handed on again, and the store's log says which of its runs are in the tables already; within a run, (node,
boot, seq) does: exactly once. The checkpoint lies beside the tables and may be deleted with them.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.analytics import pipeline
from orchestrator.analytics.failures import AnalysisFailed, failing_clearly, is_of_full_disk, reason
from orchestrator.analytics.layout import RESULTS_VERSION, VERSION
from orchestrator.analytics.place import StorePlace
from orchestrator.analytics.store import TableStore, file_url, literal_path
from orchestrator.analytics.streaming.feed import SCHEMA, Feed
from orchestrator.analytics.streaming.offsets import VERSION as OFFSETS_VERSION
from orchestrator.analytics.streaming.offsets import Arrival
from orchestrator.errors import BadInput, RoveError
from orchestrator.results import registry
from orchestrator.results.inputs import runs_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PERIOD = "500 milliseconds"
PERIOD_S = 0.5
"""How often it looks for what is new: this process at the runs, Spark at what it was fed."""
MOST_RUNS = 16
"""Runs of a batch: what is done of many runs counts from time to time."""
FOLDER, LOCK = "stream", "lock"
"""Beside the tables: the checkpoint, and the lock of the one who follows."""
_STOP_TIMEOUT_MS = 30_000

Document = dict[str, Any]


class _Ended(Exception):
    """Somebody asked to end while a batch was under way."""


@dataclass
class Taker:
    """Takes in the runs of each batch. Is called by Spark, in a thread of its own.

    ``done`` is called with each run or sweep that has ended and its summary, ``refused`` with a run that
    cannot be analysed and why. ``failure``: what stopped the query.
    """

    root: Path
    spark: "SparkSession"
    progress: pipeline.Progress
    done: Callable[[Path, Document], None]
    refused: Callable[[str], None]
    ending: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def __call__(self, frame: "DataFrame", number: int) -> None:
        try:
            rows = [row for row in frame.toArrow().to_pylist() if row["version"] == OFFSETS_VERSION]
            self.take(sorted(Arrival(row["run"], row["ended"]) for row in rows))
        except _Ended:
            raise
        except BaseException as error:
            self.failure = error
            raise

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Takes runs in, all at once; one by one if they cannot be analysed together."""
        going_on = self._readable([each for each in arrivals if not each.ended])
        if going_on:
            self._refusing(going_on, self._bring_up_to_date)
        ended = self._readable([each for each in arrivals if each.ended])
        if ended:
            self._refusing(ended, self._analyse)

    def _bring_up_to_date(self, directories: Sequence[Path]) -> list[Document]:
        pipeline.tables_so_far(directories, self._told, spark=self.spark)
        return []

    def _analyse(self, directories: Sequence[Path]) -> list[Document]:
        return pipeline.analyze(directories, self._told, spark=self.spark)

    def _readable(self, arrivals: Sequence[Arrival]) -> list[Path]:
        found = []
        for each in arrivals:
            directory = self.root / each.run
            try:
                _refuse_copies(self.root, [run.run for run in runs_in(directory)], directory.parent)
            except (BadInput, OSError) as error:
                self._refuse(directory, error)
            else:
                found.append(directory)
        return found

    def _refusing(
        self, directories: Sequence[Path], work: Callable[[Sequence[Path]], list[Document]]
    ) -> None:
        """Does the work, and says what came out. A run that cannot be analysed keeps no other from it, nor
        the next batch.
        """
        try:
            summaries = work(directories)
        except (AnalysisFailed, BadInput, OSError) as error:
            if is_of_full_disk(error):
                raise
            if len(directories) == 1:
                self._refuse(directories[0], error)
                return
            for directory in directories:
                self._refusing([directory], work)
            return
        for directory, summary in zip(directories, summaries, strict=False):
            self.done(directory, summary)

    def _refuse(self, directory: Path, error: RoveError | OSError) -> None:
        """Says why a run is left out, unless it was removed meanwhile."""
        if directory.is_dir():
            text = f"{directory}: {reason(error)}" if isinstance(error, OSError) else str(error)
            self.refused(text)

    def _told(self, step: str, fraction: float) -> None:
        if self.ending.is_set():
            raise _Ended
        self.progress(step, fraction)


def _refuse_copies(root: Path, runs: Sequence[str], experiment: Path) -> None:
    """Of runs with the same id only the first is taken in: tables know runs by it."""
    first = {run: min(root.glob(f"[!.]*/{run}"), default=experiment / run) for run in runs}
    for run, place in first.items():
        if place.parent.name != experiment.name:
            raise BadInput(pipeline.namesakes_text(experiment / run, place))


def take_in_new(taker: Taker, *, and_go_on: bool) -> None:
    """Takes in all runs of the folder that are new since the last time; then goes on until ``taker.ending``
    is set, or ends. Raises RoveError.
    """
    name = taker.root.name or str(taker.root)
    with _alone(taker.root) as folder, failing_clearly([name], lambda: "following its runs"):
        feed = Feed(taker.root.resolve(), folder, made_by())
        feed()
        query = _start(taker, feed.arrivals, folder, and_go_on)
        try:
            while not taker.ending.wait(PERIOD_S) and query.isActive:
                if and_go_on:
                    feed()
            if not taker.ending.is_set():
                _raise_failure(taker, query, folder)
        finally:
            with suppress(Exception):
                query.stop()


def _start(taker: Taker, arrivals: Path, folder: Path, and_go_on: bool) -> "StreamingQuery":
    spark = taker.spark
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", MOST_RUNS)
    runs = source.option("cleanSource", "delete").json(literal_path(arrivals.resolve()))
    writer = runs.writeStream.foreachBatch(taker).option(
        "checkpointLocation", file_url(folder / "checkpoint")
    )
    trigger = writer.trigger(processingTime=PERIOD) if and_go_on else writer.trigger(availableNow=True)
    return trigger.start()


_SETTINGS = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stopTimeout": str(_STOP_TIMEOUT_MS),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}


def _raise_failure(taker: Taker, query: "StreamingQuery", folder: Path) -> None:
    """Raises what stopped the query, if something did."""
    if taker.failure is not None:
        raise taker.failure
    if (error := query.exception()) is not None:
        raise RoveError(
            f"the stream of runs stopped: {str(error).partition(chr(10))[0]}; if it stops there again, delete"
            f" {folder}: runs that are in the tables are not read again"
        ) from None


def made_by() -> str:
    """Returns a text that changes when tables or results are made in another way."""
    tables = {name: sorted(table.columns) for name, table in sorted(registry.tables().items())}
    return sha256(f"{VERSION} {RESULTS_VERSION} {tables}".encode()).hexdigest()[:16]


@contextmanager
def _alone(root: Path) -> Iterator[Path]:
    """Lets one process at a time follow a folder; gives where its checkpoint is."""
    store = TableStore(root)
    store.make_place()
    folder = store.root / FOLDER
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _refuse_second(lock, fcntl.LOCK_EX, root)
        yield folder
    finally:
        os.close(lock)


def require_free(root: Path) -> None:
    """Raises RoveError if the runs of a folder cannot be followed: another process does, or the tables are
    those of a newer Rove. Makes nothing, so that it can be asked before Spark starts.
    """
    with suppress(FileNotFoundError):
        lock = os.open(StorePlace(root).root / FOLDER / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _refuse_second(lock, fcntl.LOCK_SH, root)
        finally:
            os.close(lock)


def _refuse_second(lock: int, kind: int, root: Path) -> None:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RoveError(f"another rove analyze follows the runs in {root} already: end that one") from None
