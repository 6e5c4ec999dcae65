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
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class SparkCells:
    """Runs cells on the executors of a session. Use ``on_executors`` to make one."""

    spark: "SparkSession"
    threads: ThreadPoolExecutor

    def slots(self) -> int:
        """Returns how many cells run at the same time; executors come and go."""
        return int(self.spark.sparkContext.defaultParallelism)

    def places(self) -> int:
        """Returns how many cells Spark should have now."""
        slots = self.slots()
        return min(slots + min(slots, MOST_WAITING), MOST_AT_ONCE)

    async def run(self, cell: Cell, order: RunOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        """Runs one cell; in the end its run is in ``directory``. ``scratch``: for what is not yet complete.

        Raises CellLost if there is no result.
        """
        sent = _order(cell, order, directory)
        return await asyncio.get_running_loop().run_in_executor(
            self.threads, self._performed, sent, directory, scratch
        )

    def cancel(self) -> None:
        """Ends what runs on executors; these cells are lost."""
        self.spark.sparkContext.cancelAllJobs()

    def _performed(self, order: CellOrder, directory: RunDirectory, scratch: Path) -> Verdict:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            pieces = _collected(self.spark, order)
        except (Py4JError, PySparkException, OSError, EOFError) as error:
            raise CellLost(f"Spark gave it up: {_reason(error)}") from error
        return accept(pieces, directory, scratch)


@contextmanager
def on_executors(spark: "SparkSession") -> Iterator[SparkCells]:
    """Opens what hands cells to the session's executors."""
    from orchestrator.spark.session import side_by_side

    with side_by_side(MOST_AT_ONCE) as threads:
        yield SparkCells(spark, threads)


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


def _order(cell: Cell, order: RunOrder, directory: RunDirectory) -> CellOrder:
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


def _collected(spark: "SparkSession", order: CellOrder) -> list[bytes]:
    """Returns what the task yields, as the plain bytes it is: nothing that executors send is unpickled."""
    from pyspark.serializers import NoOpSerializer

    context = spark.sparkContext
    result: Any = context.parallelize([order], 1).mapPartitions(_on_executor)
    result._jrdd_deserializer = NoOpSerializer()
    return [bytes(piece) for piece in result.collect()]


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
