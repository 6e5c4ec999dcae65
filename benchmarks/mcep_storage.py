"""Measures the event storage at a million events: range queries and counts, a linear scan and DuckDB beside
it.

Vehicles on 7.7 km × 3.5 km, an event a second each, as in the thesis' evaluation; a query wants the events
of one type in a square or a circle in the last seconds. All three answer the same queries, and the answers
are compared. ``queries_per_second`` is by processor time of this process, all of DuckDB's threads included.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.radio.report import Row, main
from node_agent.apps.mcep.geometry import Box, Circle, Point, Region, bounds, contains
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.storage import Storage

EVENTS, VEHICLES = 1_000_000, 1000
WIDTH, HEIGHT = 7700.0, 3500.0
TYPES = ("speed", "lane")
QUERIES, SCANS = 400, 6
SIZES = (50.0, 250.0, 500.0)
"""Half the side of squares, and radius of circles, in metres."""
SPANS = (5.0, 60.0)

Asked = tuple[str, Region, float, float]


def million() -> list[Event]:
    draw = random.Random("mcep_storage")
    places = [(draw.uniform(0, WIDTH), draw.uniform(0, HEIGHT)) for _ in range(VEHICLES)]
    names = [f"car{number}" for number in range(VEHICLES)]
    found = []
    for number in range(EVENTS):
        car, second = number % VEHICLES, number // VEHICLES
        x, y = places[car]
        x, y = (x + draw.uniform(-20, 20)) % WIDTH, (y + draw.uniform(-20, 20)) % HEIGHT
        places[car] = (x, y)
        found.append(Event(second + car / VEHICLES, second, names[car], TYPES[number % 2], Point(x, y)))
    return found


def asked(number: int) -> list[Asked]:
    draw = random.Random("mcep_storage/queries")
    found: list[Asked] = []
    while len(found) < number:
        x, y, size = draw.uniform(0, WIDTH), draw.uniform(0, HEIGHT), draw.choice(SIZES)
        region: Region = (
            Circle(x, y, size) if draw.random() < 0.5 else Box(x - size, y - size, x + size, y + size)
        )
        until = draw.uniform(0.1, 1.0) * EVENTS / VEHICLES
        found.append((draw.choice(TYPES), region, until - draw.choice(SPANS), until))
    return found


def measure() -> tuple[Mapping[str, Any], Sequence[Row]]:
    events = million()
    storage = Storage(1e9)
    started = time.process_time()
    for event in events:
        storage.add(event)
    added = time.process_time() - started
    queries = asked(QUERIES)

    def found(query: Asked) -> int:
        type, region, since, before = query
        return len(storage.find(type, [region], since, before))

    def counted(query: Asked) -> int:
        type, region, since, before = query
        return storage.count(type, [region], since, before)

    def scanned(query: Asked) -> int:
        type, region, since, before = query
        hits = [
            each
            for each in events
            if each.type == type
            and since <= each.t < before
            and isinstance(each.place, Point)
            and contains(region, each.place)
        ]
        return len(hits)

    with duckdb.connect() as duck:
        _load(duck, events)
        ways: dict[str, tuple[Callable[[Asked], int], list[Asked]]] = {
            "grid": (found, queries),
            "grid, count": (counted, queries),
            "duckdb": (lambda query: len(_rows(duck, "t, seq, source, x, y", query)), queries),
            "duckdb, count": (lambda query: int(_rows(duck, "count(*)", query)[0][0]), queries),
            "linear scan": (scanned, queries[:SCANS]),
        }
        rows: list[Row] = []
        answers: dict[str, list[int]] = {}
        for name, (answer, some) in ways.items():
            began, cpu = time.perf_counter(), time.process_time()
            answers[name] = [answer(each) for each in some]
            cpu, wall = time.process_time() - cpu, time.perf_counter() - began
            rows.append(
                {
                    "way": name,
                    "queries": len(some),
                    "queries_per_second": len(some) / cpu,
                    "by_wall_clock": len(some) / wall,
                    "events_found": sum(answers[name]),
                }
            )
    for name, given in answers.items():
        if given != answers["grid"][: len(given)]:
            raise AssertionError(f"{name} found other events than the grid")
    by_way = {each["way"]: each["queries_per_second"] for each in rows}
    figures = {
        "benchmark": "mcep_storage",
        "events": len(storage),
        "queries_per_second": by_way["grid"],
        "counts_per_second": by_way["grid, count"],
        "times_linear_scan": by_way["grid"] / by_way["linear scan"],
        "times_duckdb": by_way["grid"] / by_way["duckdb"],
        "adds_per_second": EVENTS / added,
    }
    return figures, rows


def _load(duck: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    """Sorted by type and time, so that DuckDB can leave out most row groups by their smallest and largest
    times."""
    ordered = sorted(events, key=lambda each: (each.type, each.t))
    places = [each.place for each in ordered if isinstance(each.place, Point)]
    table = pa.table(
        {
            "type": [each.type for each in ordered],
            "t": [each.t for each in ordered],
            "seq": [each.seq for each in ordered],
            "source": [each.source for each in ordered],
            "x": [place.x for place in places],
            "y": [place.y for place in places],
        }
    )
    duck.register("given", table)
    duck.execute("create table events as select * from given")
    duck.execute("set threads to 1")


def _rows(duck: duckdb.DuckDBPyConnection, what: str, query: Asked) -> list[tuple[Any, ...]]:
    type, region, since, before = query
    box = bounds(region)
    within = "t >= ? and t < ? and x between ? and ? and y between ? and ?"
    text = f"select {what} from events where type = ? and {within}"
    values: list[Any] = [type, since, before, box.x0, box.x1, box.y0, box.y1]
    if isinstance(region, Circle):
        text += " and (x - ?) * (x - ?) + (y - ?) * (y - ?) <= ?"
        values += [region.x, region.x, region.y, region.y, region.radius**2]
    return duck.execute(text, values).fetchall()


if __name__ == "__main__":
    main("A million events by type, place and time", measure)
