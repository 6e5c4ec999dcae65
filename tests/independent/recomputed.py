"""Recomputes what the analysis says of a run: the rows of every table, and every metric of summary.json."""

from pathlib import Path
from typing import Any

from tests.independent import air, believed_costs, flow_figures, network, paths, recovery, routes, tuples
from tests.independent.plan import Query
from tests.independent.reading import Run

Document = dict[str, Any]


class Recomputed:
    """``rows``: how many each table has of the run."""

    def __init__(self, directory: Path) -> None:
        self.run = Run(directory)
        self.rows: dict[str, int] = {"runs": 1, "apps": len(self.run.apps), "nodes": len(self.run.boots)}
        self._apps: Document = {}
        self._never_emitted = 0
        for name, app in self.run.apps.items():
            found = network.intervals(self.run, app)
            self._add("connectivity", len(found or []))
            if isinstance(app, Query):
                entry = self._query(name, app)
            else:
                flows = {flow: flow_figures.Flow(self.run, name, flow, ends) for flow, ends in app.items()}
                self._add("flow_totals", len(flows))
                self._add("flows", sum(len(flow.seconds) for flow in flows.values()))
                entry = {"kind": "flows", "metrics": flow_figures.metrics_of(self.run, flows)}
            entry["metrics"]["source_sink_connected_ratio"] = network.connected_ratio(self.run, found)
            self._apps[name] = entry
        self._add("overhead", len(self.run.records("routing_overhead")))
        self._add("links_truth", sum(each["up"] for each in self.run.truth("links") or []))
        for name in ("positions", "deliveries", "airtime"):
            self._add(name, len(self.run.truth(name) or []))
        self._add("quarantine", sum(boot.corrupt + boot.refused for boot in self.run.boots))

    def _add(self, table: str, rows: int) -> None:
        self.rows[table] = self.rows.get(table, 0) + rows

    def _query(self, name: str, query: Query) -> Document:
        run = self.run
        records = [one for each in run.records(*tuples.KINDS, app=name) for one in tuples.one_by_one(each)]
        found = tuples.tuples_of(run, query, records)
        self._never_emitted += int((found["fate"] == "never_emitted").sum())
        self._add("tuples", len(found))
        self._add("hops", len(tuples.hops_of(records)))
        self._add("paths", int((found["fate"] == "delivered").sum()))
        kinds = {"switches": "route_switch", "costs": "link_cost", "operator_faults": "operator_fault"}
        for table, kind in kinds.items():
            self._add(table, len(run.records(kind, app=name)))
        switches = routes.switches_of(run, name, records)
        metrics = {
            **tuples.metrics_of(run, query, found),
            **paths.metrics_of(run, query, found, records),
            **recovery.metrics_of(run, query, found),
            **believed_costs.metrics_of(run, name, query),
            "switches": switches,
            "switches_per_min": switches / (run.window_s / 60),
            "no_route_s": routes.no_route_s(run, name, query),
        }
        return {"kind": "query", "metrics": metrics, "operator_faults": routes.operator_faults(run, name)}

    def _fairness(self) -> float | None:
        """Jain's index over the shares of what should have arrived that did."""
        shares = []
        for entry in self._apps.values():
            metrics = entry["metrics"]
            if entry["kind"] == "flows":
                share = metrics["flow_delivery_ratio"]
            else:
                share = None if metrics["loss_ratio"] is None else 1 - metrics["loss_ratio"]
            if share is not None:
                shares.append(share)
        squares = sum(share**2 for share in shares)
        return sum(shares) ** 2 / len(shares) / squares if len(shares) > 1 and squares else None

    def summary(self) -> Document:
        """Returns the part of summary.json that has metrics and counts."""
        boots = self.run.boots
        counts = {
            "records": sum(len(boot.records) for boot in boots),
            "missing": sum(boot.missing for boot in boots),
            "duplicates": sum(boot.duplicates for boot in boots),
            "corrupt_lines": sum(boot.corrupt for boot in boots),
            "refused": sum(boot.refused for boot in boots),
        }
        nodes: Document = {}
        for boot in boots:
            node = nodes.setdefault(boot.node, dict.fromkeys(("records", "corrupt_lines", "refused"), 0))
            node["records"] += len(boot.records)
            node["corrupt_lines"] += boot.corrupt
            node["refused"] += boot.refused
        incomplete = sum(not boot.is_complete for boot in boots)
        never = {"never_emitted": self._never_emitted} if _has_query(self.run) else {}
        only = next(iter(self._apps.values()))["metrics"] if len(self._apps) == 1 else {}
        return {
            "metrics": {
                **routes.overhead(self.run),
                **air.metrics_of(self.run),
                **({"app_fairness": self._fairness()} if len(self._apps) > 1 else {}),
                **only,
            },
            "apps": self._apps,
            "telemetry": {"boots": len(boots), "incomplete_boots": incomplete, **counts, **never},
            "nodes": nodes,
        }


def _has_query(run: Run) -> bool:
    return any(isinstance(app, Query) for app in run.apps.values())
