"""Computes in DuckDB how long applications needed to recover from faults."""

NAMES = ("recovery_mean_s", "recovery_max_s", "resumed_mean_s")

# A sink without a later tuple has no row in ``reached``.
RECOVERED = """
WITH moments AS (
  SELECT run, fault, 'began' AS what, from_ns AS at_ns FROM faults
  UNION ALL SELECT run, fault, 'ended', until_ns FROM faults JOIN runs USING (run)
  WHERE from_ns >= measure_from_ns AND until_ns IS NOT NULL
), sinks AS (
  SELECT run, app, count(DISTINCT sink) AS sinks FROM leads GROUP BY run, app
), counted AS (
  SELECT m.*, app, sinks FROM moments m JOIN runs USING (run) JOIN sinks USING (run)
  WHERE at_ns >= measure_from_ns AND at_ns < measure_until_ns
), reached AS (
  SELECT c.run, c.app, fault, what, sink, min(delivered_ns) - at_ns AS took_ns
  FROM counted c JOIN tuples t ON t.run = c.run AND t.app = c.app AND t.delivered AND t.born_ns >= at_ns
  GROUP BY c.run, c.app, fault, what, at_ns, sink
), recovered AS (
  SELECT run, app, fault, what, max(took_ns) AS took_ns, count(*) AS sinks FROM reached GROUP BY ALL
)
SELECT run, app, avg(took_ns) FILTER (what = 'began') / 1e9 AS recovery_mean_s,
  max(took_ns) FILTER (what = 'began') / 1e9 AS recovery_max_s,
  avg(took_ns) FILTER (what = 'ended') / 1e9 AS resumed_mean_s,
  count(*) FILTER (what = 'began' AND took_ns IS NULL) AS faults_unrecovered
FROM counted LEFT JOIN recovered USING (run, app, fault, what, sinks) GROUP BY run, app"""
