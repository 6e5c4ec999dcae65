"""The shape of the data: raw telemetry as agents write it, and the tables that the analysis makes of it.

Tables lie under ``.tables/v<VERSION>``; a change of columns takes a new version: old and new never mix.
"""

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

VERSION = 3

TEXT, COUNT, REAL, FLAG, MOMENT = StringType(), LongType(), DoubleType(), BooleanType(), TimestampType()
TEXTS, COUNTS = ArrayType(StringType()), ArrayType(LongType())
TEXT_MAP = MapType(StringType(), StringType())
REAL_MAP = MapType(StringType(), DoubleType())

CORRUPT = "_corrupt"


def _columns(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


# A downstream replica as a decision weighed it.
CANDIDATE = _columns(to=TEXT, link=REAL, path=REAL, aggregate=REAL, queue=COUNT, apart=TEXTS, silent=FLAG)

# A face of a picture, as it was shown or as it was seen.
FACE = _columns(person=TEXT, x=REAL, y=REAL, width=REAL, height=REAL, score=REAL, distance=REAL)

# One row a line of a segment. Every kind of event has its own columns; those of the other kinds are null.
# A line with ``tuples`` tells of so many: see docs/telemetry.md.
RAW = _columns(
    run=TEXT,
    node=TEXT,
    boot=COUNT,
    app=TEXT,
    seq=COUNT,
    t_ns=COUNT,
    kind=TEXT,
    version=TEXT,
    clock=TEXT,
    replicas=TEXTS,
    reason=TEXT,
    replica=TEXT,
    origin=TEXT,
    tau=COUNT,
    size=COUNT,
    tuples=COUNT,
    sizes=COUNTS,
    births=COUNTS,
    to=TEXT,
    sender=TEXT,
    took_ns=COUNT,
    born_ns=COUNT,
    downstream=TEXT,
    old=TEXT,
    new=TEXT,
    old_cost=REAL,
    new_cost=REAL,
    source=TEXT,
    policy=TEXT,
    candidates=ArrayType(CANDIDATE),
    shares=REAL_MAP,
    needed=REAL,
    threshold=REAL,
    relative=FLAG,
    exponent=REAL,
    draw_seed=COUNT,
    queued=COUNT,
    shared=FLAG,
    whole=FLAG,
    taken_ns=COUNT,
    cost=REAL,
    metric=TEXT,
    queue=TEXT,
    length=COUNT,
    refused=COUNT,
    protocol=TEXT,
    message=TEXT,
    sent=COUNT,
    sent_bytes=COUNT,
    forwarded=COUNT,
    forwarded_bytes=COUNT,
    frame=COUNT,
    faces=ArrayType(FACE),
    gallery=TEXT,
    latency_ns=COUNT,
    content=TEXT,
    width=COUNT,
    height=COUNT,
    quality=COUNT,
    what=TEXT,
    count=COUNT,
    name=TEXT,
    place=TEXT,
    error=TEXT,
    left_out=FLAG,
)

# Where a segment lies; ``claimed_run``: what its records must call their run.
FILES = _columns(_file=TEXT, in_run=TEXT, in_node=TEXT, in_boot=COUNT, claimed_run=TEXT)
# Lines that only Python could see: too long for Spark, or in what is no regular file.
UNREAD = _columns(run=TEXT, node=TEXT, boot=COUNT, unread=COUNT)
# What a replica of a node can tell of: see ``node_agent.telemetry.belief``.
SCOPES = _columns(
    in_run=TEXT,
    in_node=TEXT,
    scope=_columns(
        replica=TEXT,
        makes=TEXTS,
        carries=TEXTS,
        senders=TEXTS,
        receivers=TEXTS,
        nexts=TEXTS,
        outputs=TEXTS,
        delivers=TEXTS,
        never_says=TEXTS,
    ),
)
# ``sink`` is one that the replica or operator ``toward`` leads to; ``maker`` one of the nodes that emit.
SINKS = _columns(run=TEXT, toward=TEXT, sink=TEXT)
MAKERS = _columns(run=TEXT, origin=TEXT, node=TEXT)

# Ground truth as the radio writes it.
RAW_LINKS = _columns(t_ns=COUNT, src=TEXT, dst=TEXT, up=FLAG, cost=REAL)
RAW_POSITIONS = _columns(t_ns=COUNT, node=TEXT, x=REAL, y=REAL)
RAW_DELIVERIES = _columns(
    t_ns=COUNT, src=TEXT, dst=TEXT, attempted=COUNT, delivered=COUNT, expected=REAL, snr_db=REAL
)

# How far a clock was ahead of the orchestrator's, piece by piece of its own time: see ``clocks.correction``.
CLOCKS = _columns(run=TEXT, of=TEXT, from_ns=COUNT, until_ns=COUNT, at_ns=COUNT, offset_ns=COUNT, slope=REAL)

# A tuple (origin, tau) on its way to a sink, from birth to fate: delivered, dropped:<reason>,
# lost_in_transit, in_flight_at_end. It owes a delivery to every sink that its stream leads to: a row each.
TUPLES = _columns(
    run=TEXT,
    origin=TEXT,
    tau=COUNT,
    sink=TEXT,
    born_ns=COUNT,
    emitted_ns=COUNT,
    delivered_ns=COUNT,
    latency_ns=COUNT,
    size=COUNT,
    delivered_size=COUNT,
    delivered_at=TEXT,
    delivered=FLAG,
    duplicates=COUNT,
    drop_reason=TEXT,
    dropped_at=TEXT,
    last_ns=COUNT,
    fate=TEXT,
    in_window=FLAG,
)

# A tuple on its way from one replica to another; either time is null if that end did not report.
HOPS = _columns(
    run=TEXT,
    origin=TEXT,
    tau=COUNT,
    sender=TEXT,
    receiver=TEXT,
    sent_ns=COUNT,
    received_ns=COUNT,
    sends=COUNT,
    receptions=COUNT,
    size=COUNT,
)

# A replica's choice among the replicas downstream. ``changed``: another replica than the last one it used.
SWITCHES = _columns(
    run=TEXT,
    node=TEXT,
    t_ns=COUNT,
    replica=TEXT,
    downstream=TEXT,
    old=TEXT,
    new=TEXT,
    old_cost=REAL,
    new_cost=REAL,
    source=TEXT,
    changed=FLAG,
    in_window=FLAG,
)

COSTS = _columns(run=TEXT, node=TEXT, t_ns=COUNT, replica=TEXT, to=TEXT, cost=REAL, metric=TEXT, source=TEXT)

# What a node's routing daemon had put on the air by ``t_ns``, for one kind of message: counters only grow.
OVERHEAD = _columns(
    run=TEXT,
    node=TEXT,
    t_ns=COUNT,
    protocol=TEXT,
    message=TEXT,
    sent=COUNT,
    sent_bytes=COUNT,
    forwarded=COUNT,
    forwarded_bytes=COUNT,
)

# An operator met with what it cannot use, for the ``count``-th time since its agent's boot, and went on.
OPERATOR_FAULTS = _columns(
    run=TEXT, node=TEXT, boot=COUNT, t_ns=COUNT, replica=TEXT, reason=TEXT, count=COUNT
)

# A face of a frame that arrived: who was shown (null: nobody), who was seen (null: not found, or not asked),
# and what became of it (see ``faces``). ``known``: in a gallery of the run.
FACES = _columns(
    run=TEXT,
    replica=TEXT,
    origin=TEXT,
    tau=COUNT,
    frame=COUNT,
    t_ns=COUNT,
    born_ns=COUNT,
    latency_ns=COUNT,
    gallery=TEXT,
    true_person=TEXT,
    seen_person=TEXT,
    known=FLAG,
    overlap=REAL,
    score=REAL,
    distance=REAL,
    outcome=TEXT,
    in_window=FLAG,
)
KNOWN_PERSONS = _columns(run=TEXT, true_person=TEXT)

# Ground truth: a directed link was up with this cost from ``up_ns`` until ``down_ns`` (null: to the end).
LINKS_TRUTH = _columns(run=TEXT, src=TEXT, dst=TEXT, up_ns=COUNT, down_ns=COUNT, cost=REAL)

POSITIONS = _columns(run=TEXT, node=TEXT, t_ns=COUNT, x=REAL, y=REAL)

# Ground truth: frames sent over a link in the second before ``t_ns``, beside the share of full-size frames
# that its SNR lets expect (without interference).
DELIVERIES = StructType([StructField("run", TEXT), *RAW_DELIVERIES])

# Ground truth: whether every source node had a path to a sink node, in intervals without gaps.
CONNECTIVITY = _columns(run=TEXT, from_ns=COUNT, until_ns=COUNT, connected=FLAG)

# What came of a node's log, per boot. ``complete``: it begins with a start, ends with a stop, misses nothing.
NODES = _columns(
    run=TEXT,
    node=TEXT,
    boot=COUNT,
    records=COUNT,
    first_seq=COUNT,
    last_seq=COUNT,
    missing=COUNT,
    duplicates=COUNT,
    corrupt_lines=COUNT,
    refused=COUNT,
    first_ns=COUNT,
    last_ns=COUNT,
    started=FLAG,
    stopped=FLAG,
    stop_reason=TEXT,
    complete=FLAG,
)

# One row a run. Values of ``factors`` are JSON; sources and sinks are those of the deployment plan.
RUNS = _columns(
    run=TEXT,
    experiment=TEXT,
    invocation=TEXT,
    factors=TEXT_MAP,
    seed=COUNT,
    clock=TEXT,
    verdict=TEXT,
    reasons=TEXTS,
    started=MOMENT,
    finished=MOMENT,
    measure_from_ns=COUNT,
    measure_until_ns=COUNT,
    first_ns=COUNT,
    ended_ns=COUNT,
    records=COUNT,
    duplicates=COUNT,
    corrupt_lines=COUNT,
    refused=COUNT,
    sources=TEXTS,
    source_nodes=TEXTS,
    sink_nodes=TEXTS,
    versions=TEXT_MAP,
)

TABLES: dict[str, StructType] = {
    "tuples": TUPLES,
    "hops": HOPS,
    "switches": SWITCHES,
    "costs": COSTS,
    "overhead": OVERHEAD,
    "operator_faults": OPERATOR_FAULTS,
    "faces": FACES,
    "links_truth": LINKS_TRUTH,
    "positions": POSITIONS,
    "deliveries": DELIVERIES,
    "connectivity": CONNECTIVITY,
    "nodes": NODES,
    "runs": RUNS,
}
