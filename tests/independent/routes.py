"""Recomputes the metrics of routes: switches, times without one, what operators skipped, daemons' traffic."""

from typing import Any

import pandas as pd

from tests.independent.believing import Record
from tests.independent.plan import Query
from tests.independent.reading import Run


def switches_of(run: Run, app: str, records: list[Record]) -> int:
    """``records``: one for each tuple. Counts only replicas that had a tuple in the window, and only changes
    from one replica to another, also with a time without a route between them.
    """
    first: dict[tuple[Any, ...], int] = {}
    for each in records:
        if each["kind"] == "tuple_emitted":
            key: tuple[Any, ...] = (each["origin"], each["tau"])
        elif each["kind"] == "tuple_received":
            key = (each["replica"], each["sender"], each["origin"], each["tau"])
        else:
            continue
        first[key] = min(each["t_ns"], first.get(key, each["t_ns"]))
    carriers = {key[0] for key, t_ns in first.items() if run.inside(t_ns)}
    count = 0
    for decisions in _by_output(run, app).values():
        used: str | None = None
        for each in decisions:
            before = each["old"] or used
            changed = each["new"] is not None and before is not None and each["new"] != before
            if changed and run.inside(each["t_ns"]) and each["replica"] in carriers:
                count += 1
            used = each["new"] or used
    return count


def _by_output(run: Run, app: str) -> dict[tuple[str, str], list[Record]]:
    found: dict[tuple[str, str], list[Record]] = {}
    for each in run.records("route_switch", app=app):
        found.setdefault((each["replica"], each["downstream"]), []).append(each)
    for decisions in found.values():
        decisions.sort(key=lambda each: (each["t_ns"], each["boot"], each["seq"]))
    return found


def no_route_s(run: Run, app: str, query: Query) -> float:
    """An output that never reported a choice never had a route."""
    total, told = 0, _by_output(run, app)
    for source in query.sources:
        for replica in query.of(source):
            for output in query.downstream(source):
                total += _unrouted_ns(run, told.get((replica, output), []))
    return total / 1e9


def _unrouted_ns(run: Run, decisions: list[Record]) -> int:
    if not decisions:
        return run.until_ns - run.from_ns
    total, since = 0, run.from_ns
    for each in decisions:
        if each["old"] is None:
            total += max(0, min(each["t_ns"], run.until_ns) - max(since, run.from_ns))
        since = each["t_ns"]
    if decisions[-1]["new"] is None:
        total += max(0, run.until_ns - max(since, run.from_ns))
    return total


def operator_faults(run: Run, app: str) -> dict[str, int]:
    counts: dict[tuple[str, str, int], int] = {}
    for each in run.records("operator_fault", app=app):
        key = (each["reason"].partition(":")[0], each["replica"], each["boot"])
        counts[key] = max(counts.get(key, 0), each["count"])
    found: dict[str, int] = {}
    for (reason, _, _), count in counts.items():
        found[reason] = found.get(reason, 0) + count
    return found


def overhead(run: Run) -> dict[str, Any]:
    """The growth from the last sample before the window to the first after it, by seconds between these."""
    samples = pd.DataFrame(
        run.records("routing_overhead"),
        columns=["node", "message", "boot", "t_ns", "sent_bytes", "forwarded_bytes"],
    )
    rates: dict[str, dict[str, float]] = {}
    nodes = set()
    for (node, message), group in samples.groupby(["node", "message"]):
        rows = group.sort_values("t_ns")
        times = rows["t_ns"].to_list()
        begin = max((t for t in times if t <= run.from_ns), default=times[0])
        end = min((t for t in times if t >= run.until_ns), default=times[-1])
        if end <= begin:
            continue
        nodes.add(node)
        for name, column in (("sent_bps", "sent_bytes"), ("forwarded_bps", "forwarded_bytes")):
            values, grown = rows[column].to_list(), 0
            for place in range(1, len(values)):
                if begin < times[place] <= end:
                    before, now = values[place - 1], values[place]
                    grown += now - before if now >= before else now
            of_message = rates.setdefault(str(message), {"sent_bps": 0.0, "forwarded_bps": 0.0})
            of_message[name] += 8 * grown / ((end - begin) / 1e9)
    found = {message: {name: rate / len(nodes) for name, rate in of.items()} for message, of in rates.items()}
    total = sum(rate for of in found.values() for rate in of.values())
    counts = any(message != "costs" for message in found)
    return {"routing_overhead": found, "routing_overhead_bps": total if counts else None}
