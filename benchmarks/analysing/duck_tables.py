"""Makes Rove's tables in DuckDB, in SQL, from the segments and the ground truth of runs in virtual time.

Every table has the product's columns and rows. The rules about lines are applied as far as runs of agents
that do not lie need them: a line must be a record with its fields in their ranges, of this run, node and
boot, about a part that the plan puts there and a stream that passes it. Clocks are not corrected: in virtual
time there is one.
"""

from collections.abc import Iterator

# Every field of a record that some table needs, or that a rule is about.
FIELDS = {
    **dict.fromkeys(("run", "node", "app", "kind", "replica", "to", "sender", "origin"), "VARCHAR"),
    **dict.fromkeys(("reason", "downstream", "old", "new", "source", "metric"), "VARCHAR"),
    **dict.fromkeys(("protocol", "message", "flow"), "VARCHAR"),
    **dict.fromkeys(("boot", "seq", "t_ns", "tau", "size", "took_ns", "tuples", "born_ns"), "BIGINT"),
    **dict.fromkeys(("sent", "sent_bytes", "forwarded", "forwarded_bytes", "count"), "BIGINT"),
    **dict.fromkeys(("source_boot", "opened_ns", "now_ns", "packets", "bytes", "skipped"), "BIGINT"),
    **dict.fromkeys(("acknowledged", "connections", "failures", "duplicates", "reordered", "late"), "BIGINT"),
    **dict.fromkeys(("sizes", "births"), "BIGINT[]"),
    **dict.fromkeys(("seconds", "heard", "arrived"), "BIGINT[][]"),
    **dict.fromkeys(("old_cost", "new_cost", "cost"), "DOUBLE"),
}
TRUTH = {
    "links": {"t_ns": "BIGINT", "src": "VARCHAR", "dst": "VARCHAR", "up": "BOOLEAN", "cost": "DOUBLE"},
    "positions": {"t_ns": "BIGINT", "node": "VARCHAR", "x": "DOUBLE", "y": "DOUBLE"},
    "deliveries": {
        **{"t_ns": "BIGINT", "src": "VARCHAR", "dst": "VARCHAR", "attempted": "BIGINT"},
        **{"delivered": "BIGINT", "expected": "DOUBLE", "snr_db": "DOUBLE"},
    },
    "airtime": {"t_ns": "BIGINT", "node": "VARCHAR", "sent_ns": "BIGINT"},
}
_TIMES = ("t_ns", "born_ns", "took_ns", "opened_ns", "now_ns")
_COUNTERS = (
    *("seq", "tau", "size", "sent", "sent_bytes", "forwarded", "forwarded_bytes", "count", "packets"),
    *("bytes", "skipped", "acknowledged", "connections", "failures", "duplicates", "reordered", "late"),
)
_TUPLE_KINDS = (
    "('tuple_emitted','tuple_sent','tuple_received','tuple_processed','tuple_delivered','tuple_dropped')"
)
_BOUNDS = " AND ".join(
    [
        *(f"coalesce({name} BETWEEN 0 AND 4611686018427387904, true)" for name in _TIMES),
        *(f"coalesce({name} BETWEEN 0 AND 4611686018427387904, true)" for name in _COUNTERS),
        "coalesce(tuples BETWEEN 1 AND 4096, true)",
        "coalesce(len(sizes) IN (0, coalesce(tuples, 1)), true)",
        "coalesce(len(births) IN (0, coalesce(tuples, 1)), true)",
    ]
)

LINES = f"""
CREATE TABLE lines AS
WITH raw AS (
  SELECT r.* EXCLUDE (filename), f.run AS in_run, f.node AS in_node, f.boot AS in_boot
  FROM read_json($files, format = 'newline_delimited', columns = {FIELDS}, filename = true,
                 ignore_errors = true, maximum_object_size = 1048576) r
  JOIN files f ON f.file = r.filename
), marked AS (
  SELECT *, NOT coalesce(kind IS NOT NULL AND seq IS NOT NULL AND t_ns IS NOT NULL AND boot = in_boot
    AND run IS NOT NULL AND node IS NOT NULL AND {_BOUNDS}
    AND (kind NOT IN {_TUPLE_KINDS}
      OR (replica IS NOT NULL AND origin IS NOT NULL AND tau IS NOT NULL AND size IS NOT NULL)),
    false) AS corrupt
  FROM raw
)
SELECT m.* EXCLUDE (run, node, boot, in_run, in_node, in_boot), in_run AS run,
  in_node AS node, in_boot AS boot,
  NOT corrupt AND NOT coalesce(
    m.run = in_run AND m.node = in_node
    AND (m.app = '' OR a.app IS NOT NULL)
    AND (coalesce(m.replica, m.flow) IS NULL OR p.part IS NOT NULL)
    AND (m.kind NOT IN {_TUPLE_KINDS} OR s.origin IS NOT NULL), false) AS refused
FROM marked m
LEFT JOIN apps a ON a.run = in_run AND a.app = m.app
LEFT JOIN places p ON p.run = in_run AND p.app = m.app AND p.node = in_node
  AND p.part = coalesce(m.replica, m.flow)
LEFT JOIN streams s ON s.run = in_run AND s.app = m.app AND s.replica = m.replica AND s.origin = m.origin
"""

NODES = """
CREATE TABLE nodes AS
SELECT run, node, boot, records, first_seq, last_seq,
  coalesce(last_seq + 1 - present, 0) AS missing, told - records AS duplicates, corrupt_lines, refused,
  first_ns, last_ns, started, stopped, stop_reason,
  started AND stopped AND coalesce(last_seq + 1 - present, 0) = 0 AS complete
FROM (
  SELECT run, node, boot,
    count(DISTINCT seq) FILTER (NOT corrupt AND NOT refused) AS records,
    count(seq) FILTER (NOT corrupt AND NOT refused) AS told,
    count(DISTINCT seq) FILTER (NOT corrupt) AS present,
    count(*) FILTER (corrupt) AS corrupt_lines, count(*) FILTER (refused) AS refused,
    min(seq) FILTER (NOT corrupt AND NOT refused) AS first_seq, max(seq) FILTER (NOT corrupt) AS last_seq,
    min(t_ns) FILTER (NOT corrupt AND NOT refused) AS first_ns,
    max(t_ns) FILTER (NOT corrupt AND NOT refused) AS last_ns,
    count(*) FILTER (NOT corrupt AND NOT refused AND kind = 'agent_start') > 0 AS started,
    count(*) FILTER (NOT corrupt AND NOT refused AND kind = 'agent_stop') > 0 AS stopped,
    max(reason) FILTER (NOT corrupt AND NOT refused AND kind = 'agent_stop') AS stop_reason
  FROM lines GROUP BY run, node, boot)
"""

# After this, lines are believed, and each is there once.
BELIEVED = "DELETE FROM lines WHERE corrupt OR refused"
ONCE = """
DELETE FROM lines WHERE rowid NOT IN (SELECT min(rowid) FROM lines GROUP BY run, node, boot, seq)
"""

RUNS = """
CREATE TABLE runs AS
SELECT d.run, experiment, invocation, factors, seed, clock, verdict, reasons, started::TIMESTAMPTZ AS started,
  finished::TIMESTAMPTZ AS finished, measure_from_ns, measure_until_ns, first_ns, ended_ns,
  coalesce(records, 0) AS records, coalesce(duplicates, 0) AS duplicates,
  coalesce(corrupt_lines, 0) AS corrupt_lines, coalesce(refused, 0) AS refused, versions
FROM described d LEFT JOIN (
  SELECT run, min(first_ns) AS first_ns, max(last_ns) AS ended_ns, sum(records)::BIGINT AS records,
    sum(duplicates)::BIGINT AS duplicates, sum(corrupt_lines)::BIGINT AS corrupt_lines,
    sum(refused)::BIGINT AS refused
  FROM nodes GROUP BY run) n USING (run)
"""

# One row a tuple.
EVENTS = f"""
CREATE TABLE events AS
SELECT run, app, node, boot, seq, t_ns, kind, replica, "to", sender, origin, tau, size, born_ns, reason,
  downstream
FROM lines WHERE kind IN {_TUPLE_KINDS} AND coalesce(tuples, 1) = 1
UNION ALL
SELECT run, app, node, boot, seq, t_ns, kind, replica, "to", sender, origin, tau + place,
  coalesce(sizes[place + 1], size // tuples), born_ns + coalesce(births[place + 1], 0), reason, downstream
FROM (SELECT *, unnest(range(tuples)) AS place FROM lines WHERE kind IN {_TUPLE_KINDS} AND tuples > 1)
"""

HOPS = """
CREATE TABLE hops AS
SELECT run, app, origin, tau, sender, receiver, min(sent_ns) AS sent_ns, min(received_ns) AS received_ns,
  count(sent_ns) AS sends, count(received_ns) AS receptions, max(size) AS size
FROM (
  SELECT run, app, origin, tau, replica AS sender, "to" AS receiver, t_ns AS sent_ns,
    NULL AS received_ns, size
  FROM events WHERE kind = 'tuple_sent'
  UNION ALL
  SELECT run, app, origin, tau, sender, replica, NULL, t_ns, size FROM events WHERE kind = 'tuple_received')
GROUP BY run, app, origin, tau, sender, receiver
"""

TUPLES = """
CREATE TABLE tuples AS
WITH lives AS (
  SELECT e.run, e.app, e.origin, e.tau, l.sink,
    min(t_ns) FILTER (kind = 'tuple_emitted') AS emitted_ns,
    max(size) FILTER (kind = 'tuple_emitted') AS size,
    min(born_ns) FILTER (kind = 'tuple_delivered') AS born_ns,
    min(t_ns) FILTER (kind = 'tuple_delivered') AS delivered_ns,
    arg_min({'size': size, 'at': replica}, t_ns) FILTER (kind = 'tuple_delivered') AS arrival,
    count(*) FILTER (kind = 'tuple_delivered') AS arrivals,
    arg_max({'reason': reason, 'at': replica}, (
      CASE WHEN reason = 'link_failed' THEN 0 WHEN reason IN ('filtered', 'absorbed') THEN 1 ELSE 2 END
      ::HUGEINT * 4611686018427387904 + t_ns) * 9007199254740992 + seq)
      FILTER (kind = 'tuple_dropped') AS dropped,
    max(t_ns) AS last_ns,
    arg_max({'node': node, 'boot': boot}, t_ns::HUGEINT * 9007199254740992 + seq) AS holder
  FROM events e JOIN leads l ON l.run = e.run AND l.app = e.app AND l.toward = CASE
    WHEN kind = 'tuple_sent' THEN "to" WHEN kind = 'tuple_dropped' THEN coalesce(downstream, replica)
    ELSE replica END
  GROUP BY ALL
), on_links AS (
  SELECT h.run, h.app, origin, tau, sink, max(sent_ns) FILTER (received_ns IS NULL) AS unreceived_ns,
    max(received_ns) AS received_ns
  FROM hops h JOIN leads l ON l.run = h.run AND l.app = h.app AND l.toward = receiver
  GROUP BY ALL
), vouched AS (
  SELECT m.run, m.app, m.origin, bool_and(coalesce(sound, false)) AS vouched
  FROM makers m LEFT JOIN (
    SELECT run, node, bool_and(complete AND duplicates + corrupt_lines + refused = 0) AS sound
    FROM nodes GROUP BY run, node) n ON n.run = m.run AND n.node = m.node
  GROUP BY m.run, m.app, m.origin
), joined AS (
  SELECT v.*, o.unreceived_ns, o.received_ns, u.vouched, r.ended_ns, r.measure_from_ns, r.measure_until_ns,
    n.stopped AND coalesce(n.stop_reason, '') <> 'killed by a fault' AS holder_stopped,
    v.arrivals > 0 AND v.emitted_ns IS NULL AND coalesce(u.vouched, false) AS unfounded
  FROM lives v
  LEFT JOIN on_links o ON o.run = v.run AND o.app = v.app AND o.origin = v.origin AND o.tau = v.tau
    AND o.sink = v.sink
  LEFT JOIN vouched u ON u.run = v.run AND u.app = v.app AND u.origin = v.origin
  LEFT JOIN nodes n ON n.run = v.run AND n.node = v.holder.node AND n.boot = v.holder.boot
  JOIN runs r ON r.run = v.run
), judged AS (
  SELECT *, arrivals > 0 AND NOT unfounded AS delivered, coalesce(born_ns, emitted_ns) AS birth_ns,
    unreceived_ns >= coalesce(received_ns, unreceived_ns) AS on_a_link
  FROM joined
)
SELECT run, app, origin, tau, sink, birth_ns AS born_ns, emitted_ns,
  CASE WHEN delivered THEN delivered_ns END AS delivered_ns,
  CASE WHEN delivered THEN delivered_ns - birth_ns END AS latency_ns,
  size, CASE WHEN delivered THEN arrival.size END AS delivered_size,
  CASE WHEN delivered THEN arrival.at END AS delivered_at, delivered,
  CASE WHEN delivered THEN arrivals - 1 ELSE 0 END AS duplicates,
  dropped.reason AS drop_reason, dropped.at AS dropped_at, last_ns,
  CASE
    WHEN unfounded THEN 'never_emitted'
    WHEN delivered THEN 'delivered'
    WHEN dropped.reason IN ('filtered', 'absorbed') THEN dropped.reason
    WHEN dropped IS NOT NULL THEN 'dropped:' || split_part(dropped.reason, ':', 1)
    WHEN on_a_link AND unreceived_ns >= ended_ns - 10000000000 THEN 'in_flight_at_end'
    WHEN on_a_link THEN 'lost_in_transit'
    WHEN holder_stopped THEN 'in_flight_at_end'
    ELSE 'lost_in_transit' END AS fate,
  coalesce(birth_ns >= measure_from_ns AND birth_ns < measure_until_ns, false) AND NOT unfounded AS in_window
FROM judged
"""

SWITCHES = """
CREATE TABLE switches AS
SELECT s.run, app, node, t_ns, replica, downstream, old, new, old_cost, new_cost, source,
  coalesce(new <> coalesce(old, used_before), false) AS changed,
  coalesce(t_ns >= measure_from_ns AND t_ns < measure_until_ns, false) AS in_window
FROM (
  SELECT *, last_value(new IGNORE NULLS) OVER (PARTITION BY run, app, replica, downstream
    ORDER BY t_ns, boot, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS used_before
  FROM lines WHERE kind = 'route_switch') s JOIN runs r ON r.run = s.run
"""

_OF_KIND = {
    "costs": ("link_cost", 'run, app, node, t_ns, replica, "to", cost, metric, source'),
    "operator_faults": ("operator_fault", "run, app, node, boot, t_ns, replica, reason, count"),
    "overhead": (
        "routing_overhead",
        "run, node, t_ns, protocol, message, sent, sent_bytes, forwarded, forwarded_bytes",
    ),
}

LINKS_TRUTH = """
CREATE TABLE links_truth AS
SELECT run, src, dst, t_ns AS up_ns, down_ns, cost
FROM (SELECT *, lead(t_ns) OVER (PARTITION BY run, src, dst ORDER BY t_ns, up) AS down_ns FROM raw_links)
WHERE up
"""
POSITIONS = """
CREATE TABLE positions AS SELECT run, node, t_ns, x, y FROM raw_positions
WHERE abs(x) < 1e12 AND abs(y) < 1e12
"""
DELIVERIES = """
CREATE TABLE deliveries AS SELECT run, t_ns, src, dst, attempted, delivered, expected, snr_db
FROM raw_deliveries WHERE attempted BETWEEN 0 AND 1e15 AND delivered BETWEEN 0 AND 1e15
  AND coalesce(expected, 0) BETWEEN 0 AND 1
"""
AIRTIME = """
CREATE TABLE airtime AS SELECT run, t_ns, node, sent_ns FROM raw_airtime WHERE sent_ns >= 0
"""

ORDER = {
    "runs": (),
    "apps": ("app",),
    "nodes": ("node", "boot"),
    "links_truth": ("up_ns", "src", "dst"),
    "positions": ("t_ns", "node"),
    "deliveries": ("t_ns", "src", "dst"),
    "airtime": ("t_ns", "node"),
    "overhead": ("t_ns", "node", "message"),
    "connectivity": ("app", "from_ns"),
    "tuples": ("app", "origin", "tau", "sink"),
    "hops": ("app", "origin", "tau", "sender", "receiver"),
    "paths": ("app", "origin", "tau", "sink"),
    "switches": ("t_ns", "app", "replica", "downstream"),
    "costs": ("t_ns", "app", "replica", '"to"'),
    "operator_faults": ("t_ns", "app", "replica", "reason", "count"),
    "flows": ("app", "flow", "boot", "second"),
    "flow_totals": ("app", "flow"),
}
"""The tables that are written, and the order of their rows within a run."""


def truth(what: str, is_there: bool) -> str:
    """Returns the statement that reads one kind of ground truth, if there are files of it."""
    if not is_there:
        columns = ", ".join(f"{name} {type_}" for name, type_ in TRUTH[what].items())
        return f"CREATE TABLE raw_{what} (run VARCHAR, {columns})"
    return f"""
    CREATE TABLE raw_{what} AS
    SELECT f.run, t.* EXCLUDE (filename)
    FROM read_json($files, format = 'newline_delimited', columns = {TRUTH[what]}, filename = true,
                   ignore_errors = true) t
    JOIN truth_files f ON f.file = t.filename
    WHERE t_ns BETWEEN 0 AND 4611686018427387904"""


def statements(has_duplicates: bool) -> Iterator[str]:
    """Yields what makes the tables from ``lines``, ``nodes`` and ground truth, in order."""
    yield BELIEVED
    if has_duplicates:
        yield ONCE
    yield from (RUNS, EVENTS, HOPS, TUPLES, SWITCHES)
    for table, (kind, columns) in _OF_KIND.items():
        yield f"CREATE TABLE {table} AS SELECT {columns} FROM lines WHERE kind = '{kind}'"
    yield from (LINKS_TRUTH, POSITIONS, DELIVERIES, AIRTIME)
