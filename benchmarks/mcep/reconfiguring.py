"""Figures 3.8 to 3.10: what switches cost, by how, when and from where streams begin anew."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from benchmarks.mcep.crowd import Crowd, Crowds
from benchmarks.mcep.figure_files import Asking, Figure
from benchmarks.mcep.points import Points, Way
from benchmarks.mcep.roadside import QUERY, Roadside, asked_by
from benchmarks.radio.report import Row
from node_agent.apps.mcep.geometry import Point, Region, squares
from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.interest import recent_quality
from node_agent.apps.mcep.model import Event, Quality, Query
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.windows import Partition, filter_operator

DEVIATIONS_M = (100.0, 200.0, 400.0)
"""How far apart squares are predeployed."""
LOOK_BACK_S = 5.0
FRIENDS = 50
"""One vehicle in so many is a friend's."""
AWARE = "quality 0.9"


def predeployment(figure: Figure, crowds: Crowds) -> tuple[Row, list[Row]]:
    given = crowds.of(figure)
    rows: list[Row] = []
    for app, events, graph in (
        ("traffic", given.readings, traffic(figure.asking().graph)),
        ("video", given.pictures, friends(list(given.drives)[::FRIENDS])),
    ):
        for edge in figure.swept("edge").values():
            by_way = {
                "mcep, optimised" if suppression else "mcep": replace(
                    figure.asking(edge=edge, suppression=suppression), graph=graph
                )
                for suppression in figure.swept("suppression").values()
            }
            metres = by_way["mcep"].edge
            counts: dict[str, float] = {
                f"predeployed, {apart:g} m": float(predeployed(events, metres, apart, given))
                for apart in DEVIATIONS_M
            }
            for way, asking in by_way.items():
                counts[way] = fmean(
                    Roadside(given, events, who, asked_by(who, asking)).play().streamed
                    for who in crowds.drivers(given)
                )
            base = counts[f"predeployed, {DEVIATIONS_M[0]:g} m"]
            rows += [
                {"app": app, "edge_m": metres, "way": way, "events": count, "relative": count / base}
                for way, count in counts.items()
            ]
    best = {way: [r["relative"] for r in rows if r["way"] == way] for way in ("mcep", "mcep, optimised")}
    fewer = {
        f"fewer_{'optimised' if 'opt' in way else 'basic'}": {
            "least": 1 - max(all_), "most": 1 - min(all_)
        }
        for way, all_ in best.items()
    }  # fmt: skip
    return fewer, rows


def by_condition(figure: Figure, crowds: Crowds) -> tuple[Row, list[Row]]:
    given = crowds.of(figure)
    rows: list[Row] = []
    for edge in figure.swept("edge").values():
        found: list[dict[str, Any]] = []
        for name, switch in figure.swept("switch").items():
            asking = figure.asking(edge=edge, switch=switch)
            asking = replace(asking, graph=traffic(asking.graph))
            played = [
                (who, Roadside(given, given.readings, who, asked_by(who, asking)).play())
                for who in crowds.drivers(given)
            ]
            qualities = [q for who, road in played for q in at_locations(given, who, road, asking.edge)]
            found.append(
                {
                    "edge_m": asking.edge,
                    "condition": name,
                    "switches": fmean(len(road.markers) - 1 for _, road in played),
                    "events": fmean(road.streamed for _, road in played),
                    "precision": fmean(each.precision for each in qualities),
                    "recall": fmean(each.recall for each in qualities),
                }
            )
        most = max(each["events"] for each in found)
        rows += [{**each, "relative": each["events"] / most} for each in found]
    aware = [each for each in rows if each["condition"] == AWARE]
    return {
        "quality_aware_relative": fmean(each["relative"] for each in aware),
        "quality_aware_precision": min(each["precision"] for each in aware),
    }, rows


def initialization_points(figure: Figure, crowds: Crowds) -> tuple[Row, list[Row]]:
    given = crowds.of(figure)
    rows: list[Row] = []
    for window in figure.swept("parameters.readings").values():
        asking = figure.asking(parameters__readings=window)
        ways: dict[Way, list[Points]] = {
            way: [points(given, who, asking, way) for who in crowds.drivers(given)]
            for way in ("basic", "avg", "none")
        }
        for way in ("avg", "none"):
            pairs = list(zip(ways[way], ways["basic"], strict=True))
            rows.append(
                {
                    "window": window,
                    "way": way,
                    "completeness": fmean(
                        (mine.results & basic.results).total() / basic.results.total()
                        for mine, basic in pairs
                    ),
                    "overhead": fmean(mine.historical / basic.historical for mine, basic in pairs),
                }
            )
    by = {way: [row for row in rows if row["way"] == way] for way in ("avg", "none")}
    return {
        "avg_completeness": fmean(row["completeness"] for row in by["avg"]),
        "avg_overhead_most": max(row["overhead"] for row in by["avg"]),
        "none_completeness": fmean(row["completeness"] for row in by["none"]),
    }, rows


def traffic(graph: OperatorGraph) -> OperatorGraph:
    """One client tells what all vehicles see, so readings are told apart by an attribute."""
    operators = tuple(
        each if each.partition is None else replace(each, partition=Partition("attribute", "car"))
        for each in graph.operators
    )
    return OperatorGraph(graph.sources, operators, graph.streams)


def friends(cars: Iterable[str]) -> OperatorGraph:
    """Pictures of some vehicles. What a camera films is an event; faces are not looked for."""
    known = frozenset(cars)
    found = filter_operator("friend", "picture", lambda event: event.attributes.get("car") in known, "friend")
    streams = (Stream("picture", "friend"), Stream("friend"))
    return OperatorGraph((Source("picture", "picture"),), (found,), streams)


def predeployed(events: Sequence[Event], edge: float, apart: float, given: Crowd) -> int:
    """Events that squares with centres on a grid stream, each to its own graph."""

    def centres(value: float, size: float) -> int:
        first = max(0, -int(-(value - edge / 2 - apart / 2) // apart))
        last = min(int(size / apart) - 1, int((value + edge / 2 - apart / 2) // apart))
        return max(0, last - first + 1)

    return sum(
        centres(each.place.x, given.area.x1) * centres(each.place.y, given.area.y1)
        for each in events
        if isinstance(each.place, Point)
    )


def at_locations(given: Crowd, who: str, road: Roadside, edge: float) -> list[Quality]:
    """Quality of what is processed against what is wanted, at each location."""
    storage = Storage(1e9)
    for event in given.readings:
        storage.add(event)

    def count(regions: Iterable[Region], since: float, before: float) -> int:
        inside = list(regions)
        return sum(storage.count(type, inside, since, before) for type in ("speed", "lane"))

    found = []
    for second in range(int(LOOK_BACK_S) + 1, int(given.seconds)):
        processed = [each.region for each in road.markers if each.t <= second][-1]
        wanted = squares(edge)(given.place(who, float(second)))
        if processed is not None:
            found.append(recent_quality(processed, wanted, second - LOOK_BACK_S, second, count))
    return found


def points(given: Crowd, who: str, asking: Asking, way: Way) -> Points:
    """A switch each second, once the restriction window is full of events."""
    region = squares(asking.edge)
    query = Query(QUERY, asking.graph, who, region, asking.history)
    machines = Points(query, way)
    events = [each for each in given.readings if each.type == "speed"]
    first = 0
    for second in range(1, int(given.seconds)):
        last = first
        while last < len(events) and events[last].t < second:
            last += 1
        machines.see(events[first:last], float(second))
        first = last
        if second > query.look_back:
            machines.switch(region(given.place(who, float(second))), float(second))
    return machines
