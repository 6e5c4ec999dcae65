"""Writes the tables of runs to another file system, through Spark: HDFS, an object store, a mounted folder.

A run's rows are in ``<URL>/v<VERSION>/<table>/run=<run>/``: publishing a run again replaces its own rows and
no others, so it may be repeated at any time. Rove never reads what it has published.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.analytics.layout import VERSION, tables_of
from orchestrator.errors import BadInput, RoveError
from orchestrator.results.contribution import Table
from orchestrator.results.inputs import runs_in, unique

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_URL = re.compile(r"([a-z][a-z0-9+.-]{0,15})://([A-Za-z0-9_.:@-]*)(/[^\x00-\x1f\x7f]*)?")
_MODE = "spark.sql.sources.partitionOverwriteMode"

BOUNDS = {
    # Hadoop's own are a quarter of an hour and more.
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "2",
    "ipc.client.rpc-timeout.ms": "60000",
    "dfs.client.retry.policy.enabled": "false",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "60s",
    "fs.s3a.attempts.maximum": "3",
    "fs.s3a.retry.limit": "3",
}
"""Settings of file systems, where the user has given none: nothing waits for them without bound."""


@dataclass(frozen=True)
class Target:
    """Where tables go. ``scheme``: the file system, as Hadoop calls it."""

    url: str
    scheme: str


def parse_target(text: str) -> Target:
    """Reads a URL as users write it. Raises BadInput."""
    found = _URL.fullmatch(text.strip())
    if found is None or (found[1] == "file" and not found[3]):
        raise BadInput(
            f"{text!r} is no place for tables: write hdfs://host:8020/rove, s3a://bucket/rove or"
            " file:///shared/rove"
        )
    return Target(text.strip().rstrip("/"), found[1])


def require_elsewhere(target: Target, directories: Sequence[Path]) -> None:
    """Refuses a folder beside or among these runs: there Rove keeps tables of its own, which readers of
    Parquet would take for the same. Raises BadInput.
    """
    if target.scheme != "file":
        return
    place = Path("/", target.url.removeprefix("file:").lstrip("/"))
    for root in {directory.resolve().parent.parent for directory in directories}:
        if place.resolve().is_relative_to(root):
            raise BadInput(
                f"{target.url} is inside the runs' directory {root}: publish tables to another place"
            )


def publish_tables(spark: "SparkSession", directories: Sequence[Path], target: Target) -> None:
    """Writes the tables of these runs. They have been made before. Raises RoveError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from orchestrator.analytics.failures import reason
    from orchestrator.analytics.log import TABLES
    from orchestrator.analytics.store import TableStore

    runs = unique([run for directory in directories for run in runs_in(directory)])
    _bound(spark)
    before = spark.conf.get(_MODE)
    spark.conf.set(_MODE, "dynamic")
    table_name = ""
    try:
        for root in dict.fromkeys(run.directory.path.parent.parent for run in runs):
            group = [run for run in runs if run.directory.path.parent.parent == root]
            store, names = TableStore(root), [run.run for run in group]
            with store.reading():
                for table in tables_of(group):
                    table_name = table.name
                    rows = store.read(spark, table.name, names)
                    place = f"{target.url}/v{VERSION}/{table.name}"
                    _write(rows, table, place)
                    empty = [run for run in names if not store.paths(TABLES, table.name, [run])]
                    _remove(spark, [f"{place}/run={run}" for run in empty])
    except (PySparkException, Py4JError) as error:
        raise RoveError(
            f"the table {table_name} cannot be published to {target.url}: {_advice(target, reason(error))};"
            " the results are written, so repeat the command later"
        ) from error
    finally:
        spark.conf.set(_MODE, str(before))


def _write(rows: "DataFrame", table: Table, place: str) -> None:
    ordered = rows.repartition("run").sortWithinPartitions("run", *table.order)
    ordered.write.mode("overwrite").option("compression", "zstd").partitionBy("run").parquet(place)


def _remove(spark: "SparkSession", places: Sequence[str]) -> None:
    """Removes rows of runs that have none any more: Spark replaces what it writes something to."""
    context: Any = spark.sparkContext
    for place in places:
        path = context._jvm.org.apache.hadoop.fs.Path(place)
        path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)


def _bound(spark: "SparkSession") -> None:
    given = {name for name, _ in spark.sparkContext.getConf().getAll()}
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in BOUNDS.items():
        if f"spark.hadoop.{name}" not in given:
            hadoop.set(name, value)


def _advice(target: Target, why: str) -> str:
    if "ClassNotFound" in why or "No FileSystem for scheme" in why or "UnsupportedFileSystem" in why:
        return (
            f"Spark here has no file system for {target.scheme}: add its packages, for s3a with"
            f" --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION ({why})"
        )
    return why
