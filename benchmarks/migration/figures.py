"""What the figures of chapter 4 are made of: which scenes, which ways to move, and what is compared."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.migration.cells import GREEDY_S, Cells, Query, Way
from benchmarks.migration.figure_files import figure_412
from benchmarks.migration.mobiles import Capture
from benchmarks.migration.moving import Planning
from benchmarks.migration.scenes import Accident, Generic, Video
from benchmarks.migration.simulation import Measured
from benchmarks.radio.report import Row

PLANNED = Planning()
NEAR = replace(PLANNED, reach=2500.0)
"""For the tree with 40 leaves: neighbours are planned with."""
EVENTS, STATES = (50.0, 150.0, 250.0), (0.0, 15_000.0, 30_000.0, 60_000.0)
Found = tuple[Row, Sequence[Row]]


def share(one: Measured, other: Measured) -> float:
    return one.cost / other.cost if other.cost else 0.0


def _by_state(cells: Cells, tree: str, way: Planning, capture: Capture) -> Found:
    rows: list[dict[str, Any]] = []
    messages = coordinations = 0
    for event in EVENTS:
        for state in STATES:
            query = Generic(event=event, states={"D1": state}, capture=capture)
            static, greedy = cells.run(query, tree, None), cells.run(query, tree, GREEDY_S)
            planned = cells.run(query, tree, way)
            messages, coordinations = messages + planned.messages, coordinations + planned.coordinations
            rows.append(
                {
                    "event_B": event,
                    "state_B": state,
                    "to_static": share(planned, static),
                    "greedy_to_static": share(greedy, static),
                    "to_greedy": share(planned, greedy),
                    "migrations": planned.migrations,
                    "greedy_migrations": greedy.migrations,
                    "wasted": planned.wasted / planned.cost,
                    "late_s": planned.late_s,
                }
            )
    figures = {
        "saved_to_static": 1 - min(row["to_static"] for row in rows),
        "saved_to_greedy": 1 - min(row["to_greedy"] for row in rows),
        "mean_saved_to_static": 1 - _mean(row["to_static"] for row in rows),
        "mean_saved_to_greedy": 1 - _mean(row["to_greedy"] for row in rows),
        "messages_per_coordination": messages / max(1, coordinations),
    }
    return figures, rows


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


VARIANTS: dict[str, tuple[Capture, int]] = {"": ("navi", 4), "exact": ("exact", 4), "exact-2s": ("exact", 2)}
"""What is known of vehicles, and seconds between steps, in 4.8 and 4.9."""


def tree_a(cells: Cells, variant: str = "") -> Found:
    capture, step = VARIANTS[variant]
    return _by_state(cells, "quad", replace(PLANNED, step=step), capture)


def tree_b(cells: Cells, variant: str = "") -> Found:
    capture, step = VARIANTS[variant]
    return _by_state(cells, "flat", replace(NEAR, step=step), capture)


def step_distance(cells: Cells) -> Found:
    rows: list[dict[str, Any]] = []
    for state in (0.0, 15_000.0):
        query = Generic(states={"D1": state})
        greedy = cells.run(query, "quad", GREEDY_S)
        runs = {step: cells.run(query, "quad", replace(PLANNED, step=step)) for step in (2, 4, 8, 16)}
        most = max(each.cost for each in [*runs.values(), greedy])
        for step, found in runs.items():
            steps = PLANNED.horizon // step
            rows.append(
                {
                    "state_B": state,
                    "step_s": step,
                    "vertices": 1 + (steps - 1) * 21,
                    "to_largest": found.cost / most,
                    "greedy_to_largest": greedy.cost / most,
                }
            )
    grown = [rows[n + 3]["to_largest"] / rows[n]["to_largest"] for n in (0, 4)]
    return {"grown_2_to_16_s": grown}, rows


def horizon(cells: Cells) -> Found:
    query = Generic(states={"D1": 15_000.0})
    runs = {
        (reach, seconds): cells.run(query, "flat", replace(PLANNED, reach=reach, horizon=seconds))
        for reach in (0.0, 2500.0, 5000.0)
        for seconds in (20, 60, 100, 200, 500)
    }
    most = max(each.cost for each in runs.values())
    rows = [
        {"reach_m": reach, "horizon_s": seconds, "to_largest": found.cost / most}
        for (reach, seconds), found in runs.items()
    ]
    best = {
        f"best_within_{reach:g}_m": min(r["to_largest"] for r in rows if r["reach_m"] == reach)
        for reach in (0.0, 2500.0, 5000.0)
    }
    return best, rows


CAPTURES = ("linear", "navi", "learned")


def uncertainty(cells: Cells) -> Found:
    """D1 and D2 have no state; each event gives a detection, so that F follows them."""
    rows: list[dict[str, Any]] = []
    for state in STATES:
        for capture in CAPTURES:
            query = Generic(states={"F": state}, detections=1.0, capture=capture)
            greedy = cells.run(query, "quad", GREEDY_S)
            row: dict[str, Any] = {"state_B": state, "capture": capture}
            for policy in ("ws", "naive"):
                found = cells.run(query, "quad", replace(PLANNED, policy=policy))
                row[f"{policy}_to_greedy"] = share(found, greedy)
                row[f"{policy}_migrations"] = found.migrations
            rows.append(row)
    thresholds = {
        f"{policy}_{capture}_from_B": next(
            (r["state_B"] for r in rows if r["capture"] == capture and r[f"{policy}_to_greedy"] < 1), None
        )
        for policy in ("ws", "naive")
        for capture in CAPTURES
    }
    return thresholds, rows


KS = (1, 2, 4, 8)


def k_paths(cells: Cells) -> Found:
    """The first source's events change their size. D1, which gets them, has no state and chooses on the
    way."""
    rows: list[dict[str, Any]] = []
    for every in (20.0, 5.0, 1.25):
        query = Generic(event=130.0, states={"F": 15_000.0}, detections=1.0, every=every)
        runs = {k: cells.run(query, "quad", replace(PLANNED, first=f"k={k}")) for k in KS}
        row: dict[str, Any] = {"every_s": every}
        row |= {f"k{k}": found.cost / runs[KS[-1]].cost for k, found in runs.items()}
        row["migrations_k1"], row["migrations_k8"] = runs[1].migrations, runs[8].migrations
        rows.append(row)
    return {"k1_to_k8": [row["k1"] for row in rows]}, rows


def queries(cells: Cells) -> Found:
    """Accidents as the files say; they cannot say videos."""
    said = figure_412()
    made: list[tuple[str, Query]] = [
        ("accident", Accident(state, edge=said.edge, capture=capture))
        for state in said.states
        for capture in said.captures
    ]
    made += [
        ("video", Video(state, capture=capture))
        for state in (0.0, 2.5e6, 10e6, 100e6)
        for capture in said.captures
    ]
    rows = [
        {
            "query": name,
            "state_kB": query.state / 1000,
            **_row(cells, query, said.planning, said.greedy_s),
            "knows": query.capture,
        }
        for name, query in made
        if not isinstance(query, Generic)
    ]
    return {"best": min(row["to_greedy"] for row in rows)}, rows


def _row(cells: Cells, query: Query, way: Way, greedy_s: int = GREEDY_S) -> dict[str, Any]:
    greedy, planned = cells.run(query, "flat", greedy_s), cells.run(query, "flat", way)
    return {
        "to_greedy": share(planned, greedy),
        "latency_to_greedy": planned.latency / greedy.latency,
        "migrations": planned.migrations,
        "greedy_migrations": greedy.migrations,
        "greedy_stopped_s_each": greedy.stopped_s / max(1, greedy.migrations),
        "late_s": planned.late_s,
    }


def event_size(cells: Cells) -> Found:
    rows = [
        {"event_B": event, **_row(cells, Accident(state=200e3, event=event), NEAR)}
        for event in (10.0, 30.0, 60.0, 100.0)
    ]
    return {"to_greedy": [row["to_greedy"] for row in rows]}, rows


LIMIT_S = 0.035
WAYS: tuple[tuple[str, Way, bool], ...] = (
    ("static", None, False),
    ("greedy", GREEDY_S, False),
    ("plans", NEAR, False),
    ("plans that know", NEAR, True),
)


def limits(cells: Cells) -> Found:
    """Not a figure of the thesis, which states that limits are kept and shows no measurement."""
    rows = []
    for state in (15_000.0, 60_000.0):
        for name, way, know in WAYS:
            query = Generic(states={"D1": state}, limit=LIMIT_S, know=know)
            found = cells.run(query, "flat", way)
            rows.append(
                {
                    "state_B": state,
                    "way": name,
                    "within_limit": 1 - found.too_late / found.path_seconds,
                    "bdp": found.cost / cells.size.repetitions / cells.size.seconds,
                    "latency_ms": 1000 * found.latency / found.path_seconds,
                }
            )
    return {"within_limit": [row["within_limit"] for row in rows if row["way"] == "plans that know"]}, rows
