"""Reads what DuckDB needs beside the telemetry from the directories of runs: files, plans, windows.

Reads manifests as docs/telemetry.md describes them; imports none of the product's modules.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
_TRUTH = ("links", "positions", "deliveries", "airtime")
_ENDED_BY = {
    **{"crash": "restart", "silence": "unsilence", "partition": "heal", "cut": "mend"},
    **{"degrade": "recover", "move": "release"},
}


class Plans:
    """Rows by the name of the small table that they make."""

    def __init__(self, sweep: Path) -> None:
        members = json.loads((sweep / "sweep.json").read_text())["members"]
        self.directories = {name: sweep.parent / name for name in members}
        self.tables: dict[str, Rows] = {
            name: []
            for name in (
                *("files", "truth_files", "described", "apps", "places", "streams", "leads", "makers"),
                *("sources", "planned_flows", "faults"),
            )
        }
        self.sinks: dict[tuple[str, str], list[str]] = {}
        """The sinks of each query, by run and application."""
        self.operators: dict[tuple[str, str], list[str]] = {}
        self.outputs: dict[tuple[str, str], int] = {}
        """How many outputs its sources have, over all their replicas."""
        for run, directory in self.directories.items():
            self._read(run, directory)

    def _read(self, run: str, directory: Path) -> None:
        manifest = json.loads((directory / "manifest.json").read_text())
        verdict = json.loads((directory / "verdict.json").read_text())
        for segment in sorted(directory.glob("nodes/*/segments/b*-s*.jsonl")):
            boot = int(segment.name[1:].partition("-")[0])
            node = segment.parent.parent.name
            self.tables["files"].append({"file": str(segment), "run": run, "node": node, "boot": boot})
        for name in _TRUTH:
            path = directory / "radio" / f"{name}.jsonl"
            if path.exists():
                self.tables["truth_files"].append({"file": str(path), "run": run, "what": name})
        self.tables["described"].append(
            {
                "run": run,
                "experiment": manifest["experiment"],
                "invocation": manifest["invocation"],
                "factors": {name: json.dumps(value) for name, value in manifest["factors"].items()},
                "seed": manifest["seed"],
                "clock": manifest["clock"],
                "verdict": verdict["verdict"],
                "reasons": verdict["reasons"],
                "started": manifest["started"],
                "finished": manifest["finished"],
                "measure_from_ns": manifest["measure_from_ns"],
                "measure_until_ns": manifest["measure_until_ns"],
                "versions": {name: str(value) for name, value in manifest["versions"].items()},
            }
        )
        events = (directory / "events.jsonl").read_text().splitlines()
        self.tables["faults"] += _faults(run, map(json.loads, events))
        for app, document in manifest["apps"].items():
            if document["kind"] == "flows":
                self._flows(run, app, document["flows"])
            else:
                self._query(run, app, document["plan"])

    def _flows(self, run: str, app: str, flows: Rows) -> None:
        ends = [list(dict.fromkeys(flow[end] for flow in flows)) for end in ("source", "sink")]
        self._app(run, app, "flows", *ends)
        for flow in flows:
            kept = {name: flow[name] for name in ("source", "sink", "protocol")}
            self.tables["planned_flows"].append({"run": run, "app": app, "flow": flow["name"], **kept})
            for node in {flow["source"], flow["sink"]}:
                self._place(run, app, node, flow["name"])

    def _query(self, run: str, app: str, plan: Mapping[str, Any]) -> None:
        operators = {each["name"]: each for each in plan["query"]["operators"]}
        after = {name: each["after"] for name, each in operators.items()}
        behind = {name: _behind(name, after) for name in operators}
        sinks = [name for name in operators if behind[name] == {name}]
        sources = [name for name in operators if not after[name]]
        nodes: dict[str, list[str]] = {name: [] for name in operators}
        for replica in plan["replicas"]:
            name, node = replica["operator"], replica["node"]
            replica_id = f"{name}/{replica['index']}"
            nodes[name].append(node)
            self._place(run, app, node, replica_id)
            made = _makes(operators[name])
            if made:
                self._add("makers", run, app, origin=made, node=node)
            for origin in _passing(name, operators):
                self._add("streams", run, app, replica=replica_id, origin=origin, begins=origin == made)
            if name in sources:
                self._add("sources", run, app, replica=replica_id)
            for sink in sinks:
                if sink in behind[name]:
                    self._add("leads", run, app, toward=replica_id, sink=sink)
        for name in operators:
            for sink in sinks:
                if sink in behind[name]:
                    self._add("leads", run, app, toward=name, sink=sink)
        ends = [sorted({node for name in names for node in nodes[name]}) for names in (sources, sinks)]
        self._app(run, app, "query", *ends)
        self.sinks[run, app] = sinks
        self.operators[run, app] = list(operators)
        self.outputs[run, app] = sum(
            len(nodes[name]) * sum(name in before for before in after.values()) for name in sources
        )

    def _app(self, run: str, app: str, kind: str, sources: list[str], sinks: list[str]) -> None:
        self._add("apps", run, app, kind=kind, source_nodes=sources, sink_nodes=sinks)

    def _place(self, run: str, app: str, node: str, part: str) -> None:
        self._add("places", run, app, node=node, part=part)

    def _add(self, table: str, run: str, app: str, **columns: Any) -> None:
        self.tables[table].append({"run": run, "app": app, **columns})


def _behind(name: str, after: Mapping[str, list[str]]) -> set[str]:
    """Returns the operator and all that its stream reaches."""
    found, frontier = {name}, [name]
    while frontier:
        here = frontier.pop()
        fresh = {other for other, before in after.items() if here in before} - found
        found |= fresh
        frontier.extend(fresh)
    return found


def _faults(run: str, events: Iterable[Mapping[str, Any]]) -> Rows:
    found: Rows = []
    for event in events:
        if event["kind"] != "fault":
            continue
        action, node, t_ns = event.get("action", event.get("deed")), event["node"], event["t_ns"]
        if action in _ENDED_BY:
            begun = {"fault": len(found), "what": action, "node": node, "from_ns": t_ns, "until_ns": None}
            found.append({"run": run, **begun})
            continue
        for each in found:
            if each["until_ns"] is None and each["node"] == node and _ENDED_BY[each["what"]] == action:
                each["until_ns"] = t_ns
    return found


def _makes(operator: Mapping[str, Any]) -> str | None:
    """Returns the stream that begins there: at a source, a window or a join."""
    if not operator["after"]:
        return f"{operator['name']}/0"
    return None if operator["takes"]["type"] == "each" else str(operator["name"])


def _passing(name: str, operators: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Returns the streams that a replica of the operator has to do with."""
    made = _makes(operators[name])
    found = {made} if made else set()
    for upstream in operators[name]["after"]:
        sent = _makes(operators[upstream])
        found |= {sent} if sent else _passing(upstream, operators)
    return found
