"""Recomputes the ways of tuples: the table ``paths``, the parts of latency, what reached each operator."""

from dataclasses import dataclass
from math import exp, log
from typing import Any

import pandas as pd

from tests.independent.believing import Record
from tests.independent.plan import Query, operator_of
from tests.independent.reading import Run

PARTS = ("network", "queue", "compute")


@dataclass
class Stay:
    """A tuple at one replica. ``network``: on the way to it, in ns; the rest there."""

    replica: str
    network: float
    queue: float
    compute: float


class Ways:
    """Which way each tuple of a query took, from the records of its replicas, one for each tuple."""

    def __init__(self, query: Query, records: list[Record]) -> None:
        self._query = query
        self._received: dict[tuple[str, str, int], list[tuple[int, str]]] = {}
        self._sent: dict[tuple[str, str, str, int], int] = {}
        self._took: dict[tuple[str, str, int], tuple[int, float]] = {}
        for each in records:
            replica, name, t_ns = each["replica"], (each["origin"], each["tau"]), each["t_ns"]
            if each["kind"] == "tuple_received":
                self._received.setdefault((replica, *name), []).append((t_ns, each["sender"]))
            elif each["kind"] == "tuple_sent":
                hop = (replica, each["to"], *name)
                self._sent[hop] = min(t_ns, self._sent.get(hop, t_ns))
            elif each["kind"] == "tuple_processed":
                took = (t_ns, each["took_ns"] / each.get("tuples", 1))
                self._took[replica, *name] = min(took, self._took.get((replica, *name), took))

    def back_from(self, replica: str, origin: str, tau: int, left_ns: int, born_ns: int) -> list[Stay] | None:
        """Returns the stays of a tuple that left ``replica`` at ``left_ns``, from its birth on; None if a
        part of its way was not recorded.
        """
        _, compute = self._took.get((replica, origin, tau), (0, 0.0))
        if self._query.made_at(operator_of(replica)) == origin:
            return [Stay(replica, 0.0, left_ns - born_ns - compute, compute)]
        received = [each for each in self._received.get((replica, origin, tau), []) if each[0] <= left_ns]
        if not received:
            return None
        received_ns, sender = min(received)
        sent_ns = self._sent.get((sender, replica, origin, tau))
        if sent_ns is None:
            return None
        before = self.back_from(sender, origin, tau, sent_ns, born_ns)
        if before is None:
            return None
        stay = Stay(replica, received_ns - sent_ns, left_ns - received_ns - compute, compute)
        return [*before, stay]


def ways_of(query: Query, tuples: pd.DataFrame, records: list[Record]) -> "pd.Series[Any]":
    """Returns, for each delivered tuple, its stays or None."""
    ways = Ways(query, records)
    delivered = tuples[tuples["fate"] == "delivered"]
    found = [
        ways.back_from(row.delivered_at, row.origin, row.tau, row.delivered_ns, row.born_ns)
        for row in delivered.itertuples()
    ]
    return pd.Series(found, index=delivered.index, dtype=object)


def metrics_of(run: Run, query: Query, tuples: pd.DataFrame, records: list[Record]) -> dict[str, Any]:
    ways = ways_of(query, tuples, records)
    inside = ways[tuples.loc[ways.index, "born_ns"].map(run.inside).astype(bool)]
    known = inside[inside.notna()]
    streams: dict[tuple[str, str], dict[tuple[str, ...], int]] = {}
    for place, stays in known.items():
        row = tuples.loc[place]
        paths = streams.setdefault((row["origin"], row["sink"]), {})
        path = tuple(stay.replica for stay in stays)
        paths[path] = paths.get(path, 0) + 1
    entropy = sum(-n * log(n / sum(paths.values())) for paths in streams.values() for n in paths.values())
    return {
        **{
            f"latency_{part}_s": _mean([sum(getattr(stay, part) for stay in stays) for stays in known])
            for part in PARTS
        },
        "paths_known_ratio": len(known) / len(inside) if len(inside) else None,
        "paths_used": sum(len(paths) for paths in streams.values()),
        "paths_effective": exp(entropy / len(known)) if len(known) else None,
        "operators": {name: _operator(run, query, name, records, list(known)) for name in query.after},
    }


def _operator(
    run: Run, query: Query, name: str, records: list[Record], ways: list[list[Stay]]
) -> dict[str, Any]:
    """What reached the operator for the first time, or what a source made, in the window."""
    kind = "tuple_received" if query.after[name] else "tuple_emitted"
    first: dict[tuple[str, int], Record] = {}
    for each in records:
        if each["kind"] == kind and operator_of(each["replica"]) == name:
            key = (each["origin"], each["tau"])
            if key not in first or each["t_ns"] < first[key]["t_ns"]:
                first[key] = each
    arrived = [each for each in first.values() if run.inside(each["t_ns"])]
    spent = {
        part: sum(getattr(s, part) for way in ways for s in way if operator_of(s.replica) == name)
        for part in PARTS
    }
    return {
        "arrived_fps": len(arrived) / run.window_s,
        "arrived_kbps": sum(each["size"] for each in arrived) * 8 / 1e3 / run.window_s,
        "replicas": len({each["replica"] for each in arrived}),
        **{f"{part}_s": spent[part] / len(ways) / 1e9 if ways else None for part in PARTS},
    }


def _mean(values: list[float]) -> float | None:
    """Of nanoseconds, in seconds."""
    return sum(values) / len(values) / 1e9 if values else None
