"""Random networks to plan on: connected nodes, links of the paper's classes, Zipf sources, one sink."""

import random
from collections.abc import Sequence

from benchmarks.comet.networks import HIGH, LOW, MEDIUM, MINUTE, SIZES, Network
from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.patterns import And, Event, Pattern, Seq
from orchestrator.apps.comet.planning.ced_tree import build_tree
from orchestrator.apps.comet.planning.links import Link
from orchestrator.apps.comet.planning.problem import Request, tasks, world


def random_network(seed: int, nodes: int, events: int, *, times: Sequence[float] = (1.2, 8.0)) -> Network:
    """``times``: between which multiples of the fastest delay the tolerance is drawn."""
    rng = random.Random(f"comet/network/{seed}/{nodes}/{events}")
    names = [f"n{number:03d}" for number in range(nodes)]
    pairs = {(names[rng.randrange(max(0, i - 6), i)], names[i]) for i in range(1, nodes)}
    for _ in range(nodes // 4):
        first, second = sorted(rng.sample(names, 2))
        pairs.add((first, second))
    links = [
        Link(b, a, rng.choice([30.0, 150.0, 300.0]), 60.0, rng.choice([LOW, MEDIUM, HIGH]), 1.0)
        for a, b in sorted(pairs)
    ]
    places = rng.sample(names[1:], events) if events < nodes else rng.choices(names[1:], k=events)
    ranks = rng.sample(range(1, events + 1), events)
    fastest_rate = rng.choice([0.5, 1.0, 2.0]) / MINUTE
    exponent = rng.choice([0.7, 1.0, 1.5])
    sources = [
        EventSource(f"e{number}", place, fastest_rate / rank**exponent)
        for number, (place, rank) in enumerate(zip(places, ranks, strict=True), 1)
    ]
    window = rng.choice([30.0, 60.0, 120.0])
    parts = tuple(Event(each.name) for each in sources)
    pattern: Pattern = Seq(parts, window) if rng.random() < 1 / 3 else And(parts, window)
    given = world(links, sources, SIZES)
    request = Request(f"random {seed}", pattern, names[0], 0.0)
    fastest = build_tree(tasks(request, given)[0], given).fastest
    return Network(
        request.name, given, Request(request.name, pattern, names[0], fastest * rng.uniform(*times))
    )
