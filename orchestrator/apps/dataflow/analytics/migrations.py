"""Declares what is known of operators that moved: their steps, how long sinks waited, and what was copied."""

from collections.abc import Mapping
from html import escape
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert

from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import AsRead, Figures, Later, Metric, Rows, Table
from orchestrator.results.markup import NOTHING, table
from orchestrator.results.spark import Ingest, Subject, rounded

if TYPE_CHECKING:
    from orchestrator.results.views import View

_HERE = "orchestrator.apps.dataflow.analytics"
MOST_MOVES = 200
"""Of one run, in the report."""


def _steps(ingest: Ingest) -> AsRead:
    return AsRead("migration")


STEPS = Table(
    "migrations",
    "a step of an operator's migration, told by a host or its coordinator: `ordered` (`size`: bytes of its "
    "immutable state), `began`, `state_kept`, `handed_over`, `took_over` (`size`: bytes that were copied), "
    "`finished` (`detail`: `moved`, or why it stays) and others",
    {
        "run": TEXT,
        "app": TEXT,
        "node": TEXT,
        "t_ns": COUNT,
        "replica": TEXT,
        "migration": COUNT,
        "step": TEXT,
        "detail": TEXT,
        "source": TEXT,
        "target": TEXT,
        "size": COUNT,
    },
    ("t_ns", "app", "replica", "migration", "step", "node"),
    _steps,
)

_GAP = (
    "the longest time between two deliveries at a sink while an operator above it moved, from its order to a "
    "second after its end: the mean and the largest over the migrations"
)
METRICS = (
    Metric("migrations_ordered", "migrations that began", shape=int, optional=True),
    Metric(
        "migrations_moved",
        "of these, those after which the operator was on its new node",
        "",
        "more",
        shape=int,
        optional=True,
    ),
    Metric("migration_gap_mean_s", _GAP, "s", "less", averaged=True, optional=True),
    Metric("migration_gap_max_s", _GAP, "s", "less", averaged=True, optional=True),
    Metric(
        "delivery_gap_s",
        "the usual time between two deliveries at the same sinks: the median over the whole run",
        "s",
        averaged=True,
        optional=True,
    ),
    Metric(
        "migration_duration_mean_s",
        "from the order of a migration to its end, the mean over those after which the operator had moved",
        "s",
        "less",
        averaged=True,
        optional=True,
    ),
    Metric(
        "migration_bytes",
        "of state, input and results that old hosts sent to new ones",
        "B",
        "less",
        shape=int,
        averaged=True,
        optional=True,
    ),
)


class Move(Struct, frozen=True, array_like=True):
    """One migration. ``at_s``: since the start of the run; ``gap_s``, ``usual_s``: at the slowest sink."""

    operator: str
    number: int
    method: str
    source: str
    target: str
    at_s: float
    duration_s: float | None
    outcome: str
    state: int
    copied: int
    gap_s: float | None
    usual_s: float | None


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    assert subject.app is not None
    query = subject.app.plan.query
    told: dict[tuple[str, int], Rows] = {}
    for row in sorted(rows.get("steps", ()), key=lambda each: each["t_ns"]):
        told.setdefault((row["replica"], row["migration"]), []).append(row)
    gaps: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in rows.get("gaps", ()):
        if row["sink"] in query.reachable_from([row["replica"].rpartition("/")[0]]):
            gaps.setdefault((row["replica"], row["migration"]), []).append((row["gap_ns"], row["usual_ns"]))
    made = [_move(subject, key, steps, gaps.get(key, [])) for key, steps in told.items()]
    moves = [each for each in made if each is not None]
    if not moves:
        return {"moves": []}
    moved = [each for each in moves if each.outcome == "moved"]
    waited = [each.gap_s for each in moves if each.gap_s is not None]
    usual = [each.usual_s for each in moves if each.usual_s is not None]
    lasted = [each.duration_s for each in moved if each.duration_s is not None]
    return {
        "migrations_ordered": len(moves),
        "migrations_moved": len(moved),
        "migration_gap_mean_s": _mean(waited),
        "migration_gap_max_s": max(waited, default=None),
        "delivery_gap_s": max(usual, default=None),
        "migration_duration_mean_s": _mean(lasted),
        "migration_bytes": sum(each.copied for each in moves),
        "moves": [list(_plain(each)) for each in moves[:MOST_MOVES]],
    }


def _move(subject: Subject, key: tuple[str, int], steps: Rows, gaps: list[tuple[int, int]]) -> Move | None:
    """None if nobody ordered it, or it was no migration as the operator was there."""
    ordered = next((step for step in steps if step["step"] == "ordered"), None)
    if ordered is None:
        return None
    ended = [step for step in steps if step["step"] == "finished"]
    end = ended[-1] if ended else None
    gap, usual = max(gaps, default=(None, None))
    at_s = subject.seconds(ordered["t_ns"])
    assert at_s is not None
    return Move(
        key[0].rpartition("/")[0],
        key[1],
        ordered["detail"],
        ordered["source"],
        ordered["target"],
        at_s,
        None if end is None else rounded((end["t_ns"] - ordered["t_ns"]) / 1e9),
        "unfinished" if end is None else end["detail"],
        ordered["size"],
        sum(step["size"] for step in steps if step["step"] == "took_over"),
        None if gap is None else rounded(gap / 1e9),
        None if usual is None else rounded(usual / 1e9),
    )


def _plain(move: Move) -> tuple[Any, ...]:
    return tuple(getattr(move, name) for name in Move.__struct_fields__)


def _mean(values: list[float]) -> float | None:
    return rounded(fmean(values)) if values else None


FIGURES = Figures(
    Later(f"{_HERE}.migration_frames:frames"), values, METRICS, series={"moves": list[list[Any]]}
)


def section(view: "View") -> str:
    """Returns the report's table of migrations; nothing if there were none."""
    rows = [(run.run, convert(move, Move)) for run, result in view.runs for move in result["series"]["moves"]]
    if not rows:
        return ""
    headings = (
        "run", "operator", "at<br>s", "method", "from", "to", "outcome", "took<br>s", "copied<br>kB",
        "gap at the sink<br>ms", "usual gap<br>ms",
    )  # fmt: skip
    cells = [
        (
            escape(label),
            escape(each.operator),
            f"{each.at_s:.1f}",
            escape(each.method),
            escape(each.source),
            escape(each.target),
            escape(each.outcome.replace("_", " ")),
            _shown(each.duration_s, 1, 2),
            f"{each.copied / 1e3:,.0f}",
            _shown(each.gap_s, 1e3, 0),
            _shown(each.usual_s, 1e3, 0),
        )
        for label, each in rows
    ]
    note = (
        '<p class="soft">The gap is the longest time between two deliveries while the operator moved; the '
        "usual one is the median of the run.</p>\n"
    )
    return f'<h3 id="migrations">Operators that moved</h3>\n{table(headings, cells)}\n{note}'


def _shown(value: float | None, factor: float, digits: int) -> str:
    return NOTHING if value is None else f"{value * factor:,.{digits}f}"
