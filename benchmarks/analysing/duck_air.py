"""Computes in DuckDB how busy the air was around each node, and what the radios needed."""

MOST_SLICES = 60
SENDING_W, HEARING_W, IDLE_W = 1.4, 0.9, 0.75
NAMES = (
    *("airtime_sent_ratio", "airtime_near_ratio", "airtime_near_max_ratio"),
    *("radio_energy_j", "radio_energy_active_j"),
)

AIR = f"""
WITH widths AS (
  SELECT run, measure_from_ns, measure_until_ns, measure_until_ns - measure_from_ns AS length_ns,
    1000000000 * greatest(1, ceil(length_ns / {MOST_SLICES}e9))::BIGINT AS width_ns
  FROM runs SEMI JOIN (SELECT run FROM truth_files WHERE what = 'airtime') USING (run)
), slices AS (
  SELECT run, length_ns, unnest(range(ceil(length_ns / width_ns)::BIGINT)) AS slice,
    measure_from_ns + slice * width_ns AS begin_ns, least(begin_ns + width_ns, measure_until_ns) AS end_ns
  FROM widths
), sent AS (
  SELECT s.run, slice, node, least(sum(sent_ns), any_value(end_ns - begin_ns)) AS sent_ns
  FROM slices s JOIN airtime a ON a.run = s.run AND t_ns > begin_ns AND t_ns <= end_ns
  GROUP BY s.run, slice, node
), heard AS (
  SELECT s.run, slice, dst AS node, sum(sent_ns) AS heard_ns
  FROM sent s JOIN slices USING (run, slice)
  JOIN links_truth l ON l.run = s.run AND src = node AND up_ns <= (begin_ns + end_ns) // 2
    AND coalesce(down_ns > (begin_ns + end_ns) // 2, true)
  GROUP BY ALL
), around AS (
  SELECT s.run, n.node, any_value(length_ns) AS length_ns, coalesce(sum(sent_ns), 0) AS own_ns,
    sum(least(end_ns - begin_ns, coalesce(sent_ns, 0) + coalesce(heard_ns, 0))) AS near_ns
  FROM slices s JOIN (SELECT DISTINCT run, node FROM nodes) n USING (run)
  LEFT JOIN sent USING (run, slice, node) LEFT JOIN heard USING (run, slice, node)
  GROUP BY s.run, n.node
)
SELECT run, avg(own_ns / length_ns) AS airtime_sent_ratio, avg(near_ns / length_ns) AS airtime_near_ratio,
  max(near_ns / length_ns) AS airtime_near_max_ratio,
  sum({SENDING_W - IDLE_W} * own_ns + {HEARING_W - IDLE_W} * (near_ns - own_ns)) / 1e9
    AS radio_energy_active_j,
  sum({IDLE_W} * length_ns) / 1e9 + radio_energy_active_j AS radio_energy_j
FROM around GROUP BY run"""
