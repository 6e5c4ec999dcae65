"""Options of verbs that can use a Spark cluster."""

from typing import Annotated

import typer

Master = Annotated[
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
