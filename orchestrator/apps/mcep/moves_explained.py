"""Where operators that move were when, and why they moved, in words."""

from typing import Any

from node_agent.apps.mcep.telemetry import OperatorOrdered, OperatorPlaced
from node_agent.telemetry.kinds import tag_of
from orchestrator.results.app_records import NS, AppRecords

_ORDERED, _PLACED = tag_of(OperatorOrdered), tag_of(OperatorPlaced)


def moves_of(query: str, run: AppRecords) -> list[dict[str, Any]]:
    """The migrations of a query's operators, each with its reason and what came of it."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for each in run.records:
        record = each.record
        if record.kind not in (_ORDERED, _PLACED) or record.query != query or not record.migration:
            continue
        at_s = round((each.t_ns - run.zero_ns) / NS, 3)
        key = record.operator, record.migration
        if record.kind == _ORDERED:
            where = {"source": record.source, "target": record.target}
            facts = {"method": record.method, "state": record.state, "why": record.why}
            rows[key] = {"query": query, "operator": key[0], "at_s": at_s, **where, **facts}
        elif key in rows:
            rows[key] |= {"outcome": record.outcome, "took_s": round(at_s - rows[key]["at_s"], 3)}
    return sorted(rows.values(), key=lambda row: (row["at_s"], row["operator"]))


def move_line(row: dict[str, Any]) -> str:
    outcome = row.get("outcome")
    ended = {"moved": f"took {row.get('took_s')} s", None: "had not ended"}.get(outcome, f"stayed: {outcome}")
    way = f"from {row['source']} to {row['target']}"
    return f"{row['at_s']:9.1f} s  {row['query']}: {row['operator']} {way}, {ended}; {row['why']}"


def hosts_at(query: str, run: AppRecords, at_ns: int) -> dict[str, str]:
    """By operator, the broker where it was at a time."""
    found: dict[str, str] = {}
    for each in run.records:
        record = each.record
        if record.kind != _PLACED or record.query != query:
            continue
        if not record.migration or (record.outcome == "moved" and each.t_ns <= at_ns):
            found[record.operator] = record.target
    return found
