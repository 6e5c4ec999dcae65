"""Options of verbs that can use a Spark cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="MASTER",
        help="Compute on this Spark: local[8], spark://host:7077, yarn, k8s://…",
        show_default="this machine",
    ),
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, such as spark.executor.memory=4g. May be repeated.",
        show_default=False,
    ),
]


@contextmanager
def chosen_session(
    master: str | None,
    conf: Sequence[str] | None,
    directories: Sequence[RunDirectory],
    *,
    folder: Path | None = None,
    needed: bool = False,
) -> "Iterator[SparkSession | None]":
    """Opens a session to analyse these runs, or all those in ``folder``, on the cluster that the user names.
    If none is named: one on this machine if ``needed``, else None.

    Executors must see the runs and where their tables are. Raises BadInput, RoveError.
    """
    from orchestrator.spark.cluster import HERE, parse_master
    from orchestrator.spark.placing import parse_conf

    settings = parse_conf(conf or [])
    if master is None and not needed:
        if settings:
            raise BadInput("--spark-conf is for a Spark of your choice: add --master")
        yield None
        return
    chosen = HERE if master is None else parse_master(master)
    from orchestrator.analytics.streaming.looking import largest_run
    from orchestrator.results.inputs import runs_in
    from orchestrator.spark.session import spark_session
    from orchestrator.spark.shared_files import require_shared

    size = (
        largest_run(folder) if folder else sum(r.bytes() for each in directories for r in runs_in(each.path))
    )
    with spark_session(input_bytes=size, master=chosen, conf=settings) as spark:
        if not chosen.is_local:
            for shared in (
                [folder] if folder else dict.fromkeys(each.path.parent.parent for each in directories)
            ):
                require_shared(spark, shared)
        yield spark
