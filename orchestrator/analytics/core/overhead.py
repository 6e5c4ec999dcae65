"""Table, metrics and section for the traffic of routing daemons."""

from collections.abc import Mapping
from typing import Any

from node_agent.linkstate.overhead import AGENTS_OWN
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import Figures, Later, Metric, Rows, Section, Table
from orchestrator.results.spark import Subject, rounded

_HERE = "orchestrator.analytics.core"

OVERHEAD = Table(
    "overhead",
    "a sample of a routing daemon's counters for one kind of message",
    {
        "run": TEXT,
        "node": TEXT,
        "t_ns": COUNT,
        "protocol": TEXT,
        "message": TEXT,
        "sent": COUNT,
        "sent_bytes": COUNT,
        "forwarded": COUNT,
        "forwarded_bytes": COUNT,
    },
    ("t_ns", "node", "message"),
    Later(f"{_HERE}.overhead_frames:overhead"),
)

_TEXT = (
    "bit/s that a node's routing daemon put on the air, the mean over nodes: by kind of message (`sent_bps` "
    "its own, `forwarded_bps` others'), and the sum; from the last samples before the window to the first "
    "after it; no sum if no daemon counts. It includes what agents tell each other for switching (`costs`)"
)
METRICS = (
    Metric("routing_overhead", _TEXT, "bit/s", shape=dict[str, dict[str, float | None]] | None, expect=False),
    Metric("routing_overhead_bps", _TEXT, "bit/s", "less", averaged=True),
)


def _values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    overhead = {
        row["message"]: {f"{name}_bps": rounded(row[name] / row["nodes"]) for name in ("sent", "forwarded")}
        for row in sorted(rows["overhead"], key=lambda row: str(row["message"]))
    }
    if not any(message != AGENTS_OWN for message in overhead):  # nothing is known about the daemon
        return {"routing_overhead": overhead, "routing_overhead_bps": None}
    total = sum(rate for message in overhead.values() for rate in message.values())
    return {"routing_overhead": overhead, "routing_overhead_bps": rounded(total)}


OVERHEAD_FIGURES = Figures(Later(f"{_HERE}.overhead_frames:frames"), _values, METRICS)
OVERHEAD_SECTION = Section(500, Later(f"{_HERE}.overhead_section:overhead"))
