"""What queries with a graph for each region must have delivered, from the switches that a run recorded.

Which graphs were ready at a switch depends on the run, so the switches are taken as they were; what each
epoch must hold is computed by the oracle, which shares no code with brokers and clients.
"""

from collections.abc import Iterable
from math import hypot
from types import SimpleNamespace
from typing import Any

from benchmarks.mcep.oracle import Oracle
from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.config import QueryConfig, query_of, readings_of
from node_agent.apps.mcep.geometry import Circle, Point
from node_agent.apps.mcep.model import Event, Query, atomic
from node_agent.telemetry.segments import read_records
from orchestrator.apps.mcep.plan import Recorded
from orchestrator.runs.run_directory import RunDirectory

NS = 1e9
Result = tuple[int, str, int, tuple[str, ...]]
"""Epoch, type, time and ancestors."""


def records_of(run: RunDirectory, nodes: Iterable[str], kind: str) -> list[dict[str, Any]]:
    every = (record for node in nodes for record in read_records(run.segments(node)))
    return [record for record in every if record["kind"] == kind]


def seen_by(recorded: Recorded) -> list[Event]:
    """All that sensors see, in order."""
    found = [
        atomic(each.type, each.t, each.place, number, name, each.attributes)
        for name in recorded.settings.clients
        for number, each in enumerate(readings_of(recorded.config(name)))
    ]
    return sorted(found, key=lambda event: event.key)


def delivered_to(found: Iterable[dict[str, Any]], query: str) -> list[Result]:
    own = sorted((each for each in found if each["query"] == query), key=lambda each: int(each["number"]))
    return [(each["epoch"], each["type"], each["at_ns"], tuple(each["ancestors"])) for each in own]


def known_epochs(query: str, switches: Iterable[dict[str, Any]]) -> set[int]:
    """Those of which it is recorded when their graph began: it began at the switch, or needed nothing from
    before the beginning."""
    return {
        each["epoch"]
        for each in switches
        if each["query"] == query and (each["since_ns"] > 0 or each["how"] == "began")
    }


def expected_of(recorded: Recorded, config: QueryConfig, switches: Iterable[dict[str, Any]]) -> list[Result]:
    """Of a query with circles, in known epochs."""
    query = query_of(config)
    own = sorted((each for each in switches if each["query"] == config.name), key=lambda s: int(s["epoch"]))
    world: Any = SimpleNamespace(query=query, events=seen_by(recorded))
    markers = [_marker(query, each) for each in own]
    oracle, known = Oracle(world, markers), known_epochs(config.name, own)
    return [
        (
            epoch,
            event.type,
            round(event.t * NS),
            tuple(f"{source}#{seq}" for source, seq in sorted(event.provenance)),
        )
        for epoch in sorted(known - {len(markers)})
        for event in oracle.expected(epoch)
    ]


def _marker(query: Query, switch: dict[str, Any]) -> Marker:
    """A graph may have begun before its switch: its points are as far apart as ever, the earliest is known,
    unless it was before the beginning."""
    region = None if switch["x"] is None else Circle(switch["x"], switch["y"], switch["radius"])
    start = switch["start_ns"] / NS
    points = query.graph.points(0.0, query.history)
    begun = switch["since_ns"] / NS - min(points.values()) if switch["since_ns"] else start
    placed = {name: begun + point for name, point in points.items()}
    return Marker(
        start, switch["epoch"], region, placed, frozenset(each.name for each in query.graph.sources)
    )


def outside(recorded: Recorded, found: Iterable[dict[str, Any]], switches: Iterable[dict[str, Any]]) -> int:
    """How many ancestors of results were not in the region of the epoch."""
    regions = {(each["query"], each["epoch"]): each for each in switches}
    seen = seen_by(recorded)
    places = {f"{each.source}#{each.seq}": each.place for each in seen if isinstance(each.place, Point)}
    count = 0
    for each in found:
        region = regions[each["query"], each["epoch"]]
        for name in each["ancestors"]:
            x, y = places[name]
            count += hypot(x - region["x"], y - region["y"]) > region["radius"] + 0.01
    return count
