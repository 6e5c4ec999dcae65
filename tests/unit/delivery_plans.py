"""Plans and schedules of faults for delivery, drawn by seed, and what must hold after each."""

from collections.abc import Callable
from functools import cache
from math import inf
from random import Random

from msgspec import Struct

from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow, Reliability
from node_agent.apps.dataflow.delivery.spill import Spill
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow
from tests.unit.delivery_network import MILLISECOND, Faults, Graph, Kind, Network, Step

SOURCE, SINK = Step("source"), "sink"
WINDOWS: dict[str, CountWindow | TimeWindow] = {
    "tumbling": CountWindow(5, 5),
    "sliding": CountWindow(6, 2),
    "hopping": CountWindow(2, 5),
    "time": TimeWindow(40 * MILLISECOND, 40 * MILLISECOND),
    "sliding time": TimeWindow(60 * MILLISECOND, 20 * MILLISECOND),
}
JOINS: dict[str, Kind] = {"tau": SameTau(), "time": WINDOWS["time"], "sliding time": WINDOWS["sliding time"]}


def chain(*kinds: Kind) -> Graph:
    graph = {"s": SOURCE}
    for number, kind in enumerate(kinds):
        graph[f"o{number}"] = Step(kind, (list(graph)[-1],))
    return {**graph, "z": Step(SINK, (list(graph)[-1],))}


def _plans() -> dict[str, Graph]:
    plans: dict[str, Graph] = {
        "map": chain("map"),
        "two maps": chain("map", "map"),
        "filter, map, flat-map": chain("filter", "map", "flat_map"),
        "flat-map, filter": chain("flat_map", "filter"),
        "fan-out": {
            "s": SOURCE,
            "a": Step("map", ("s",)),
            "b": Step("filter", ("a",)),
            "y": Step(SINK, ("a",)),
            "z": Step(SINK, ("b",)),
        },
        "fan-out at the source": {
            "s": SOURCE,
            "a": Step("map", ("s",)),
            "b": Step("flat_map", ("s",)),
            "y": Step(SINK, ("a",)),
            "z": Step(SINK, ("b",)),
        },
        "union": {"s": SOURCE, "t": SOURCE, "a": Step("map", ("s", "t")), "z": Step(SINK, ("a",))},
        "diamond": {
            "s": SOURCE,
            "a": Step("map", ("s",)),
            "b": Step("filter", ("s",)),
            "j": Step(SameTau(), ("a", "b")),
            "z": Step(SINK, ("j",)),
        },
        "window to two": {
            "s": SOURCE,
            "w": Step(CountWindow(4, 2), ("s",)),
            "b": Step("map", ("w",)),
            "y": Step(SINK, ("w",)),
            "z": Step(SINK, ("b",)),
        },
        "windows of windows": chain(CountWindow(4, 2), CountWindow(3, 1)),
        "time windows of windows": chain(
            TimeWindow(20 * MILLISECOND, 20 * MILLISECOND), TimeWindow(100 * MILLISECOND, 50 * MILLISECOND)
        ),
    }
    for name, rule in JOINS.items():
        plans[f"join by {name} of windows"] = {
            "s": SOURCE,
            "t": SOURCE,
            "v": Step(CountWindow(3, 2), ("s",)),
            "w": Step(WINDOWS["time"], ("t",)),
            "j": Step(rule, ("v", "w")),
            "z": Step(SINK, ("j",)),
        }
    for name, window in WINDOWS.items():
        plans[f"{name} after filter"] = chain("filter", window)
        plans[f"{name} before map"] = chain(window, "map")
    for name, rule in JOINS.items():
        plans[f"join by {name}"] = {
            "s": SOURCE,
            "t": SOURCE,
            "j": Step(rule, ("s", "t")),
            "z": Step(SINK, ("j",)),
        }
        plans[f"join by {name} of operators"] = {
            "s": SOURCE,
            "t": SOURCE,
            "a": Step("map", ("s",)),
            "b": Step("filter", ("t",)),
            "j": Step(rule, ("a", "b")),
            "z": Step(SINK, ("j",)),
        }
    return plans


PLANS = _plans()


class Schedule(Struct, frozen=True):
    plan: str
    replicas: int
    count: int
    seed: int
    level: Reliability
    limits: DeliveryLimits
    faults: Faults

    def run(self, slow_source: bool = True, make_spill: Callable[[], Spill] | None = None) -> Network:
        network = Network(
            PLANS[self.plan],
            self.replicas,
            self.count,
            self.seed,
            self.level,
            self.limits,
            self.faults,
            slow_source,
            make_spill,
        )
        network.run()
        return network


def schedule(seed: int, level: Reliability, overflow: Overflow = Overflow.BLOCK) -> Schedule:
    draw = Random(seed)
    tight = overflow is not Overflow.BLOCK or draw.random() < 0.5
    limits = DeliveryLimits(
        items=24 if tight else 4096,
        in_flight=draw.choice((3, 10)) if tight else 64,
        overflow=overflow,
        retry=0.1,
        unacknowledged=draw.choice((0.5, 2.0)),
    )
    faults = Faults(
        crashes=draw.choice((0, 2, 6)),
        breaks=draw.choice((0, 5, 20)),
        partitions=draw.choice((0, 2, 4)),
        steer=draw.choice((inf, 0.5, 3.0)),
        seconds=20.0,
    )
    return Schedule(
        draw.choice(list(PLANS)),
        draw.choice((1, 2, 2, 3, 3)),
        draw.choice((5, 30, 80)),
        seed,
        level,
        limits,
        faults,
    )


@cache
def calm_run(plan: str, count: int) -> Network:
    """One replica of each operator, and nothing goes wrong."""
    network = Network(PLANS[plan], 1, count, 0)
    network.run()
    assert not network.unfinished() and not network.drops
    assert set(network.delivered.values()) <= {1}
    return network


class Outcome(Struct, frozen=True):
    """What differs from the calm run, by (sink, stream, position).

    ``unexplained``: emitted tuples that no result was made of, though one should have, for no known reason.
    """

    lost: tuple[tuple[str, str, int], ...]
    twice: tuple[tuple[str, str, int], ...]
    wrong: tuple[tuple[str, str, int], ...]
    unexplained: tuple[tuple[str, int], ...]


def outcome(network: Network, plan: str, count: int) -> Outcome:
    calm = calm_run(plan, count)
    expected, unused = calm.results, set(calm.unaccounted())
    return Outcome(
        tuple(key for key in expected if key not in network.results),
        tuple(key for key, times in network.delivered.items() if times > 1),
        tuple(key for key, value in network.results.items() if expected.get(key) != value),
        tuple(item for item in network.unaccounted() if item not in unused),
    )


NOTHING_WRONG = Outcome((), (), (), ())
