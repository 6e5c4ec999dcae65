"""Recomputes what the analysis says of a run: the rows of every table, and every metric of summary.json."""

from pathlib import Path
from typing import Any

from tests.independent import flow_figures, network, routes, tuples
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
        links, positions, deliveries = (
            self.run.truth(name) or [] for name in ("links", "positions", "deliveries")
        )
        self._add("links_truth", sum(each["up"] for each in links))
        self._add("positions", len(positions))
        self._add("deliveries", len(deliveries))

    def _add(self, table: str, rows: int) -> None:
        self.rows[table] = self.rows.get(table, 0) + rows

    def _query(self, name: str, query: Query) -> Document:
        run = self.run
        records = [one for each in run.records(*tuples.KINDS, app=name) for one in tuples.one_by_one(each)]
        found = tuples.tuples_of(run, query, records)
        self._never_emitted += int((found["fate"] == "never_emitted").sum())
        self._add("tuples", len(found))
        self._add("hops", len(tuples.hops_of(records)))
        kinds = {"switches": "route_switch", "costs": "link_cost", "operator_faults": "operator_fault"}
        for table, kind in kinds.items():
            self._add(table, len(run.records(kind, app=name)))
        metrics = {
            **tuples.metrics_of(run, query, found),
            "switches": routes.switches_of(run, name, records),
            "no_route_s": routes.no_route_s(run, name, query),
        }
        return {"kind": "query", "metrics": metrics, "operator_faults": routes.operator_faults(run, name)}

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
            "metrics": {**routes.overhead(self.run), **only},
            "apps": self._apps,
            "telemetry": {"boots": len(boots), "incomplete_boots": incomplete, **counts, **never},
            "nodes": nodes,
        }


def _has_query(run: Run) -> bool:
    return any(isinstance(app, Query) for app in run.apps.values())
