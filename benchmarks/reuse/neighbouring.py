"""Figures 5.6 and 5.7: few neighbours against disparity, and selections that are decided before their end."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from benchmarks.radio.report import Row
from benchmarks.reuse.covering import Found, threshold
from benchmarks.reuse.figure_files import figure
from benchmarks.reuse.playing import Outcome, play
from benchmarks.reuse.traffic import Made, Traffic, Window, is_slow
from node_agent.apps.mcep.geometry import Point, Region
from node_agent.apps.mcep.model import Event, Quality
from node_agent.apps.mcep.reuse.covering import Neighbours
from node_agent.apps.mcep.reuse.disparity import disparity_of_places
from node_agent.apps.mcep.reuse.incomplete import PREDICTIONS
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Connected, Process, SelectionManager, Settings
from node_agent.apps.mcep.reuse.neighbours import Graph, Neighbourhood, Reach, Shareable, all_of_a_type
from node_agent.apps.mcep.reuse.results import Input, Key
from node_agent.apps.mcep.reuse.similarity import Candidate

TYPES = ("slow", "fast")
SELECT_S = 2.0
MOST = (1, 2, 4, 8, 14)
DISTANCES_M = (1000.0, 2500.0, 10_000.0)


def by_neighbours(given: Traffic) -> Found:
    """5.6: each query joins the mean of slow vehicles with that of fast ones; both are shared alone."""
    file = figure("5.6")
    names = given.drivers(file.cars)
    made = [
        each
        for who in names
        for type in TYPES
        for each in given.selections(
            who, file.edge, Window(), is_slow if type == "slow" else _is_fast, f"{who}/{type}"
        )
    ]
    places = {each.seq: each.place for each in given.speeds if isinstance(each.place, Point)}
    rows: list[Row] = []
    for away in DISTANCES_M:
        for most in MOST:
            pairs: list[tuple[Candidate, Candidate]] = []
            selecting = Selecting(given, names, Reach(most, away, away), file.edge)
            outcome = play(
                made, threshold(file.threshold, "overlapping"), "neighbour", selecting.at, pairs=pairs
            )
            rows.append(
                {
                    "distance_m": away,
                    "neighbours": most,
                    **outcome.row(),
                    "disparity": joined_disparity(pairs, names, places),
                }
            )
    by = {(row["distance_m"], row["neighbours"]): row for row in rows}
    few, many = by[DISTANCES_M[-1], MOST[0]], by[DISTANCES_M[-1], MOST[-1]]
    return {
        "processed_by_neighbours": [few["processed"], many["processed"]],
        "disparity_by_neighbours": [few["disparity"], many["disparity"]],
        "disparity_by_distance": [by[away, MOST[-1]]["disparity"] for away in DISTANCES_M],
    }, rows


def _is_fast(event: Event) -> bool:
    return not is_slow(event)


class Selecting:
    """Vehicles move, and their queries choose neighbours every two seconds."""

    def __init__(self, given: Traffic, names: list[str], reach: Reach, edge: float) -> None:
        self._given, self._names, self._edge = given, names, edge
        self._here = Neighbourhood()
        self._next = 0.0
        for who in names:
            operators = tuple(Shareable(f"{who}/{type}", type, reach) for type in TYPES)
            place, interest = given.crowd.place(who, 0.0), given.region(who, edge, 0.0)
            self._here.enter(Graph(who, place, interest, operators))

    def at(self, t: float) -> tuple[Neighbours, Mapping[str, float]]:
        if t >= self._next:
            self._next = t + SELECT_S
            for who in self._names:
                self._here.move(who, self._given.crowd.place(who, t), self._given.region(who, self._edge, t))
            for who in self._names:
                self._here.select(who)
        return self._here.neighbours, self._here.priorities()


def joined_disparity(
    pairs: list[tuple[Candidate, Candidate]], names: list[str], places: Mapping[int, Point]
) -> float:
    """The mean over all results of slow vehicles, each with the latest one of fast vehicles before it."""
    got: dict[str, list[tuple[float, Candidate]]] = defaultdict(list)
    for used, wanted in pairs:
        got[wanted.operator].append((wanted.end, used))
    found = []
    for who in names:
        slow, fast = (sorted(got[f"{who}/{type}"], key=lambda each: each[0]) for type in TYPES)
        ends = [end for end, _ in fast]
        for end, one in slow:
            index = bisect_right(ends, end) - 1
            if index >= 0:
                other = fast[index][1]
                regions: list[Region] = [r for r in (one.region, other.region) if r is not None]
                atoms = one.used | other.used
                found.append(disparity_of_places([places[seq] for _, seq in atoms], regions))
    return fmean(found) if found else math.nan


def by_prediction(given: Traffic) -> Found:
    """5.7: decided once a second, by the selection manager, with windows that take longer than that."""
    file = figure("5.7")
    least = Quality(file.threshold, file.threshold)
    names = given.drivers(file.cars)
    made = {who: given.selections(who, file.edge, file.window) for who in names}
    rows: list[Row] = []
    complete = Settings(threshold(file.threshold), "neighbour")
    ways = {"complete only": complete} | {
        name: Settings(Rules(least, share=share), "neighbour", early=True)
        for name, share in PREDICTIONS.items()
    }
    for name in ("optimistic", "pattern"):
        rules = Rules(least, share=PREDICTIONS[name], later=True)
        ways[f"{name}, later"] = Settings(rules, "neighbour", early=True)
    rules = Rules(least, sure=0.9, later=True)
    ways["90 % sure, later"] = Settings(rules, "neighbour", early=True)
    for name, settings in ways.items():
        rows.append({"prediction": name, **predicted(given, made, settings, file.edge).row()})
    return {
        row["prediction"]: {"processed": row["processed"], "similarity": row["similarity"]} for row in rows
    }, rows


def predicted(given: Traffic, made: Mapping[str, list[Made]], settings: Settings, edge: float) -> Outcome:
    """Feeds selections to a manager second by second, as their events occur."""
    manager = SelectionManager(settings)
    for who in made:
        manager.connect(Connected(who, given.region(who, edge, 0.0), ("b",)))
    neighbours = all_of_a_type(dict.fromkeys(made, "mean"))
    every: dict[Key, Made] = {(who, m.candidate.number): m for who, all_ in made.items() for m in all_}
    outcome = Outcome()
    filled: dict[Key, int] = dict.fromkeys(every, 0)
    closed: set[Key] = set()

    def finish(process: list[Process]) -> None:
        for each in process:
            for key in each.covered:
                outcome.add(every[each.key].candidate, every[key].candidate)
            manager.finished(each.key, [])

    for second in range(1, math.ceil(given.crowd.seconds) + 1):
        for key, each in every.items():
            if key in closed or each.candidate.start >= second:
                continue
            first = filled[key]
            last = first
            while last < len(each.events) and each.events[last].t < second:
                last += 1
            filled[key] = last
            inputs = [Input(one) for one in each.events[first:last]]
            manager.fill(*key, inputs, len(each.events) - last)
            if last == len(each.events):
                closed.add(key)
                finish(manager.close(*key))
        decision = manager.cover(neighbours)
        outcome.comparisons += decision.comparisons
        finish(list(decision.process))
        manager.heartbeat()
    return outcome
