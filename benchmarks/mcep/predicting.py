"""Figures 3.11 to 3.13: what prepared graphs bring when each event takes a while."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from benchmarks.mcep.crowd import Crowd, Crowds
from benchmarks.mcep.figure_files import Asking, Figure
from benchmarks.mcep.roadside import QUERY, Roadside, asked_by
from benchmarks.radio.report import Row
from node_agent.apps.mcep.geometry import Region, squares
from node_agent.apps.mcep.model import AtomicId, Event, Quality, quality
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.storage import Storage

PER_EVENT_S = 0.005
AHEAD_S = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
PLACES, SPREAD_M, THRESHOLDS = (5, 10, 15, 20), 60.0, (0.25, 0.9)
ANY = Quality(0.0, 0.0)


def by_size(figure: Figure, crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    ahead = Prediction(least=ANY, ahead=1.0)
    rows = [
        predicted(figure, crowds, asking, prediction, edge_m=asking.edge, way=name)
        for edge in figure.swept("edge").values()
        for name, asking, prediction in ways(figure, ahead, edge=edge)
    ]
    by = {name: [row for row in rows if row["way"] == name] for name, _, _ in ways(figure, ahead)}
    return {
        "on_demand_complete_precision": min(row["precision"] for row in by["on demand, complete"]),
        "on_demand_complete_latest_s": max(row["latest_s"] for row in by["on demand, complete"]),
        "predicted_complete_precision": [row["precision"] for row in by["predicted, complete"]],
        "predicted_complete_prepared": [row["prepared"] for row in by["predicted, complete"]],
        "incomplete_precision_by_edge": [row["precision"] for row in by["on demand, incomplete"]],
    }, rows


def by_time_ahead(figure: Figure, crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    reactive = [predicted(figure, crowds, a, None, ahead_s=0.0, way=n) for n, a, _ in ways(figure, None)]
    rows: list[dict[str, Any]] = reactive + [
        predicted(figure, crowds, asking, prediction, ahead_s=seconds, way=name)
        for seconds in AHEAD_S
        for name, asking, prediction in ways(figure, Prediction(least=ANY, ahead=seconds))[2:]
    ]
    usual = reactive[0]["first_s"]
    relative = {
        f"{row['ahead_s']:g} s": row["first_s"] / usual
        for row in rows
        if row["way"] == "predicted, complete" and row["ahead_s"] <= 2
    }
    hurried = [reactive[1], *(row for row in rows if row["way"] == "predicted, incomplete")]
    return {
        "reactive_first_s": usual,
        "latency_relative": relative,
        "incomplete_precision_by_ahead": [row["precision"] for row in hurried],
        "incomplete_done_by_ahead": [row["done"] for row in hurried],
    }, rows


def by_places(figure: Figure, crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    """``drawn``: places are drawn at random, the expected one is not among them."""
    rows = [
        predicted(
            figure,
            crowds,
            figure.asking(),
            Prediction(
                least=ANY,
                alike=Quality(threshold, threshold),
                ahead=1.0,
                places=places,
                spread=SPREAD_M,
                drawn=1 if drawn else None,
            ),
            places=places,
            threshold=threshold,
            drawn=drawn,
        )
        for drawn in (False, True)
        for threshold in THRESHOLDS
        for places in PLACES
    ]
    return {
        f"precision_{threshold}{'_drawn' if drawn else ''}": [
            row["precision"] for row in rows if row["threshold"] == threshold and row["drawn"] == drawn
        ]
        for drawn in (False, True)
        for threshold in THRESHOLDS
    }, rows


def predicted(
    figure: Figure, crowds: Crowds, asking: Asking, prediction: Prediction | None, **facts: Any
) -> dict[str, Any]:
    """``spatial``: precision of the region; ``done``: share of wanted events that were processed in time."""
    given = crowds.of(figure)
    events = [each for each in given.readings if each.type == "speed"]
    epochs: list[Row] = []
    how: list[str] = []
    runs = 0
    for who in crowds.drivers(given):
        road = Roadside(given, events, who, asked_by(who, asking, prediction), PER_EVENT_S).play()
        epochs += served(given, events, who, road, asking)
        how += road.broker.how(QUERY)[1:]
        runs += road.graphs
    return {
        **facts,
        **{
            key: fmean(each[key] for each in epochs)
            for key in ("precision", "spatial", "done", "first_s", "history_s")
        },
        "latest_s": max(each["history_s"] for each in epochs),
        "prepared": how.count("prepared") / len(how) if how else 0.0,
        "graphs": runs,
    }


def ways(
    figure: Figure, prediction: Prediction | None, **values: Any
) -> list[tuple[str, Asking, Prediction | None]]:
    complete = figure.asking(completeness="weak", **values)
    hurried = figure.asking(completeness="best_effort", **values)
    return [
        ("on demand, complete", complete, None),
        ("on demand, incomplete", hurried, None),
        ("predicted, complete", complete, prediction),
        ("predicted, incomplete", hurried, prediction),
    ][: 2 if prediction is None else 4]


def served(
    given: Crowd, events: Sequence[Event], who: str, road: Roadside, asking: Asking
) -> list[dict[str, float]]:
    """Of each epoch but the first and the last: how precise it was and how late."""
    found: list[dict[str, float]] = []
    places = {next(iter(each.provenance)): each for each in events}
    markers = road.markers
    for marker, following in list(pairwise(markers))[1:-1]:
        told = [each for each in road.results if each.result.epoch == marker.epoch]
        since, until = marker.t - asking.history, following.t
        inside = [each for each in events if since <= each.t < until]

        def atoms(region: Region, inside: list[Event] = inside) -> set[AtomicId]:
            storage = Storage(1e9)
            for each in inside:
                storage.add(each)
            return {atom for each in storage.find("speed", [region]) for atom in each.provenance}

        assert marker.region is not None
        wanted, planned = atoms(squares(asking.edge)(given.place(who, marker.t))), atoms(marker.region)
        processed = {atom for each in told for atom in each.result.event.provenance}
        processed = {atom for atom in processed if since <= places[atom].t < until}
        spatial = quality(wanted, planned).precision
        done = len(processed & wanted) / max(1, len(planned & wanted))
        historical = [each.at for each in told if each.result.historical]
        late = until - marker.t  # of an epoch that delivered nothing
        found.append(
            {
                "precision": spatial * done,
                "spatial": spatial,
                "done": done,
                "first_s": max(0.0, told[0].at - marker.t) if told else late,
                "history_s": max(0.0, historical[-1] - marker.t) if historical else 0.0 if told else late,
            }
        )
    return found
