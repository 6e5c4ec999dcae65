"""Makes the tables of flows in DuckDB and sums up what their metrics are computed from."""

_FLOW = "run, app, flow"
_SECOND = f"{_FLOW}, boot, second"

SENT = f"""
CREATE TABLE flow_said AS
SELECT {_SECOND}, max(row[2]) AS sent_packets, max(row[3]) AS sent_bytes,
  arg_max(opened_ns + second * 1000000000, now_ns) AS t_ns
FROM (SELECT *, row[1] AS second FROM (
  SELECT {_FLOW}, boot, opened_ns, now_ns, unnest(seconds) AS row FROM lines WHERE kind = 'flow_sent'))
GROUP BY ALL
"""

HEARD = f"""
CREATE TABLE flow_heard AS
WITH listed AS (
  SELECT *, row[1] AS second FROM (
    SELECT {_FLOW}, source_boot AS boot, boot AS sink_boot, unnest(heard) AS row
    FROM lines WHERE kind = 'flow_received')
), last AS (
  SELECT {_SECOND}, sink_boot, arg_max(row, row[2]) AS row FROM listed GROUP BY ALL
), most AS (
  SELECT {_SECOND}, sum(row[2])::BIGINT AS delivered_packets, sum(row[3])::BIGINT AS delivered_bytes,
    arg_max(row, row[2]::HUGEINT * 1000000 - sink_boot) AS row
  FROM last GROUP BY ALL
)
SELECT {_SECOND}, delivered_packets, delivered_bytes, row[4] / 1e9 AS jitter_s, row[5] AS base_ns,
  row[6] / row[2] AS mean_ns, row[7] AS least_ns, row[8] AS most_ns, row[9:] AS buckets
FROM most
"""

ARRIVED = f"""
CREATE TABLE flow_arrived AS
WITH zero AS (
  SELECT {_FLOW}, boot, min(opened_ns) AS zero_ns FROM lines WHERE kind = 'flow_sent' GROUP BY ALL
), last AS (
  SELECT {_FLOW}, boot, sink_boot, row[1] AS own, max(row[2]) AS packets, max(row[3]) AS bytes,
    arg_max(opened_ns + row[1] * 1000000000, row[2]) AS at_ns
  FROM (SELECT {_FLOW}, source_boot AS boot, boot AS sink_boot, opened_ns, unnest(arrived) AS row
    FROM lines WHERE kind = 'flow_received')
  GROUP BY ALL
), placed AS (
  SELECT l.*, coalesce(zero_ns, at_ns - own * 1000000000) AS zero,
    floor((at_ns - zero + 500000000) / 1e9)::BIGINT AS place
  FROM last l LEFT JOIN zero z USING (run, app, flow, boot)
)
SELECT {_FLOW}, boot, greatest(place, 0) AS second, sum(packets)::BIGINT AS arrived_packets,
  sum(bytes)::BIGINT AS arrived_bytes, max(zero + place * 1000000000) AS t_ns
FROM placed GROUP BY ALL
"""

# The middle of a bucket of delays, in ns: below 64 a bucket is a microsecond, then 32 to an octave.
BUCKET = """
CREATE MACRO middle_ns(bucket) AS
  CASE WHEN bucket < 0 THEN -1 - middle_of(-1 - bucket) ELSE middle_of(bucket) END
"""
BUCKET_OF = """
CREATE MACRO middle_of(plain) AS CASE WHEN plain < 64 THEN plain * 1000 + 500 ELSE
  ((2 * (plain - (plain // 32 - 1) * 32) + 1) * pow(2.0, plain // 32 - 1) * 500)::BIGINT END
"""

FLOWS = f"""
CREATE TABLE flows AS
SELECT {_SECOND},
  greatest(s.t_ns, a.t_ns) AS t_ns,
  coalesce(sent_packets, 0) AS sent_packets, coalesce(sent_bytes, 0) AS sent_bytes,
  least(coalesce(delivered_packets, 0), coalesce(sent_packets, delivered_packets, 0)) AS delivered_packets,
  least(coalesce(delivered_bytes, 0), coalesce(sent_bytes, delivered_bytes, 0)) AS delivered_bytes,
  CASE WHEN s.run IS NOT NULL THEN (base_ns + mean_ns) / 1e9 END AS delay_mean_s,
  CASE WHEN s.run IS NOT NULL THEN (base_ns + least_ns) / 1e9 END AS delay_min_s,
  CASE WHEN s.run IS NOT NULL THEN (base_ns + most_ns) / 1e9 END AS delay_max_s,
  jitter_s,
  CASE WHEN s.run IS NOT NULL AND base_ns IS NOT NULL THEN list_transform(buckets,
    lambda each, place: CASE WHEN place % 2 = 1 THEN base_ns + middle_ns(each) ELSE each END)
    END AS delays_ns,
  coalesce(arrived_packets, 0) AS arrived_packets, coalesce(arrived_bytes, 0) AS arrived_bytes
FROM flow_said s FULL JOIN flow_heard h USING (run, app, flow, boot, second)
FULL JOIN flow_arrived a USING (run, app, flow, boot, second)
"""


def _last(kind: str, starts: str, columns: dict[str, str]) -> str:
    last = ", ".join(f"max({old}) AS {new}" for new, old in columns.items())
    added = ", ".join(f"sum({new})::BIGINT AS {new}" for new in columns)
    inner = f"SELECT {_FLOW}, {starts}, {last} FROM lines WHERE kind = '{kind}' GROUP BY {_FLOW}, {starts}"
    return f"SELECT {_FLOW}, {added} FROM ({inner}) GROUP BY {_FLOW}"


_SENT = {
    **{"sent_packets": "packets", "sent_bytes": "bytes", "skipped": "skipped"},
    **{"acknowledged_bytes": "acknowledged", "connections": "connections", "failures": "failures"},
}
_RECEIVED = {
    **{"received_packets": "packets", "received_bytes": "bytes"},
    **{"duplicates": "duplicates", "reordered": "reordered", "late": "late"},
}
TOTALS = f"""
CREATE TABLE flow_totals AS
WITH again AS (
  SELECT {_FLOW}, sum(greatest(delivered_packets - sent_packets, 0))::BIGINT AS again_packets,
    sum(greatest(delivered_bytes - sent_bytes, 0))::BIGINT AS again_bytes
  FROM flow_said JOIN flow_heard USING (run, app, flow, boot, second) GROUP BY {_FLOW}
)
SELECT {_FLOW}, source, sink, protocol, {", ".join(f"coalesce({name}, 0) AS {name}" for name in _SENT)},
  greatest(coalesce(received_packets, 0) - coalesce(again_packets, 0), 0) AS received_packets,
  greatest(coalesce(received_bytes, 0) - coalesce(again_bytes, 0), 0) AS received_bytes,
  coalesce(duplicates, 0) + coalesce(again_packets, 0) AS duplicates,
  coalesce(reordered, 0) AS reordered, coalesce(late, 0) AS late
FROM planned_flows LEFT JOIN ({_last("flow_sent", "boot", _SENT)}) USING (run, app, flow)
LEFT JOIN ({_last("flow_received", "boot, source_boot", _RECEIVED)}) USING (run, app, flow)
LEFT JOIN again USING (run, app, flow)
"""

STATEMENTS = (SENT, HEARD, ARRIVED, BUCKET_OF, BUCKET, FLOWS, TOTALS)

# A second is in the window if its middle is.
INSIDE = """
CREATE TABLE flows_inside AS
SELECT f.*, t_ns + 500000000 < measure_until_ns
    - least(2000000000, (measure_until_ns - measure_from_ns) / 4) AS counted
FROM flows f JOIN runs USING (run)
WHERE t_ns + 500000000 >= measure_from_ns AND t_ns + 500000000 < measure_until_ns
"""


def sums(by: str) -> str:
    """Returns the query for what was sent and delivered in the window; ``by``: columns."""

    def mean(name: str) -> str:
        weight = f"delivered_packets) FILTER (counted AND {name} IS NOT NULL)"
        return f"sum({name} * {weight} / nullif(sum({weight}, 0) AS {name}"

    return f"""
    WITH delays AS (
      SELECT {by}, delays_ns[2 * place - 1] AS delay_ns, delays_ns[2 * place] AS times
      FROM (SELECT {by}, delays_ns, unnest(range(1, len(delays_ns) // 2 + 1)) AS place
        FROM flows_inside WHERE counted)
    ), ordered AS (
      SELECT *, sum(times) OVER (PARTITION BY {by} ORDER BY delay_ns ROWS UNBOUNDED PRECEDING) AS upto,
        sum(times) OVER (PARTITION BY {by}) AS packets FROM delays
    ), quantiles AS (
      SELECT {by},
        {_weighted(0.5)} AS delay_p50_ns, {_weighted(0.95)} AS delay_p95_ns
      FROM ordered GROUP BY {by}
    ), summed AS (
      SELECT {by}, sum(sent_packets) FILTER (counted)::BIGINT AS sent,
        sum(least(delivered_packets, sent_packets)) FILTER (counted)::BIGINT AS delivered,
        sum(sent_bytes)::BIGINT AS offered_bytes, sum(arrived_bytes)::BIGINT AS arrived_bytes,
        {mean("delay_mean_s")}, max(delay_max_s) FILTER (counted) AS delay_max_s, {mean("jitter_s")}
      FROM flows_inside GROUP BY {by}
    ), whole AS (
      SELECT {by}, sum(duplicates)::BIGINT AS duplicates, sum(reordered)::BIGINT AS reordered
      FROM flow_totals GROUP BY {by}
    )
    SELECT *, greatest(round((measure_until_ns - measure_from_ns) / 1e9), 1) AS seconds
    FROM whole LEFT JOIN summed USING ({by}) LEFT JOIN quantiles USING ({by})
    JOIN (SELECT run, measure_from_ns, measure_until_ns FROM runs) USING (run)"""


def _weighted(share: float) -> str:
    """Returns the percentile of values that count several times, interpolated between values."""
    place = f"{share}::DOUBLE * (packets - 1)"
    below = f"min(delay_ns) FILTER (upto > floor({place}))"
    above = f"min(delay_ns) FILTER (upto > ceil({place}))"
    part = f"any_value({place} - floor({place}))"
    return f"{below} + ({above} - {below}) * {part}"
