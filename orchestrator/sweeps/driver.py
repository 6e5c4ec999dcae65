"""Hands cells to Spark and takes their runs back: one cell is one job with one task.

Spark starts a task again elsewhere if its executor is lost, and takes one result of each task. A result
counts only here, when the whole run is on disk and is renamed into place; a second one is dropped.
"""

import asyncio
import errno
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import BadInput, RoveError
from orchestrator.lifecycle.invocation import CellLost
from orchestrator.lifecycle.run import RunOrder
from orchestrator.planning.bundle import bundle
from orchestrator.planning.sweep import Cell
from orchestrator.runs.checkout import checkout
from orchestrator.runs.durable import sync_tree
from orchestrator.runs.files import sync_directory
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Verdict, read_verdict
from orchestrator.spark.plain_results import collect_bytes
from orchestrator.sweeps.archive import BadArchive, unpack
from orchestrator.sweeps.task import ERROR, RUN, CellOrder, perform, plan_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_AT_ONCE = 256
"""Each cell that Spark has holds one thread here."""
MOST_WAITING = 32
"""So many more cells than there are places are with Spark, so that no executor waits for this machine."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


def require_virtual_time(cells: Sequence[Cell]) -> None:
    """Raises BadInput if a cell cannot run on an executor."""
    real = sorted({cell.experiment.backend for cell in cells if not cell.experiment.traits.virtual_time})
    if real:
        raise BadInput(
            f"--on takes runs in virtual time only, and this sweep has runs on {', '.join(real)}: leave --on"
            " out, or use backend: sim"
        )


@dataclass
class SparkCells:
    """Runs cells on the executors of a session. Use ``on_executors`` to make one."""

    spark: "SparkSession"
    threads: ThreadPoolExecutor
    _slots: int = 1
    _cancelled: bool = False

    def slots(self) -> int:
        """Returns how many cells run at the same time; executors come and go."""
        if self._is_alive():
            self._slots = int(self.spark.sparkContext.defaultParallelism)
        return self._slots

    def places(self) -> int:
        """Returns how many cells Spark should have now."""
        slots = self.slots()
        return min(slots + min(slots, MOST_WAITING), MOST_AT_ONCE)

    async def run(self, cell: Cell, order: RunOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        """Runs one cell; in the end its run is in ``directory``. ``scratch``: for what is not yet complete.

        Raises CellLost if there is no result, RoveError if there is no Spark any more.
        """
        sent = order_for(cell, order, directory)
        return await asyncio.get_running_loop().run_in_executor(
            self.threads, self._performed, sent, directory, scratch
        )

    def cancel(self) -> None:
        """Ends what runs on executors, and starts no more; these cells are lost."""
        self._cancelled = True
        self.spark.sparkContext.cancelAllJobs()

    def _performed(self, order: CellOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if self._cancelled:
            raise CellLost("it was not started any more")
        try:
            pieces = collect_bytes(self.spark, [order], _on_executor)
        except (Py4JError, PySparkException, OSError, EOFError) as error:
            if not self._is_alive():
                raise RoveError("Spark has ended; the same command goes on with the sweep") from error
            raise CellLost(f"Spark gave it up: {_reason(error)}") from error
        return accept(pieces, directory, scratch)

    def _is_alive(self) -> bool:
        """Whether the session can still be used: its JVM may be gone, or the master may have ended it."""
        from py4j.protocol import Py4JError

        try:
            return not self.spark.sparkContext._jsc.sc().isStopped()
        except (Py4JError, OSError, AttributeError):  # the last of a context that was stopped here
            return False


@contextmanager
def on_executors(spark: "SparkSession") -> Iterator[SparkCells]:
    """Opens what hands cells to the session's executors. Threads that still wait in the end do so until the
    session is closed."""
    threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="cell")
    try:
        yield SparkCells(spark, threads)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def accept(pieces: Sequence[bytes], directory: RunDirectory, scratch: Path) -> Verdict:
    """Puts a result into place, once: whatever is there already stays. Raises CellLost.

    A crash at any moment leaves the whole run in ``directory``, or nothing.
    """
    kind, *rest = pieces or (b"",)
    if kind == ERROR:
        raise CellLost(b"".join(rest).decode(errors="replace")[:2000])
    if kind != RUN:
        raise CellLost("an executor sent something else than a run")
    half = scratch / directory.id
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    try:
        unpack(rest, half)
        if (verdict := read_verdict(RunDirectory(half))) is None:
            raise BadArchive("an executor sent a run without a verdict")
        sync_tree(half)
        _rename(half, directory.path)
    except RoveError as error:
        raise CellLost(str(error)) from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    sync_directory(directory.path.parent)
    return read_verdict(directory) or verdict


def _rename(half: Path, place: Path) -> None:
    """The rename replaces nothing but an empty directory: a second result of the same cell is dropped."""
    try:
        half.rename(place)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise


def order_for(cell: Cell, order: RunOrder, directory: RunDirectory) -> CellOrder:
    """Returns all that an executor needs for a cell whose run will be in ``directory``."""
    return CellOrder(
        run_id=directory.id,
        experiment=directory.experiment,
        files=bundle(cell.experiment),
        factors=order.factors,
        invocation=order.invocation,
        command=order.command,
        quorum=order.quorum,
        place=str(directory.path.resolve()),
        plan=plan_digest(cell.run),
        checkout=checkout(),
    )


def _on_executor(orders: Iterable[CellOrder]) -> Iterator[bytes]:
    from pyspark import SparkFiles

    scratch = Path(SparkFiles.getRootDirectory())  # the executor's own directory, which goes with it
    for order in orders:
        yield from perform(order, scratch)


def _reason(error: BaseException) -> str:
    """Returns the sentence of a Python error on the executor, out of the text with all the stacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [
        line for line in lines if "Error: " in line and not line.startswith(("at ", "py4j.", "Caused by"))
    ]
    return (told or lines or [type(error).__name__])[-1 if told else 0][:500]
