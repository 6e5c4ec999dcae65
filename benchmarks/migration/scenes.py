"""The graphs of operators that the figures are about: a generic one, traffic accidents, and videos."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from benchmarks.migration.mobiles import Capture, Learning, Mobile, changing, steady_rate
from benchmarks.migration.simulation import Part, Scene
from benchmarks.migration.topologies import Tree
from benchmarks.migration.traffic import Traffic
from node_agent.migration.restrictions import Route, local_limits


@dataclass(frozen=True)
class Ground:
    """What all scenes share. ``begin``: second of the traffic when the measurement begins; what was before is
    learned from."""

    traffic: Traffic
    begin: int
    seconds: int

    def learning(self, tree: Tree) -> Learning:
        key = tree.name
        if key not in self._known:
            self._known[key] = Learning(self.traffic, tree, self.begin)
        return self._known[key]

    _known: dict[str, Learning] = field(default_factory=dict, compare=False)

    def drivers(self, seed: int, count: int) -> list[str]:
        return random.Random(f"drivers {seed}").sample(sorted(self.traffic.places), count)


@dataclass(frozen=True)
class Generic:
    """Two sources, an operator for each (D1, D2), one that joins both (F), and a consumer. One event a second
    and source. ``event``: bytes of the first source's, ``other_event``: of the second one's. ``detections``:
    how many events a second D1 and D2 send, of ``found`` bytes each; F sends a tenth of these. ``states``:
    bytes by operator, 0 if not named. ``limit``: seconds for a path, which operators keep if they ``know``.
    ``every``: after so many seconds the first source's events change to a size between a tenth and nearly
    twice of ``event``; 0: never."""

    event: float = 150.0
    other_event: float = 100.0
    detections: float = 0.1
    found: float = 100.0
    states: Mapping[str, float] = field(default_factory=dict)
    capture: Capture = "navi"
    limit: float = inf
    know: bool = True
    every: float = 0.0

    def scene(self, ground: Ground, tree: Tree, seed: int) -> Scene:
        learning, begin = ground.learning(tree), ground.begin
        first, second, asks = ground.drivers(seed, 3)

        def mobile(name: str, who: str, rate: float) -> Mobile:
            return Mobile(name, who, learning, begin, self.capture, rate, steady_rate(rate))

        one = mobile("s1", first, self.event)
        if self.every:
            rates = changing(0.1 * self.event, 1.9 * self.event, self.every, ground.seconds, seed)
            one = replace(one, rate=rates)
        sources = ((one, ("D1",)), (mobile("s2", second, self.other_event), ("D2",)))
        out = self.detections * self.found
        parts = (
            Part("D1", self.states.get("D1", 0.0), out, ("F",)),
            Part("D2", self.states.get("D2", 0.0), out, ("F",)),
            Part("F", self.states.get("F", 0.0), out / 10, ("u",)),
        )
        made = random.Random(f"hosts {seed}")
        hosts = {each.name: made.choice(tree.network.brokers) for each in parts}
        limits = {}
        if self.limit < inf and self.know:
            routes = [Route((f"s{n}", f"D{n}", "F", "u"), self.limit) for n in (1, 2)]
            limits = local_limits(routes, {})
        consumer = mobile("u", asks, 0.0)
        return Scene(tree, sources, parts, consumer, hosts, ground.seconds, seed, limits, self.limit)


DENSITY = 1000 / (7700.0 * 3500.0)
"""Vehicles a square metre, as in the thesis; each tells its speed about once a second."""


@dataclass(frozen=True)
class Accident:
    """Speeds and changes of lanes around a driver, an operator for each, one that joins both, and the driver
    as consumer. ``state``: of the operator for speeds."""

    state: float = 0.0
    event: float = 60.0
    edge: float = 1000.0
    capture: Capture = "exact"

    def scene(self, ground: Ground, tree: Tree, seed: int) -> Scene:
        seen = DENSITY * self.edge**2 * self.event
        return _around(
            self, ground, tree, seed, {"speeds": seen, "lanes": seen / 10}, {"drops": 0.05, "changes": 0.5}
        )


@dataclass(frozen=True)
class Video:
    """Pictures of the cameras around a friend, an operator that keeps those with faces, one that recognises,
    and the one who looks. A camera each 100 m, a picture a second of ``event`` bytes each. ``state``: of the
    operator that keeps pictures with faces."""

    state: float = 0.0
    event: float = 10_000.0
    edge: float = 500.0
    capture: Capture = "exact"

    def scene(self, ground: Ground, tree: Tree, seed: int) -> Scene:
        seen = (self.edge / 100) ** 2 * self.event
        return _around(self, ground, tree, seed, {"cameras": seen}, {"faces": 0.1})


def _around(
    query: Accident | Video,
    ground: Ground,
    tree: Tree,
    seed: int,
    rates: Mapping[str, float],
    kept: Mapping[str, float],
) -> Scene:
    """``rates``: bytes a second of what is seen, by kind; ``kept``: by operator of each kind, which share it
    sends on. The first operator has the state. All begin at the leaf broker of the consumer."""
    learning, begin = ground.learning(tree), ground.begin
    (who,) = ground.drivers(seed, 1)
    names = list(kept)
    sources = tuple(
        (Mobile(kind, who, learning, begin, query.capture, rate, steady_rate(rate), query.edge), (name,))
        for (kind, rate), name in zip(rates.items(), names, strict=True)
    )
    outs = [rate * share for rate, share in zip(rates.values(), kept.values(), strict=True)]
    parts = [
        Part(name, query.state if n == 0 else 0.0, out, ("joined",))
        for n, (name, out) in enumerate(zip(names, outs, strict=True))
    ]
    parts.append(Part("joined", 0.0, sum(outs) / 10, ("u",)))
    consumer = Mobile("u", who, learning, begin, query.capture, 0.0, steady_rate(0.0))
    ((leaf, _),) = consumer.ends(0)
    hosts = {each.name: leaf for each in parts}
    return Scene(tree, sources, tuple(parts), consumer, hosts, ground.seconds, seed)
