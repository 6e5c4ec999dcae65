"""Follows tuples back from their sinks in DuckDB: the table ``paths``, and what is computed from it."""

NAMES = (
    *("latency_network_s", "latency_queue_s", "latency_compute_s"),
    *("paths_known_ratio", "paths_effective"),
)

# What a tuple took in the operator of a replica, the first time that it was there.
TOOK = """
CREATE TABLE took AS
SELECT run, app, replica, origin, tau, arg_min(took_ns, t_ns) AS took_ns FROM (
  SELECT run, app, replica, origin, t_ns, took_ns // coalesce(tuples, 1) AS took_ns,
    tau + unnest(range(coalesce(tuples, 1))) AS tau
  FROM lines WHERE kind = 'tuple_processed')
GROUP BY ALL
"""

# A tuple came to a replica from whom this got it first.
FIRST_HOPS = """
CREATE TABLE first_hops AS
SELECT run, app, origin, tau, receiver AS replica, min(received_ns) AS received_ns,
  arg_min({'sender': sender, 'sent_ns': sent_ns}, (received_ns, sender)) AS came
FROM hops WHERE received_ns IS NOT NULL GROUP BY ALL
"""

# Step 0 is the sink.
STEPS = """
CREATE TABLE steps AS
WITH RECURSIVE back AS (
  SELECT run, app, origin, tau, sink, born_ns, 0 AS step, delivered_at AS replica, delivered_ns AS left_ns
  FROM tuples WHERE delivered
  UNION ALL
  SELECT run, app, origin, tau, sink, born_ns, step + 1, came.sender, came.sent_ns
  FROM back JOIN first_hops USING (run, app, origin, tau, replica)
  JOIN streams USING (run, app, origin, replica)
  WHERE received_ns <= left_ns AND came.sent_ns IS NOT NULL AND NOT begins
)
SELECT run, app, origin, tau, sink, step, replica, begins,
  CASE WHEN begins THEN 0 ELSE received_ns - came.sent_ns END AS network_ns,
  left_ns - CASE WHEN begins THEN born_ns ELSE received_ns END AS here_ns,
  coalesce(took_ns, 0) AS compute_ns
FROM back JOIN streams USING (run, app, origin, replica)
LEFT JOIN first_hops USING (run, app, origin, tau, replica)
LEFT JOIN took USING (run, app, origin, tau, replica)
"""

PATHS = """
CREATE TABLE paths AS
SELECT run, app, origin, tau, sink, path, network_ns, queue_ns, compute_ns, latency_ns, complete, in_window
FROM tuples JOIN (
  SELECT run, app, origin, tau, sink, bool_or(begins) AS complete,
    list(replica ORDER BY step DESC) AS path, list(network_ns ORDER BY step DESC) AS network_ns,
    list(here_ns - compute_ns ORDER BY step DESC) AS queue_ns,
    list(compute_ns ORDER BY step DESC) AS compute_ns
  FROM steps GROUP BY ALL) USING (run, app, origin, tau, sink)
"""

STATEMENTS = (TOOK, FIRST_HOPS, STEPS, PATHS)

PARTS = """
SELECT run, app, count(*) FILTER (complete) AS known, known / count(*) AS paths_known_ratio,
  avg(list_sum(network_ns)) FILTER (complete) / 1e9 AS latency_network_s,
  avg(list_sum(queue_ns)) FILTER (complete) / 1e9 AS latency_queue_s,
  avg(list_sum(compute_ns)) FILTER (complete) / 1e9 AS latency_compute_s
FROM paths WHERE in_window GROUP BY run, app"""

DIVERSITY = """
WITH taken AS (
  SELECT run, app, origin, sink, path, count(*) AS times FROM paths WHERE in_window AND complete GROUP BY ALL
)
SELECT run, app, count(*) AS paths_used,
  exp(-sum(times * ln(times / of_stream)) / sum(times)) AS paths_effective
FROM (SELECT *, sum(times) OVER (PARTITION BY run, app, origin, sink) AS of_stream FROM taken)
GROUP BY run, app"""

# By operator: what reached it first, or what a source made.
ARRIVED = """
WITH arrivals AS (
  SELECT run, app, split_part(replica, '/', 1) AS operator, replica, origin, tau, received_ns AS t_ns, size
  FROM first_hops JOIN (SELECT run, app, origin, tau, receiver AS replica, sender, size FROM hops) h
    USING (run, app, origin, tau, replica) WHERE sender = came.sender
  UNION ALL
  SELECT DISTINCT run, app, split_part(origin, '/', 1), origin, origin, tau, emitted_ns, size
  FROM tuples WHERE contains(origin, '/')
), firsts AS (
  SELECT run, app, operator, origin, tau, min(t_ns) AS t_ns,
    arg_min({'replica': replica, 'size': size}, t_ns) AS first
  FROM arrivals WHERE t_ns IS NOT NULL GROUP BY ALL
)
SELECT run, app, operator, count(*) * 1e9 / any_value(measure_until_ns - measure_from_ns) AS arrived_fps,
  sum(first.size) * 8e6 / any_value(measure_until_ns - measure_from_ns) AS arrived_kbps,
  count(DISTINCT first.replica) AS replicas
FROM firsts JOIN runs USING (run) WHERE t_ns >= measure_from_ns AND t_ns < measure_until_ns
GROUP BY run, app, operator"""

# By operator: its part of the latency of all tuples whose path is known.
SPENT = """
SELECT run, app, split_part(replica, '/', 1) AS operator, sum(network_ns) AS network_ns,
  sum(here_ns - compute_ns) AS queue_ns, sum(compute_ns) AS compute_ns
FROM steps SEMI JOIN (SELECT * FROM paths WHERE in_window AND complete) USING (run, app, origin, tau, sink)
GROUP BY ALL"""
