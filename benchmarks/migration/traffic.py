"""Vehicles that drive from place to place in SUMO's traffic, and which leaf broker each is at.

Rove's mobility model ``sumo`` turns at random at each junction, so that a vehicle hardly gets anywhere. The
vehicles of the thesis drive through a town; here they take shortest ways between random streets.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, hypot
from pathlib import Path

from node_agent.migration.learned import Visit
from node_agent.migration.leaves import Leaves
from node_agent.migration.mobility import Seen
from orchestrator.mobility import sumo_tools
from orchestrator.mobility.fcd import Vehicles, parse_fcd
from orchestrator.mobility.streets import Streets, read_streets, routes_file
from orchestrator.mobility.sumo import SumoTraffic
from orchestrator.mobility.trace_file import read_text
from orchestrator.model.trace import Area as Size
from orchestrator.model.trace import Sample
from orchestrator.spec.area import Area

AREA = (7700.0, 3500.0)
Place = tuple[float, float]


class Errands(SumoTraffic):
    """Vehicles drive to a random street by a shortest way, then to the next one."""

    def simulate(self, folder: Path, nodes: tuple[str, ...], area: Size, seed: int, until: float) -> Vehicles:
        columns, rows = self._junctions(area)
        self._build(folder, columns, rows)
        streets = read_streets(folder / "streets.net.xml")
        count = ceil(until * self.speed / self.block) + 2
        ways = {node: errands(streets, count, random.Random(f"errands/{seed}/{node}")) for node in nodes}
        (folder / "drives.rou.xml").write_text(routes_file(ways))
        output = folder / "vehicles.fcd.xml"
        options = ["--net-file", "streets.net.xml", "--route-files", "drives.rou.xml", "--step-length", "1"]
        options += ["--time-to-teleport", "-1", "--begin", "0", "--end", f"{ceil(until) + 1}"]
        options += ["--seed", f"{seed % 2**31}", "--fcd-output", str(output), "--no-step-log"]
        options += ["--no-warnings", "--xml-validation", "never"]
        sumo_tools.run("sumo", options, folder)
        left, top = ((side - (n - 1) * self.block) / 2 for side, n in zip(area, (columns, rows), strict=True))
        return parse_fcd(read_text(output), "SUMO's output", area, (left, top))


def errands(streets: Streets, count: int, rng: random.Random) -> list[str]:
    """A way over at least ``count`` streets."""
    names = list(streets)
    way = [rng.choice(names)]
    while len(way) < count:
        way += shortest_way(streets, way[-1], rng.choice(names), rng)[1:]
    return way


def shortest_way(streets: Streets, begin: str, end: str, rng: random.Random) -> list[str]:
    """Over as few streets as possible; all streets of a grid are equally long."""
    before: dict[str, str | None] = {begin: None}
    waiting = deque([begin])
    while waiting and end not in before:
        here = waiting.popleft()
        for there in rng.sample(streets[here], len(streets[here])):
            if there not in before:
                before[there] = here
                waiting.append(there)
    way: list[str] = []
    street: str | None = end
    while street is not None:
        way.append(street)
        street = before.get(street)
    return way[::-1]


@dataclass(frozen=True)
class Traffic:
    """``places``: by vehicle, where it is at each second."""

    places: dict[str, list[Place]]

    @property
    def seconds(self) -> int:
        return min(map(len, self.places.values())) - 1

    @cached_property
    def speed(self) -> float:
        """The mean of all vehicles, in metres a second."""
        ways = [hypot(b[0] - a[0], b[1] - a[1]) for way in self.places.values() for a, b in pairwise(way)]
        return sum(ways) / len(ways)

    def route(self, who: str, t: int, seconds: float) -> list[Seen]:
        """What a navigation system knows: the way from now on, with times as if the mean speed was driven."""
        way = self.places[who]
        found: list[Seen] = [(way[t], float(t))]
        at = float(t)
        for a, b in pairwise(way[t:]):
            length = hypot(b[0] - a[0], b[1] - a[1])
            if length > 0:
                at += length / self.speed
                found.append((b, at))
            if at > t + seconds:
                break
        return found

    def visits(self, who: str, leaves: Leaves, begin: int, end: int) -> list[Visit]:
        """At which leaf brokers a vehicle is in turn, and since when."""
        found: list[Visit] = []
        for t in range(begin, end):
            leaf = leaves.leaf(self.places[who][t])
            if not found or found[-1].leaf != leaf:
                found.append(Visit(leaf, float(t)))
        return found


def drives(names: Sequence[str], seed: int, seconds: float) -> dict[str, list[Place]]:
    found = Errands(model="sumo").drives(tuple(names), Area(*AREA), seed, seconds)
    return {name: _each_second(samples, int(seconds)) for name, samples in found.items()}


def _each_second(samples: Sequence[Sample], seconds: int) -> list[Place]:
    """SUMO's steps are seconds; a vehicle that appears late stands where it will appear."""
    by_second = {round(t): (round(x, 1), round(y, 1)) for t, x, y, *_ in samples}
    here = by_second[min(by_second)]
    found = []
    for t in range(seconds + 1):
        here = by_second.get(t, here)
        found.append(here)
    return found
