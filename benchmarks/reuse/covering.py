"""Figures 5.4 and 5.5: what reuse saves, by threshold, size of interests, heuristic and number of queries."""

from typing import Any

from benchmarks.radio.report import Row
from benchmarks.reuse.figure_files import figure
from benchmarks.reuse.playing import everyone, play
from benchmarks.reuse.traffic import Made, Traffic, Window
from node_agent.apps.mcep.model import Quality
from node_agent.apps.mcep.reuse.batches import ALONE, Batching
from node_agent.apps.mcep.reuse.judging import Rules, Times

ALONE_S = 5.0
"""Of the run, for selections one by one: MSH makes some 200,000 estimates for each second."""
Found = tuple[Row, list[Row]]


def threshold(value: float, times: Times = "any") -> Rules:
    return Rules(Quality(value, value), times=times)


def made_by(given: Traffic, cars: int, edge: float, window: Window | None = None) -> list[Made]:
    return [each for who in given.drivers(cars) for each in given.selections(who, edge, window or Window())]


def by_threshold(given: Traffic) -> Found:
    """5.4: in batches, as ``fig5-4.yaml`` says."""
    rows: list[Row] = []
    file = figure("5.4")
    for edge in file.edges:
        made = made_by(given, file.cars, edge, file.window)
        whom = everyone(given, given.drivers(file.cars), edge)
        for heuristic in ("similarity", "neighbour"):
            for value in file.thresholds:
                outcome = play(made, threshold(value), heuristic, whom, file.batching)
                rows.append({"edge_m": edge, "heuristic": heuristic, "threshold": value, **outcome.row()})
    wide = [row for row in rows if row["edge_m"] == max(file.edges)]
    small = [row for row in rows if row["edge_m"] == min(file.edges)]
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
    file = figure("5.5")
    batch = file.batching
    every = made_by(given, file.cars, file.edge, file.window)
    whom = everyone(given, given.drivers(file.cars), file.edge)
    ways: list[tuple[str, Batching, str, Times]] = [
        ("no reuse", ALONE, "none", "any"),
        ("MSH", ALONE, "similarity", "any"),
        ("MNH", ALONE, "neighbour", "any"),
        ("MSH, overlapping", ALONE, "similarity", "overlapping"),
        ("MNH, overlapping", ALONE, "neighbour", "overlapping"),
        ("MSH, batches", batch, "similarity", "any"),
        ("MNH, batches", batch, "neighbour", "any"),
    ]
    few = file.thresholds[:2]
    for value in few:
        for name, batching, heuristic, times in ways:
            made = [each for each in every if batching != ALONE or each.at < ALONE_S]
            outcome = play(made, threshold(value, times), heuristic, whom, batching)
            rows.append({"way": name, "threshold": value, **outcome.row()})
    found: dict[str, Any] = {}
    for value in few:
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
    """5.5b: in batches, by number of queries; MNH beside the thesis' MSH."""
    rows: list[Row] = []
    file = figure("5.5")
    for cars in file.numbers:
        made = made_by(given, cars, file.edge, file.window)
        whom = everyone(given, given.drivers(cars), file.edge)
        for heuristic in ("similarity", "neighbour"):
            for value in file.thresholds:
                outcome = play(made, threshold(value), heuristic, whom, file.batching)
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
