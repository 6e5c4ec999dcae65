"""Segments and ground truth of many runs → tables, in one go for all runs that are new or have changed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from node_agent.apps.records import record_format
from node_agent.telemetry.records import LONGEST_LINE
from orchestrator.analytics import belief, clocks, faces, schemas, tables
from orchestrator.analytics.connectivity import connected_intervals, read_changes
from orchestrator.analytics.inputs import LATEST_NS, RunInput, Segment
from orchestrator.analytics.schemas import CORRUPT, TABLES
from orchestrator.analytics.session import BULK_BYTES, side_by_side
from orchestrator.analytics.store import TableStore, literal_path

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""

KEY = ("run", "node", "boot", "seq")

# Somebody else's ground truth may hold anything.
NEAR = "abs(x) < 1e12 and abs(y) < 1e12"
COUNTED = (
    "attempted between 0 and 1e15 and delivered between 0 and 1e15 and coalesce(expected, 0) between 0 and 1"
)

WRITERS = 2
"""Tables that are written at the same time: while one is planned, the other is computed."""

# Within a file, rows in an order of their own: equal input gives equal tables.
ORDER: dict[str, tuple[str, ...]] = {
    "tuples": ("origin", "tau", "sink"),
    "hops": ("origin", "tau", "sender", "receiver"),
    "switches": ("t_ns", "replica", "downstream"),
    "costs": ("t_ns", "replica", "to"),
    "overhead": ("t_ns", "node", "message"),
    "operator_faults": ("t_ns", "replica", "reason", "count"),
    "faces": ("t_ns", "replica", "origin", "frame", "true_person", "overlap", "score"),
    "links_truth": ("up_ns", "src", "dst"),
    "positions": ("t_ns", "node"),
    "deliveries": ("t_ns", "src", "dst"),
    "connectivity": ("from_ns",),
    "nodes": ("node", "boot"),
    "runs": (),
}


def ingest(spark: SparkSession, store: TableStore, runs: Sequence[RunInput], progress: Progress) -> None:
    """Bring the tables of ``runs`` up to date; what has not changed since the last time is not read."""
    with store.writing() as staging:
        # Taken before reading: a file that changes meanwhile is read again the next time.
        fingerprints = {run.run: run.fingerprint() for run in runs}
        stale = [run for run in runs if not store.holds(run.run, fingerprints[run.run])]
        if stale:
            _prepare(spark, staging, stale, progress)
        for run in stale:
            store.commit(staging, run, fingerprints[run.run])
    progress(1.0)


def _prepare(spark: SparkSession, staging: Path, runs: Sequence[RunInput], progress: Progress) -> None:
    lines = _in_one_time(spark, _read_lines(spark, runs), runs).persist()
    has_table = F.col("kind").isin(*record_format().needed)
    readable = lines.where(~F.col("corrupt") & ~F.col("is_refused") & has_table)
    nodes = tables.nodes(lines, _frame(spark, _unread(runs), schemas.UNREAD)).persist()
    # Rarely is there anything to remove, and to look for it means to sort everything.
    twice = not nodes.where("duplicates > 0").isEmpty()
    records = tables.tuple_by_tuple(_each_once(readable) if twice else readable)
    described = _frame(spark, [run.row() for run in runs], _described_schema())
    of_runs = tables.runs(described, nodes).persist()
    hops = tables.hops(records).persist()
    sinks = _frame(spark, _sinks(runs), schemas.SINKS)
    vouched = tables.vouched(_frame(spark, _makers(runs), schemas.MAKERS), nodes)
    made: dict[str, DataFrame] = {
        "tuples": tables.tuples(records, hops, nodes, of_runs, sinks, vouched),
        "links_truth": tables.links_truth(_read_truth(spark, runs, "links.jsonl", schemas.RAW_LINKS)),
        "hops": hops,
        "nodes": nodes,
        "runs": of_runs,
        "switches": tables.switches(records, of_runs),
        "costs": tables.costs(records),
        "overhead": tables.overhead(records),
        "operator_faults": tables.operator_faults(records),
        "positions": _read_truth(spark, runs, "positions.jsonl", schemas.RAW_POSITIONS).where(NEAR),
        "deliveries": _read_truth(spark, runs, "deliveries.jsonl", schemas.RAW_DELIVERIES).where(COUNTED),
        "connectivity": _frame(spark, _connectivity(runs, of_runs), schemas.CONNECTIVITY),
    }
    if any(map(faces.has_faces, runs)):
        known = _frame(spark, faces.known_persons(runs), schemas.KNOWN_PERSONS)
        made["faces"] = faces.faces(records, known, of_runs)
    small = sum(run.bytes() for run in runs) < BULK_BYTES
    with side_by_side(WRITERS) as together:
        writes = [together.submit(_write, frame, name, staging, small) for name, frame in made.items()]
        for done, write in enumerate(writes):
            write.result()
            progress((done + 1) / (len(made) + 1))
    for frame in (lines, nodes, of_runs, hops):
        frame.unpersist()


def _frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """By way of Arrow: from plain rows, Spark would start Python processes only to copy them."""
    table = pa.Table.from_pylist(list(rows), to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)


def _in_one_time(spark: SparkSession, lines: DataFrame, runs: Sequence[RunInput]) -> DataFrame:
    """Times of nodes whose clocks were measured become the orchestrator's."""
    if not any(run.clocks for run in runs):
        return lines
    of_nodes = _frame(spark, clocks.clock_rows(runs), schemas.CLOCKS)
    return clocks.corrected(lines, of_nodes, _frame(spark, clocks.birth_rows(runs), schemas.CLOCKS))


def _connectivity(runs: Sequence[RunInput], of_runs: DataFrame) -> list[dict[str, Any]]:
    spans = {row["run"]: row for row in of_runs.collect()}
    rows = []
    for run in runs:
        span, links = spans[run.run], run.truth("links.jsonl")
        if links is None:  # nobody knows who could hear whom, which is not the same as nobody
            continue
        if span["source_nodes"] and span["sink_nodes"] and span["ended_ns"] is not None:
            ends = (span["source_nodes"], span["sink_nodes"], span["first_ns"], span["ended_ns"])
            intervals = connected_intervals(read_changes(links), *ends)
            rows += [{"run": run.run, **interval._asdict()} for interval in intervals]
    return rows


def _read_lines(spark: SparkSession, runs: Sequence[RunInput]) -> DataFrame:
    """Every line of every segment, of which those that are ``corrupt`` or ``is_refused`` are only counted."""
    schema = StructType([*schemas.RAW, StructField(CORRUPT, schemas.TEXT)])
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
    scopes = _frame(spark, belief.scope_rows(runs), schemas.SCOPES)
    return belief.judged(_read_json(spark, paths, schema), _frame(spark, files, schemas.FILES), scopes)


def _paths(run: RunInput) -> list[Path]:
    """Whole directories where they hold nothing but segments: that many files are listed sooner."""
    found: dict[Path, list[Segment]] = {}
    for segment in run.segments:
        found.setdefault(segment.path.parent, []).append(segment)
    paths = []
    for directory, segments in found.items():
        readable = [segment.path for segment in segments if segment.size is not None]
        alone = len(readable) == sum(1 for _ in directory.iterdir())
        paths += [directory] if alone else readable
    return paths


def _unread(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Rows of ``schemas.UNREAD``."""
    return [
        {"run": run.run, "node": segment.node, "boot": segment.boot, "unread": unread}
        for run in runs
        for segment in run.segments
        if (unread := segment.unread())
    ]


def _sinks(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Rows of ``schemas.SINKS``: an operator, or a replica of one, leads to the sinks behind it."""
    rows = []
    for run in runs:
        query = run.plan.query
        sinks = query.sinks()
        for operator in query.names():
            behind = query.reachable_from([operator])
            names = [operator, *(replica.id for replica in run.plan.of(operator))]
            rows += [
                {"run": run.run, "toward": name, "sink": sink}
                for name in names
                for sink in sinks
                if sink in behind
            ]
    return rows


def _makers(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Rows of ``schemas.MAKERS``."""
    return [
        {"run": run.run, "origin": origin, "node": replica.node}
        for run in runs
        for replica in run.plan.replicas
        for origin in run.plan.query.makes(replica.operator)
    ]


def _each_once(readable: DataFrame) -> DataFrame:
    alike = Window.partitionBy(*KEY).orderBy("t_ns", "kind")
    return readable.withColumn("copy", F.row_number().over(alike)).where("copy = 1").drop("copy")


def _read_truth(spark: SparkSession, runs: Sequence[RunInput], name: str, schema: StructType) -> DataFrame:
    paths = {f"file:{path}": run.run for run in runs if (path := run.truth(name)) is not None}
    files = _frame(
        spark, [{belief.FILE: file, belief.IN_RUN: run} for file, run in paths.items()], schemas.FILES
    )
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
        # Longer ones are passed over, in bounded memory.
        .option("mapreduce.input.linerecordreader.line.maxlength", str(LONGEST_LINE + 1))
        .json(
            [literal_path(path) for path in paths],
            mode="PERMISSIVE",
            columnNameOfCorruptRecord=CORRUPT,
            allowNonNumericNumbers=False,
            lineSep="\n",  # as Python's readers have it: by itself, Spark ends lines at \r, too
        )
    )
    # It is a URI, in which a plus is a plus.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return lines.withColumn(belief.FILE, path)


def _described_schema() -> StructType:
    from_telemetry = {"first_ns", "ended_ns", "records", "duplicates", "corrupt_lines", "refused"}
    return StructType([field for field in schemas.RUNS if field.name not in from_telemetry])


def _write(frame: DataFrame, table: str, staging: Path, small: bool) -> None:
    columns = [F.col(field.name).cast(field.dataType) for field in TABLES[table]]
    chosen = frame.select(*columns)
    # One file a run either way; to bring little data together takes longer than to write it from one task.
    together = chosen.coalesce(1) if small else chosen.repartition("run")
    ordered = together.sortWithinPartitions("run", *ORDER[table])
    ordered.write.partitionBy("run").option("compression", "zstd").parquet(str(staging / table))
