"""Runs and sweeps as frames: every table in Spark and in pandas, metrics with one row a run."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import reduce
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from orchestrator.api.sessions import SESSION
from orchestrator.errors import BadInput, RoveError, clear_errors
from orchestrator.results import registry
from orchestrator.results.inputs import runs_in, unique
from orchestrator.results.rows import run_rows
from orchestrator.runs.run_directory import RunDirectory, resolve

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from orchestrator.analytics.pipeline import Analysis
    from orchestrator.analytics.store import TableStore

Reference = str | PathLike[str]
"""A run or sweep: its directory, its id, the name of its experiment (the latest run), or ``latest``."""
RUNS_DIR = "runs"


def load(*references: Reference, runs_dir: Reference = RUNS_DIR) -> "Runs":
    """Loads runs and sweeps; analyses in Spark what has not been analysed yet, as ``rove analyze`` does.

    Raises BadInput, with one sentence, if there is no such run or if it cannot be analysed.
    """
    if not references:
        raise BadInput('say what to load: a run or a sweep, such as rove.load("runs/quickstart")')
    return Runs(directories_of(references, runs_dir))


def directories_of(references: Iterable[Reference], runs_dir: Reference) -> list[RunDirectory]:
    return [resolve(str(reference), Path(runs_dir)) for reference in references]


class Runs:
    """Runs that are analysed. Close it, or use it in a ``with`` block: it may hold a Spark session."""

    def __init__(self, directories: Sequence[RunDirectory]) -> None:
        self.directories = tuple(directories)
        self._spark: SparkSession | None = None
        self._stores: dict[Path, TableStore] = {}
        self._reading = ExitStack()
        self._is_closed = False
        try:
            with clear_errors():
                self._members = unique([run for each in directories for run in runs_in(each.path)])
                self._analysis = self._analyse()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Runs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        of = ", ".join(f"{each.experiment}/{each.id}" for each in self.directories)
        return f"<{len(self)} run{'' if len(self) == 1 else 's'} of {of}>"

    @property
    def names(self) -> list[str]:
        """Returns the ids of the runs."""
        return [run.run for run in self._members]

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """Returns what is in ``summary.json`` of each run."""
        return [self._analysis.summaries[run.directory.path] for run in self._members]

    @property
    def sweeps(self) -> list[dict[str, Any]]:
        """Returns what is in ``summary.json`` of each sweep: its ``cells`` have means and comparisons."""
        return [self._analysis.summaries[each.path] for each in self.directories if each.is_sweep]

    @property
    def tables(self) -> dict[str, str]:
        """Returns the names of the tables, and what a row of each is."""
        return {name: table.text for name, table in registry.tables().items()}

    def table(self, name: str) -> "DataFrame":
        """Returns a table of these runs in Spark. It can be used until the runs are closed."""
        if name not in registry.tables():
            raise BadInput(f"there is no table {name!r}: there are {', '.join(registry.tables())}")
        spark = self.spark
        by_root: dict[Path, list[str]] = {}
        for run in self._members:
            by_root.setdefault(run.directory.path.parent.parent, []).append(run.run)
        parts = [self._store(root).read(spark, name, runs) for root, runs in by_root.items()]
        return reduce(lambda one, other: one.unionByName(other), parts)

    def pandas(self, name: str) -> "pd.DataFrame":
        """Returns a table of these runs in pandas; it must fit into memory."""
        return self.table(name).toPandas()

    def metrics(self) -> "pd.DataFrame":
        """Returns one row a run: its factors, seed and verdict, and every metric that is a single number.

        If the runs have several applications, the names of their metrics begin with the application's:
        ``faces.goodput_fps``. ``usable``: whether the run may enter a mean.
        """
        import pandas as pd

        rows = run_rows(self.summaries, [run.is_usable for run in self._members])
        return pd.DataFrame(rows)

    def report(self) -> list[Path]:
        """Writes the reports, and returns where they are."""
        with clear_errors():
            return [self._analysis.write_report(each.path) for each in self.directories]

    @property
    def spark(self) -> "SparkSession":
        """Returns the Spark session, which is started if there is none."""
        if self._is_closed:
            raise RoveError("these runs are closed: load them again to read their tables")
        if self._spark is None:
            self._spark = SESSION.acquire(sum(run.bytes() for run in self._members))
        return self._spark

    def close(self) -> None:
        """Gives the Spark session back; the last who does stops it. Frames of pandas stay usable."""
        self._is_closed = True
        self._reading.close()
        if self._spark is not None:
            SESSION.release(self._spark)
            self._spark = None

    def _store(self, root: Path) -> "TableStore":
        """Returns a store whose files stay as long as these runs are open: frames read them late."""
        from orchestrator.analytics.store import TableStore

        if root not in self._stores:
            store = TableStore(root)
            self._reading.enter_context(store.reading())
            self._stores[root] = store
        return self._stores[root]

    def _analyse(self) -> "Analysis":
        from orchestrator.analytics import pipeline

        analysis = pipeline.analysed([each.path for each in self.directories], spark=lambda: self.spark)
        analysis.write_summaries()
        return analysis
