"""Recomputes the tables ``tuples`` and ``hops`` and the metrics of tuples."""

from typing import Any

import numpy as np
import pandas as pd

from tests.independent.believing import Record
from tests.independent.plan import Query
from tests.independent.reading import Run

GRACE_NS = 10 * 10**9
KINDS = (
    *("tuple_emitted", "tuple_sent", "tuple_received", "tuple_processed", "tuple_delivered"),
    "tuple_dropped",
)
Row = dict[str, Any]


def one_by_one(record: Record) -> list[Record]:
    """Returns a record for each tuple of one that covers several."""
    many = record.get("tuples", 1)
    sizes = record.get("sizes") or [record["size"] // many] * many
    births = record.get("births") or [0] * many
    return [
        {**record, "tau": record["tau"] + n, "size": sizes[n]}
        | ({"born_ns": record["born_ns"] + births[n]} if "born_ns" in record else {})
        for n in range(many)
    ]


def hops_of(records: list[Record]) -> set[tuple[str, int, str, str]]:
    """Returns origin, τ, sender and receiver of each hop."""
    return {
        (each["origin"], each["tau"], each["replica"], each["to"])
        if each["kind"] == "tuple_sent"
        else (each["origin"], each["tau"], each["sender"], each["replica"])
        for each in records
        if each["kind"] in ("tuple_sent", "tuple_received")
    }


def toward(record: Record) -> str:
    """Returns the replica or operator whose sinks a record concerns."""
    if record["kind"] == "tuple_sent":
        return str(record["to"])
    return str(record.get("downstream") or record["replica"])


def tuples_of(run: Run, query: Query, records: list[Record]) -> pd.DataFrame:
    """Returns a row for each tuple and each sink that it is owed to."""
    stories: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        for sink in query.leads_to(toward(record)):
            stories.setdefault((record["origin"], record["tau"], sink), []).append(record)
    in_order = {(boot.node, boot.boot): boot.ended_in_order for boot in run.boots}
    rows = [_row(run, query, key, story, in_order) for key, story in stories.items()]
    columns = [
        *("origin", "tau", "sink", "born_ns", "emitted_ns", "delivered_ns", "delivered_at", "size"),
        *("again", "fate"),
    ]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def _row(
    run: Run,
    query: Query,
    key: tuple[str, int, str],
    story: list[Record],
    in_order: dict[tuple[str, int], bool],
) -> Row:
    origin, tau, sink = key
    emitted = [each["t_ns"] for each in story if each["kind"] == "tuple_emitted"]
    arrivals = sorted(
        (each for each in story if each["kind"] == "tuple_delivered"), key=lambda each: each["t_ns"]
    )
    emitted_ns = min(emitted, default=None)
    row = {"origin": origin, "tau": tau, "sink": sink, "emitted_ns": emitted_ns, "again": 0}
    row["born_ns"] = min((each["born_ns"] for each in arrivals), default=emitted_ns)
    if arrivals and not emitted and _known_whole(run, query.makers(origin)):
        return {**row, "fate": "never_emitted"}
    if arrivals:
        first = arrivals[0]
        told = {"delivered_ns": first["t_ns"], "delivered_at": first["replica"], "size": first["size"]}
        return {**row, **told, "again": len(arrivals) - 1, "fate": "delivered"}
    return {**row, "fate": _dropped(story) or _whereabouts(run, story, in_order)}


def _known_whole(run: Run, nodes: set[str]) -> bool:
    """Says whether the logs of these nodes are complete and without any flaw."""
    boots = [boot for boot in run.boots if boot.node in nodes]
    return {boot.node for boot in boots} == nodes and all(boot.is_flawless for boot in boots)


def _dropped(story: list[Record]) -> str | None:
    """Losses count before what ended as intended, and that before a failed link; the last of each."""
    drops = [each for each in story if each["kind"] == "tuple_dropped"]
    order = ("link_failed", "absorbed", "filtered")
    if not drops:
        return None
    weight = {"link_failed": 0, "absorbed": 1, "filtered": 1}
    last = max(drops, key=lambda each: (weight.get(each["reason"], 2), each["t_ns"], each["seq"]))
    reason = str(last["reason"]).partition(":")[0]
    return reason if reason in order[1:] else f"dropped:{reason}"


def _whereabouts(run: Run, story: list[Record], in_order: dict[tuple[str, int], bool]) -> str:
    """Returns the fate of a tuple of which nobody reported the end, by where it was last."""
    received: dict[tuple[str, str], int] = {}
    sent: dict[tuple[str, str], int] = {}
    for each in story:
        if each["kind"] == "tuple_received":
            hop = (each["sender"], each["replica"])
            received[hop] = min(each["t_ns"], received.get(hop, each["t_ns"]))
        elif each["kind"] == "tuple_sent":
            hop = (each["replica"], each["to"])
            sent[hop] = min(each["t_ns"], sent.get(hop, each["t_ns"]))
    under_way = [t_ns for hop, t_ns in sent.items() if hop not in received]
    if under_way and max(under_way) >= max(received.values(), default=0):
        return "in_flight_at_end" if max(under_way) >= run.ended_ns - GRACE_NS else "lost_in_transit"
    last = max(story, key=lambda each: (each["t_ns"], each["seq"]))
    return "in_flight_at_end" if in_order[last["node"], last["boot"]] else "lost_in_transit"


def metrics_of(run: Run, query: Query, tuples: pd.DataFrame) -> Row:
    figures = _figures(run, tuples)
    born = tuples[_born_inside(run, tuples)]
    made = born[["origin", "tau"]].drop_duplicates()
    offered = made[made["origin"].str.contains("/")] if len(made) else made
    figures["offered_fps"] = len(offered) / run.window_s
    if len(query.sinks) > 1:
        figures["sinks"] = {
            sink: _owed(_figures(run, tuples[tuples["sink"] == sink])) for sink in query.sinks
        }
        figures["emitted"] = len(made)
    return figures


def _owed(figures: Row) -> Row:
    return {"owed" if name == "emitted" else name: value for name, value in figures.items()}


def _born_inside(run: Run, tuples: pd.DataFrame) -> "pd.Series[bool]":
    return tuples["born_ns"].map(run.inside).astype(bool) & (tuples["fate"] != "never_emitted")


def _figures(run: Run, tuples: pd.DataFrame) -> Row:
    born = tuples[_born_inside(run, tuples)]
    fates = {str(fate): int(count) for fate, count in born["fate"].value_counts().items()}
    arrived = tuples[(tuples["fate"] == "delivered") & tuples["delivered_ns"].map(run.inside).astype(bool)]
    arrived = arrived.sort_values(["delivered_ns", "origin", "tau"])
    delivered = born[born["fate"] == "delivered"]
    latencies = (delivered["delivered_ns"] - delivered["born_ns"]).astype("int64").to_numpy() / 1e9
    in_flight, shed = fates.get("in_flight_at_end", 0), fates.get("dropped:source_buffer_full", 0)
    due = len(born) - fates.get("filtered", 0) - fates.get("absorbed", 0) - in_flight
    lost = due - len(delivered)
    times, sizes = arrived["delivered_ns"].to_list(), arrived["size"].to_list()
    span_s = (times[-1] - times[0]) / 1e9 if times else 0.0
    percentiles = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {
        "emitted": len(born),
        "delivered": len(delivered),
        "duplicates": int(born["again"].sum()),
        "in_flight_at_end": in_flight,
        "lost": lost,
        "loss_ratio": lost / due if due else None,
        "shed": shed,
        "shed_ratio": shed / due if due else None,
        "network_loss_ratio": (lost - shed) / (due - shed) if due > shed else None,
        "fates": fates,
        "goodput_fps": len(arrived) / run.window_s,
        "goodput_kbps": sum(sizes) * 8 / 1e3 / run.window_s,
        "throughput_fps": (len(times) - 1) / span_s if span_s else 0.0,
        "throughput_kbps": sum(sizes[1:]) * 8 / 1e3 / span_s if span_s else 0.0,
        "latency_mean_s": float(latencies.mean()) if len(latencies) else None,
        **{
            f"latency_{name}_s": float(np.percentile(latencies, share)) if len(latencies) else None
            for name, share in percentiles.items()
        },
    }
