"""Figures 5.4 and 5.5: what reuse saves, by threshold, size of interests, heuristic and number of queries."""

from typing import Any

from benchmarks.radio.report import Row
from benchmarks.reuse.playing import everyone, play
from benchmarks.reuse.traffic import Made, Traffic, Window
from node_agent.apps.mcep.model import Quality
from node_agent.apps.mcep.reuse.batches import ALONE, Batching, Timed
from node_agent.apps.mcep.reuse.judging import Rules, Times

BATCH = Timed(10.0)
CARS, EDGE_M = 25, 5000.0
EDGES_M = (500.0, 2000.0, 5000.0)
THRESHOLDS = (0.2, 0.35, 0.5, 0.65, 0.8)
NUMBERS = (5, 10, 25, 50)
ALONE_S = 5.0
"""Of the run, for selections one by one: MSH makes some 200,000 estimates for each second."""
Found = tuple[Row, list[Row]]


def threshold(value: float, times: Times = "any") -> Rules:
    return Rules(Quality(value, value), times=times)


def made_by(given: Traffic, cars: int, edge: float, window: Window | None = None) -> list[Made]:
    return [each for who in given.drivers(cars) for each in given.selections(who, edge, window or Window())]


def by_threshold(given: Traffic) -> Found:
    """5.4: batches of 10 s."""
    rows: list[Row] = []
    for edge in EDGES_M:
        made = made_by(given, CARS, edge)
        whom = everyone(given, given.drivers(CARS), edge)
        for heuristic in ("similarity", "neighbour"):
            for value in THRESHOLDS:
                outcome = play(made, threshold(value), heuristic, whom, BATCH)
                rows.append({"edge_m": edge, "heuristic": heuristic, "threshold": value, **outcome.row()})
    wide = [row for row in rows if row["edge_m"] == EDGE_M]
    small = [row for row in rows if row["edge_m"] == EDGES_M[0]]
    return {
        "least_processed": min(row["processed"] for row in wide),
        "least_processed_500_m": min(row["processed"] for row in small),
        "similarity_above_threshold": all(
            row["similarity_reused"] is None or row["similarity_reused"] > row["threshold"] for row in rows
        ),
    }, rows


def by_heuristic(given: Traffic) -> Found:
    """5.5a: estimates, as the thesis prints the heuristics and with selections that overlap in time only."""
    rows: list[Row] = []
    every = made_by(given, CARS, EDGE_M)
    whom = everyone(given, given.drivers(CARS), EDGE_M)
    ways: list[tuple[str, Batching, str, Times]] = [
        ("no reuse", ALONE, "none", "any"),
        ("MSH", ALONE, "similarity", "any"),
        ("MNH", ALONE, "neighbour", "any"),
        ("MSH, overlapping", ALONE, "similarity", "overlapping"),
        ("MNH, overlapping", ALONE, "neighbour", "overlapping"),
        ("MSH, batches", BATCH, "similarity", "any"),
        ("MNH, batches", BATCH, "neighbour", "any"),
    ]
    for value in (0.35, 0.5):
        for name, batching, heuristic, times in ways:
            made = [each for each in every if batching != ALONE or each.at < ALONE_S]
            outcome = play(made, threshold(value, times), heuristic, whom, batching)
            rows.append({"way": name, "threshold": value, **outcome.row()})
    found: dict[str, Any] = {}
    for value in (0.35, 0.5):
        here = {row["way"]: row for row in rows if row["threshold"] == value}
        msh = here["MSH"]
        for name in ("MNH", "MNH, overlapping"):
            mine = here[name]
            found[f"{name} at {value:g}"] = {
                "saved": 1 - mine["processed"],
                "saved_by_msh": 1 - msh["processed"],
                "times_fewer_comparisons": msh["comparisons"] / mine["comparisons"],
                "times_fewer_than_msh_the_same_way": here[f"MSH{name[3:]}"]["comparisons"]
                / mine["comparisons"],
            }
    return found, rows


def by_number(given: Traffic) -> Found:
    """5.5b: batches of 10 s, by number of queries; MNH beside the thesis' MSH."""
    rows: list[Row] = []
    for cars in NUMBERS:
        made = made_by(given, cars, EDGE_M)
        whom = everyone(given, given.drivers(cars), EDGE_M)
        for heuristic in ("similarity", "neighbour"):
            for value in (0.35, 0.5, 0.6):
                outcome = play(made, threshold(value), heuristic, whom, BATCH)
                rows.append({"cars": cars, "heuristic": heuristic, "threshold": value, **outcome.row()})
    good = [row for row in rows if row["similarity"] > 0.65]
    best = min(good, key=lambda row: row["processed"])
    strict = [row for row in rows if (row["similarity_reused"] or 0) > 0.65]
    best_reused = min(strict, key=lambda row: row["processed"])
    return {"headline": _headline(best), "headline_of_reused_alone": _headline(best_reused)}, rows


def _headline(row: Row) -> Row:
    return {
        "fewer": 1 - row["processed"],
        **{name: row[name] for name in ("similarity", "similarity_reused", "cars", "heuristic", "threshold")},
    }
