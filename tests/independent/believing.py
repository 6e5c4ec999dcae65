"""Decides which lines are records and which records are believed, by docs/telemetry.md.

It knows what the worlds of these tests write; a rule that nothing there breaks is not applied.
"""

import json
from typing import Any

from tests.independent.plan import App, Query, operator_of

Record = dict[str, Any]
ENVELOPE = ("run", "node", "boot", "seq", "t_ns", "kind")
OF_AGENT = {
    "agent_start": ("version", "clock", "replicas"),
    "agent_stop": ("reason",),
    "routing_overhead": ("protocol", "message", "sent", "sent_bytes", "forwarded", "forwarded_bytes"),
}
_TUPLE = ("replica", "origin", "tau", "size")
OF_QUERY = {
    "tuple_emitted": _TUPLE,
    "tuple_sent": (*_TUPLE, "to"),
    "tuple_received": (*_TUPLE, "sender"),
    "tuple_processed": (*_TUPLE, "took_ns"),
    "tuple_delivered": (*_TUPLE, "born_ns"),
    "tuple_dropped": (*_TUPLE, "reason"),
    "route_switch": ("replica", "downstream", "source"),
    "link_cost": ("replica", "to", "metric", "source"),
    "queue": ("replica", "queue", "length"),
    "operator_fault": ("replica", "reason", "count"),
}
OF_FLOWS = {
    "flow_sent": ("flow", "opened_ns", "now_ns", "packets", "bytes", "seconds"),
    "flow_received": ("flow", "source_boot", "opened_ns", "now_ns", "packets", "heard", "arrived"),
}
NEEDED = {**OF_AGENT, **OF_QUERY, **OF_FLOWS}
SEVERAL = ("tuple_emitted", "tuple_sent", "tuple_received", "tuple_processed", "tuple_delivered")


def read_line(line: bytes, boot: int) -> Record | None:
    """Returns the record; None if the line is corrupt."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or any(record.get(name) is None for name in ENVELOPE):
        return None
    kind, numbers = record["kind"], ("boot", "seq", "t_ns", "tau", "size", "tuples")
    for name in numbers:
        value = record.get(name, 1)
        if not isinstance(value, int) or not 0 <= value <= 2**62:
            return None
    if record["boot"] != boot or not 1 <= record.get("tuples", 1) <= 4096:
        return None
    if kind in NEEDED:
        if any(record.get(name) is None for name in NEEDED[kind]):
            return None
        if "tau" in record and "tau" not in NEEDED[kind]:
            return None  # a field of other kinds
        if kind not in SEVERAL and {"tuples", "sizes"} & set(record):
            return None
    if len(record.get("sizes", [])) not in (0, record.get("tuples", 1)):
        return None
    return record


def is_believed(record: Record, run: str, node: str, apps: dict[str, App]) -> bool:
    """Says whether the node can have written it."""
    kind, app = record["kind"], apps.get(record["app"])
    if record["run"] != run or record["node"] != node:
        return False
    if kind in OF_AGENT:
        return record["app"] == "" or app is not None
    if kind not in NEEDED and record["app"] == "":
        return "query" in apps  # records of old runs name no application
    if app is None:
        return False
    if isinstance(app, Query):
        return kind not in OF_FLOWS and _of_query(record, node, app)
    if kind in OF_QUERY:
        return False
    flow = app.get(record.get("flow", ""))
    if "flow" in record and (flow is None or node not in (flow.source, flow.sink)):
        return False
    if kind == "flow_sent":
        return flow is not None and flow.source == node
    return kind != "flow_received" or (flow is not None and flow.sink == node)


def _of_query(record: Record, node: str, query: Query) -> bool:
    replica = record.get("replica")
    if replica is None:
        return True
    if query.replicas.get(replica) != node:
        return False
    kind, name = record["kind"], operator_of(replica)
    if kind == "tuple_emitted" and record["origin"] != query.made_at(name):
        return False
    if kind.startswith("tuple_") and record["origin"] not in query.passing(name):
        return False
    if kind == "tuple_delivered" and name not in query.sinks:
        return False
    if kind == "tuple_dropped":
        if record["reason"] == "filtered" and name not in query.sinks:
            return False
        if record["reason"] == "absorbed" and (not query.after[name] or query.takes[name] == "each"):
            return False
    return True
