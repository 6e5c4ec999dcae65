"""Reads files of run directories as Spark frames: judged telemetry in the orchestrator's time, and ground
truth.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from node_agent.apps.records import record_format
from node_agent.telemetry.records import LONGEST_LINE
from orchestrator.analytics import belief, clocks, schemas
from orchestrator.analytics.frames import frame_of
from orchestrator.analytics.schemas import CORRUPT, struct
from orchestrator.analytics.store import literal_path
from orchestrator.results.inputs import LATEST_NS, RunInput
from orchestrator.results.segments import Segment


def read_lines(spark: SparkSession, runs: Sequence[RunInput]) -> DataFrame:
    """Returns every line of every segment. Those that are ``corrupt`` or ``is_refused`` are only counted.

    Times of nodes whose clocks were measured are converted to the orchestrator's.
    """
    format = record_format()
    schema = StructType([*schemas.raw(format.events), StructField(CORRUPT, StringType())])
    paths = [path for run in runs for path in _paths(run)]
    files = [
        {
            belief.FILE: f"file:{segment.path}",
            belief.IN_RUN: run.run,
            belief.IN_NODE: segment.node,
            belief.IN_BOOT: segment.boot,
            belief.CLAIMED_RUN: run.claimed_run,
        }
        for run in runs
        for segment in run.segments
    ]
    places = frame_of(spark, files, struct(schemas.FILES))
    apps = frame_of(spark, belief.app_rows(runs), struct(schemas.APPS))
    scopes = frame_of(spark, belief.scope_rows(runs), schemas.SCOPES)
    lines = belief.judged(_read_json(spark, paths, schema), places, apps, scopes, format)
    if not any(run.clocks for run in runs):
        return lines
    of_nodes, of_births = (
        frame_of(spark, rows, struct(schemas.CLOCKS))
        for rows in (clocks.clock_rows(runs), clocks.birth_rows(runs))
    )
    return clocks.corrected(lines, of_nodes, of_births)


def _paths(run: RunInput) -> list[Path]:
    """Returns whole directories if they contain only segments, because Spark lists them faster than single
    files.
    """
    found: dict[Path, list[Segment]] = {}
    for segment in run.segments:
        found.setdefault(segment.path.parent, []).append(segment)
    paths = []
    for directory, segments in found.items():
        readable = [segment.path for segment in segments if segment.size is not None]
        alone = len(readable) == sum(1 for _ in directory.iterdir())
        paths += [directory] if alone else readable
    return paths


def read_truth(spark: SparkSession, runs: Sequence[RunInput], name: str, schema: StructType) -> DataFrame:
    """Reads the file ``name`` of the ground truth, one row a line."""
    paths = {f"file:{path}": run.run for run in runs if (path := run.truth(name)) is not None}
    rows = [{belief.FILE: file, belief.IN_RUN: run} for file, run in paths.items()]
    files = frame_of(spark, rows, struct(schemas.FILES))
    of_runs = files.select(belief.FILE, F.col(belief.IN_RUN).alias("run"))
    lines = _read_json(spark, [Path(file.removeprefix("file:")) for file in paths], schema)
    truth = lines.join(F.broadcast(of_runs), belief.FILE)
    return truth.where(F.col("t_ns").between(0, LATEST_NS))


def _read_json(spark: SparkSession, paths: Sequence[Path], schema: StructType) -> DataFrame:
    if not paths:
        empty = spark.createDataFrame([], schema)
        return empty.withColumn(belief.FILE, F.lit(""))
    lines = (
        spark.read.schema(schema)
        # Longer lines are skipped, in bounded memory.
        .option("mapreduce.input.linerecordreader.line.maxlength", str(LONGEST_LINE + 1))
        .json(
            [literal_path(path) for path in paths],
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=CORRUPT,
            allowNonNumericNumbers=False,
            lineSep="\n",  # like Python's readers: Spark's default also ends lines at \r
        )
    )
    # It is a URI, in which a plus is a plus.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return lines.withColumn(belief.FILE, path)
