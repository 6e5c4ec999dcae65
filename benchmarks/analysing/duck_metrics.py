"""Computes the metrics of ``summary.json`` in DuckDB, by their definitions in docs/telemetry.md."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from duckdb import DuckDBPyConnection

from benchmarks.analysing import duck_air, duck_costs, duck_flows, duck_paths, duck_recovery
from benchmarks.analysing.plans import Plans

Row = dict[str, Any]
Found = dict[tuple[str, ...], Row]

_SHARES = (0.5, 0.95, 0.99, 1.0)
_IN_WINDOW = "{0} >= measure_from_ns AND {0} < measure_until_ns"


def _born(by: str) -> str:
    return f"""
    SELECT {by}, count(*) AS owed, count(*) FILTER (delivered) AS delivered,
      sum(duplicates)::BIGINT AS duplicates, avg(latency_ns) AS mean_ns,
      quantile_cont(latency_ns, {list(_SHARES)}) AS quantiles_ns,
      count(DISTINCT (origin, tau)) AS emitted,
      count(DISTINCT (origin, tau)) FILTER (contains(origin, '/')) AS offered
    FROM tuples WHERE in_window GROUP BY {by}"""


def _arrived(by: str) -> str:
    return f"""
    SELECT {by}, count(*) AS arrivals, sum(delivered_size)::BIGINT AS bytes, min(delivered_ns) AS first_ns,
      max(delivered_ns) AS last_ns,
      arg_min(delivered_size, (delivered_ns, origin, tau)) AS first_size
    FROM tuples JOIN runs USING (run) WHERE {_IN_WINDOW.format("delivered_ns")} GROUP BY {by}"""


def _fates(by: str) -> str:
    return f"""
    SELECT {by}, map_from_entries(list((fate, times))) AS fates
    FROM (SELECT {by}, fate, count(*) AS times FROM tuples WHERE in_window GROUP BY {by}, fate)
    GROUP BY {by}"""


_SWITCHED = f"""
SELECT run, app, count(*) AS switches
FROM switches SEMI JOIN (
  SELECT run, app, origin AS replica FROM tuples JOIN runs USING (run)
  WHERE {_IN_WINDOW.format("emitted_ns")}
  UNION
  SELECT run, app, receiver FROM hops JOIN runs USING (run) WHERE {_IN_WINDOW.format("received_ns")}
) USING (run, app, replica)
WHERE in_window AND changed GROUP BY run, app"""

_UNROUTED = """
SELECT run, app, count(DISTINCT (replica, downstream)) AS outputs, sum(greatest(
  CASE WHEN old IS NULL THEN least(t_ns, measure_until_ns)
    - greatest(coalesce(before_ns, measure_from_ns), measure_from_ns) ELSE 0 END, 0)
  + greatest(CASE WHEN after_ns IS NULL AND new IS NULL THEN measure_until_ns
    - greatest(t_ns, measure_from_ns) ELSE 0 END, 0))::BIGINT AS no_route_ns
FROM (
  SELECT s.*, r.measure_from_ns, r.measure_until_ns,
    lag(t_ns) OVER same AS before_ns, lead(t_ns) OVER same AS after_ns
  FROM switches s SEMI JOIN sources USING (run, app, replica) JOIN runs r ON r.run = s.run
  WINDOW same AS (PARTITION BY s.run, app, replica, downstream ORDER BY t_ns))
GROUP BY run, app"""

_OVERHEAD = """
WITH samples AS (
  SELECT o.*, measure_from_ns, measure_until_ns,
    sent_bytes - coalesce(CASE WHEN sent_bytes >= lag(sent_bytes) OVER each
      THEN lag(sent_bytes) OVER each END, 0) AS own,
    forwarded_bytes - coalesce(CASE WHEN forwarded_bytes >= lag(forwarded_bytes) OVER each
      THEN lag(forwarded_bytes) OVER each END, 0) AS others,
    coalesce(max(t_ns) FILTER (t_ns <= measure_from_ns) OVER all_of, min(t_ns) OVER all_of) AS begin_ns,
    coalesce(min(t_ns) FILTER (t_ns >= measure_until_ns) OVER all_of, max(t_ns) OVER all_of) AS end_ns
  FROM overhead o JOIN runs r ON r.run = o.run
  WINDOW each AS (PARTITION BY o.run, node, message ORDER BY t_ns),
    all_of AS (PARTITION BY o.run, node, message)
), rates AS (
  SELECT run, node, message, 8 * sum(own) / ((any_value(end_ns) - any_value(begin_ns)) / 1e9) AS sent,
    8 * sum(others) / ((any_value(end_ns) - any_value(begin_ns)) / 1e9) AS forwarded
  FROM samples WHERE t_ns > begin_ns AND t_ns <= end_ns GROUP BY run, node, message
)
SELECT run, message, sum(sent) / any_value(nodes) AS sent_bps,
  sum(forwarded) / any_value(nodes) AS forwarded_bps
FROM rates JOIN (SELECT run, count(DISTINCT node) AS nodes FROM rates GROUP BY run) USING (run)
GROUP BY run, message"""

_CONNECTED = """
SELECT run, app, sum(greatest(least(until_ns, measure_until_ns) - greatest(from_ns, measure_from_ns), 0))
  FILTER (connected)::BIGINT AS connected_ns
FROM connectivity JOIN runs USING (run) GROUP BY run, app"""

_PASSED_OVER = """
SELECT run, app, kind, sum(times)::BIGINT AS times FROM (
  SELECT run, app, replica, node, boot, split_part(reason, ':', 1) AS kind, max(count) AS times
  FROM operator_faults GROUP BY ALL)
GROUP BY run, app, kind"""

_LOGS = """
SELECT run, count(*) AS boots, count(*) FILTER (NOT complete) AS incomplete_boots,
  sum(records)::BIGINT AS records, sum(missing)::BIGINT AS missing, sum(duplicates)::BIGINT AS duplicates,
  sum(corrupt_lines)::BIGINT AS corrupt_lines, sum(refused)::BIGINT AS refused
FROM nodes GROUP BY run"""

_READ = """
SELECT run, node, sum(records)::BIGINT AS records, sum(corrupt_lines)::BIGINT AS corrupt_lines,
  sum(refused)::BIGINT AS refused
FROM nodes GROUP BY run, node"""


class Metrics:
    """The results of all queries, by what they are about."""

    def __init__(self, duck: DuckDBPyConnection, plans: Plans) -> None:
        self._duck = duck
        self._plans = plans
        app, sink = "run, app", "run, app, sink"
        duck.execute(duck_flows.INSIDE)
        windows = "SELECT run, measure_until_ns - measure_from_ns AS length_ns FROM runs"
        self._lengths: dict[str, int] = {
            key[0]: row["length_ns"] for key, row in self._ask(windows, 1).items()
        }
        self._found: dict[str, Found] = {
            "born": self._ask(_born(app), 2) | self._ask(_born(sink), 3),
            "arrived": self._ask(_arrived(app), 2) | self._ask(_arrived(sink), 3),
            "fates": self._ask(_fates(app), 2) | self._ask(_fates(sink), 3),
            "switched": self._ask(_SWITCHED, 2),
            "unrouted": self._ask(_UNROUTED, 2),
            "overhead": self._ask(_OVERHEAD, 2),
            "connected": self._ask(_CONNECTED, 2),
            "air": self._ask(duck_air.AIR, 1),
            "parts": self._ask(duck_paths.PARTS, 2),
            "diversity": self._ask(duck_paths.DIVERSITY, 2),
            "reached": self._ask(duck_paths.ARRIVED, 3),
            "spent": self._ask(duck_paths.SPENT, 3),
            "costs": duck_costs.figures(duck),
            "recovered": self._ask(duck_recovery.RECOVERED, 2),
            "passed_over": self._ask(_PASSED_OVER, 3),
            "logs": self._ask(_LOGS, 1),
            "read": self._ask(_READ, 2),
            "flows": self._ask(duck_flows.sums(app), 2) | self._ask(duck_flows.sums("run, app, flow"), 3),
        }

    def _ask(self, query: str, keys: int) -> Found:
        """Returns rows by their first columns, of which there are so many."""
        asked = self._duck.execute(query)
        names = [column[0] for column in asked.description or ()]
        rows = (dict(zip(names, row, strict=True)) for row in asked.fetchall())
        return {tuple(str(row[name]) for name in names[:keys]): row for row in rows}

    def summary(self, run: str) -> dict[str, Any]:
        """Returns the part of the run's ``summary.json`` that DuckDB computes."""
        apps = [row for row in self._plans.tables["apps"] if row["run"] == run]
        found = {
            row["app"]: self._query(run, row["app"])
            if row["kind"] == "query"
            else self._flows(run, row["app"])
            for row in apps
        }
        return {
            "metrics": {
                **self._overhead(run),
                **dict.fromkeys(duck_air.NAMES),
                **_without(self._found["air"].get((run,), {}), "run"),
                **({"app_fairness": _fairness(list(found.values()))} if len(found) > 1 else {}),
            },
            "apps": found,
            "telemetry": _without(self._found["logs"][run,], "run"),
            "nodes": {
                key[1]: _without(row, "run", "node")
                for key, row in self._found["read"].items()
                if key[0] == run
            },
        }

    def _overhead(self, run: str) -> dict[str, Any]:
        by_message = {
            key[1]: _without(row, "run", "message")
            for key, row in self._found["overhead"].items()
            if key[0] == run
        }
        total = sum(rate for rates in by_message.values() for rate in rates.values())
        return {"routing_overhead": by_message, "routing_overhead_bps": total}

    def _query(self, run: str, app: str) -> dict[str, Any]:
        whole = self._tuples(run, app)
        whole["emitted"] = self._found["born"].get((run, app), {}).get("emitted", 0)
        length_ns = self._lengths[run]
        offered = self._found["born"].get((run, app), {}).get("offered", 0)
        unrouted = self._found["unrouted"].get((run, app), {"outputs": 0, "no_route_ns": 0})
        never_ns = (self._plans.outputs[run, app] - unrouted["outputs"]) * length_ns
        sinks = self._plans.sinks[run, app]
        switches = self._found["switched"].get((run, app), {}).get("switches", 0)
        metrics = {
            **whole,
            "offered_fps": offered * 1e9 / length_ns,
            "switches": switches,
            "switches_per_min": switches * 60e9 / length_ns,
            **dict.fromkeys(duck_paths.NAMES),
            "paths_used": 0,
            **_without(self._found["parts"].get((run, app), {}), "run", "app", "known"),
            **_without(self._found["diversity"].get((run, app), {}), "run", "app"),
            "operators": self._operators(run, app),
            **dict.fromkeys(duck_recovery.NAMES),
            "faults_unrecovered": 0,
            **_without(self._found["recovered"].get((run, app), {}), "run", "app"),
            **self._found["costs"].get((run, app), dict.fromkeys(duck_costs.NAMES)),
            "no_route_s": (unrouted["no_route_ns"] + never_ns) / 1e9,
            "source_sink_connected_ratio": self._connected(run, app),
        }
        if len(sinks) > 1:
            each = {sink: self._tuples(run, app, sink) for sink in sinks}
            metrics["sinks"] = {
                sink: {"owed" if name == "emitted" else name: value for name, value in figures.items()}
                for sink, figures in each.items()
            }
        faults = {
            key[2]: row["times"] for key, row in self._found["passed_over"].items() if key[:2] == (run, app)
        }
        return {"kind": "query", "metrics": metrics, "operator_faults": faults}

    def _operators(self, run: str, app: str) -> dict[str, Any]:
        known = self._found["parts"].get((run, app), {}).get("known", 0)
        found: dict[str, Any] = {}
        for name in self._plans.operators[run, app]:
            reached = self._found["reached"].get((run, app, name), {})
            spent = self._found["spent"].get((run, app, name), {})
            found[name] = {
                **{"arrived_fps": 0.0, "arrived_kbps": 0.0, "replicas": 0},
                **_without(reached, "run", "app", "operator"),
                **{
                    f"{part}_s": spent.get(f"{part}_ns", 0) / known / 1e9 if known else None
                    for part in ("network", "queue", "compute")
                },
            }
        return found

    def _connected(self, run: str, app: str) -> float:
        known_ns: int = self._found["connected"][run, app]["connected_ns"] or 0
        return known_ns / self._lengths[run]

    def _tuples(self, *key: str) -> dict[str, Any]:
        born, arrived = (self._found[name].get(key) for name in ("born", "arrived"))
        fates = self._found["fates"].get(key, {"fates": {}})["fates"]
        owed, delivered = (born["owed"], born["delivered"]) if born else (0, 0)
        in_flight, shed = fates.get("in_flight_at_end", 0), fates.get("dropped:source_buffer_full", 0)
        due = owed - in_flight - fates.get("filtered", 0) - fates.get("absorbed", 0)
        lost, length_ns = due - delivered, self._lengths[key[0]]
        arrivals, size = (arrived["arrivals"], arrived["bytes"]) if arrived else (0, 0)
        span_ns = arrived["last_ns"] - arrived["first_ns"] if arrived else 0
        quantiles: Sequence[float | None] = (born or {}).get("quantiles_ns") or [None] * len(_SHARES)
        latencies = [(born or {}).get("mean_ns"), *quantiles]
        names = ("mean", "p50", "p95", "p99", "max")
        return {
            "emitted": owed,
            "delivered": delivered,
            "duplicates": born["duplicates"] if born else 0,
            "in_flight_at_end": in_flight,
            "lost": lost,
            "loss_ratio": lost / due if due > 0 else None,
            "shed": shed,
            "shed_ratio": shed / due if due > 0 else None,
            "network_loss_ratio": (lost - shed) / (due - shed) if due > shed else None,
            "fates": fates,
            "goodput_fps": arrivals * 1e9 / length_ns,
            "goodput_kbps": size * 8e6 / length_ns,
            "throughput_fps": (arrivals - 1) * 1e9 / span_ns if span_ns else 0.0,
            "throughput_kbps": (size - arrived["first_size"]) * 8e6 / span_ns if arrived and span_ns else 0.0,
            **{f"latency_{name}_s": _seconds(ns) for name, ns in zip(names, latencies, strict=True)},
        }

    def _flows(self, run: str, app: str) -> dict[str, Any]:
        by_flow = {
            key[2]: _flow_figures(row)
            for key, row in self._found["flows"].items()
            if len(key) == 3 and key[:2] == (run, app)
        }
        whole = _flow_figures(self._found["flows"][run, app])
        del whole["sent_packets"]
        jitters = [each["jitter_s"] for each in by_flow.values() if each["jitter_s"] is not None]
        ratios = [each["delivery_ratio"] for each in by_flow.values() if each["delivery_ratio"] is not None]
        whole["jitter_s"] = sum(jitters) / len(jitters) if jitters else None
        whole["delivery_ratio_min"] = min(ratios, default=None)
        metrics = {
            **{f"flow_{name}": value for name, value in whole.items()},
            "flows": by_flow,
            "source_sink_connected_ratio": self._connected(run, app),
        }
        return {"kind": "flows", "metrics": metrics}


def _fairness(apps: Collection[Mapping[str, Any]]) -> float | None:
    """Returns Jain's index over the applications' shares of what should have arrived."""
    losses = (app["metrics"].get("loss_ratio") for app in apps if app["kind"] == "query")
    ratios = (app["metrics"]["flow_delivery_ratio"] for app in apps if app["kind"] == "flows")
    shares = [1 - loss for loss in losses if loss is not None]
    shares += [ratio for ratio in ratios if ratio is not None]
    squares = sum(share**2 for share in shares)
    return sum(shares) ** 2 / len(shares) / squares if len(shares) > 1 and squares else None


def _flow_figures(row: Row) -> dict[str, Any]:
    sent, seconds = row["sent"] or 0, row["seconds"]
    return {
        "sent_packets": sent,
        "delivery_ratio": min(row["delivered"] / sent, 1.0) if sent else None,
        "offered_bps": 8 * (row["offered_bytes"] or 0) / seconds,
        "throughput_bps": 8 * (row["arrived_bytes"] or 0) / seconds,
        "delay_mean_s": row["delay_mean_s"],
        "delay_p50_s": _seconds(row["delay_p50_ns"]),
        "delay_p95_s": _seconds(row["delay_p95_ns"]),
        "delay_max_s": row["delay_max_s"],
        "jitter_s": row["jitter_s"],
        "duplicates": row["duplicates"],
        "reordered": row["reordered"],
    }


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
