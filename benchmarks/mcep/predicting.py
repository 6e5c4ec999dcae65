"""Figures 3.11 to 3.13: what prepared graphs bring when each event takes a while."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from benchmarks.mcep.crowd import Crowd, Crowds
from benchmarks.mcep.roadside import QUERY, Roadside, asking, squares
from benchmarks.radio.report import Row
from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.interest import Timed
from node_agent.apps.mcep.model import AtomicId, Event, Policy, Quality, quality
from node_agent.apps.mcep.prediction import Prediction
from node_agent.apps.mcep.situations import graph_of
from node_agent.apps.mcep.storage import Storage

PER_EVENT_S, SWITCH_S = 0.005, 9.5
HISTORY_S, WINDOW_S = 2.0, 5.0
EDGES_M = (250.0, 500.0, 750.0, 1000.0)
AHEAD_S = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
PLACES, SPREAD_M = (5, 10, 15, 20), 60.0
ANY = Quality(0.0, 0.0)
BEST_EFFORT = Policy(completeness="best_effort")


def by_size(crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    ahead = Prediction(least=ANY, ahead=1.0)
    rows = [
        predicted(crowds, edge, policy, prediction, edge_m=edge, way=name)
        for edge in EDGES_M
        for name, policy, prediction in ways(ahead)
    ]
    by = {name: [row for row in rows if row["way"] == name] for name, _, _ in ways(ahead)}
    return {
        "on_demand_complete_precision": min(row["precision"] for row in by["on demand, complete"]),
        "on_demand_complete_latest_s": max(row["latest_s"] for row in by["on demand, complete"]),
        "predicted_complete_precision": min(row["precision"] for row in by["predicted, complete"]),
        "incomplete_precision_by_edge": [row["precision"] for row in by["on demand, incomplete"]],
    }, rows


def by_time_ahead(crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    edge = 500.0
    reactive = [predicted(crowds, edge, p, None, ahead_s=0.0, way=n) for n, p, q in ways(None) if q is None]
    rows: list[dict[str, Any]] = reactive + [
        predicted(crowds, edge, policy, prediction, ahead_s=seconds, way=name)
        for seconds in AHEAD_S
        for name, policy, prediction in ways(Prediction(least=ANY, ahead=seconds))[2:]
    ]
    usual = reactive[0]["first_s"]
    relative = {
        f"{row['ahead_s']:g} s": row["first_s"] / usual
        for row in rows
        if row["way"] == "predicted, complete" and row["ahead_s"] <= 2
    }
    hurried = [row for row in rows if row["way"] == "predicted, incomplete"]
    return {
        "reactive_first_s": usual,
        "latency_relative": relative,
        "incomplete_precision_by_ahead": [row["precision"] for row in hurried],
    }, rows


def by_places(crowds: Crowds) -> tuple[Row, Sequence[Row]]:
    rows = [
        predicted(
            crowds,
            500.0,
            BEST_EFFORT,
            Prediction(
                least=ANY, alike=Quality(threshold, threshold), ahead=1.0, places=places, spread=SPREAD_M
            ),
            places=places,
            threshold=threshold,
        )
        for threshold in (0.25, 0.9)
        for places in PLACES
    ]
    by = {t: [row["precision"] for row in rows if row["threshold"] == t] for t in (0.25, 0.9)}
    return {"precision_0.25": by[0.25], "precision_0.9": by[0.9]}, rows


def predicted(
    crowds: Crowds, edge: float, policy: Policy, prediction: Prediction | None, **facts: Any
) -> dict[str, Any]:
    given = crowds.dense
    events = [each for each in given.readings if each.type == "speed"]
    graph = graph_of("average_speed", {"readings": 10, "within": WINDOW_S})
    epochs: list[Row] = []
    ways: list[str] = []
    runs = 0
    for who in crowds.drivers(given):
        made = asking(graph, who, edge, HISTORY_S, policy, Timed(SWITCH_S), prediction)
        road = Roadside(given, events, who, made, PER_EVENT_S).play()
        epochs += served(given, events, who, road, edge)
        ways += road.broker.how(QUERY)[1:]
        runs += road.graphs
    return {
        **facts,
        "precision": fmean(each["precision"] for each in epochs),
        "first_s": fmean(each["first_s"] for each in epochs),
        "history_s": fmean(each["history_s"] for each in epochs),
        "latest_s": max(each["history_s"] for each in epochs),
        "prepared": ways.count("prepared") / len(ways) if ways else 0.0,
        "graphs": runs,
    }


def ways(prediction: Prediction | None) -> list[tuple[str, Policy, Prediction | None]]:
    return [
        ("on demand, complete", Policy(), None),
        ("on demand, incomplete", BEST_EFFORT, None),
        ("predicted, complete", Policy(), prediction),
        ("predicted, incomplete", BEST_EFFORT, prediction),
    ][: 2 if prediction is None else 4]


def served(given: Crowd, events: Sequence[Event], who: str, road: Roadside, edge: float) -> list[Row]:
    """Of each epoch but the first and the last: how precise it was and how late."""
    found: list[Row] = []
    places = {next(iter(each.provenance)): each for each in events}
    markers = road.markers
    for marker, following in list(pairwise(markers))[1:-1]:
        told = [each for each in road.results if each.result.epoch == marker.epoch]
        since, until = marker.t - HISTORY_S, following.t
        inside = [each for each in events if since <= each.t < until]

        def atoms(region: Region, inside: list[Event] = inside) -> set[AtomicId]:
            storage = Storage(1e9)
            for each in inside:
                storage.add(each)
            return {atom for each in storage.find("speed", [region]) for atom in each.provenance}

        assert marker.region is not None
        wanted, planned = atoms(squares(edge)(given.place(who, marker.t))), atoms(marker.region)
        processed = {atom for each in told for atom in each.result.event.provenance}
        processed = {atom for atom in processed if since <= places[atom].t < until}
        spatial = quality(wanted, planned).precision
        done = len(processed & wanted) / max(1, len(planned & wanted))
        historical = [each.at for each in told if each.result.historical]
        late = until - marker.t  # of an epoch that delivered nothing
        found.append(
            {
                "precision": spatial * done,
                "first_s": max(0.0, told[0].at - marker.t) if told else late,
                "history_s": max(0.0, historical[-1] - marker.t) if historical else 0.0 if told else late,
            }
        )
    return found
