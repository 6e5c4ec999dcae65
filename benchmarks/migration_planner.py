"""Measures how long an operator takes to make a plan: time graph and shortest path.

Processor time, for 10 to 40 brokers and 100 steps of 1 s, with three neighbours whose plans move each few
steps. ``milliseconds``: the median for 40 brokers, over networks in which copying takes 0 to 8 steps.
"""

import random
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.radio.report import Row, main
from node_agent.migration.create import create_plan
from node_agent.migration.plan import certain_plan, even_steps
from node_agent.migration.shortest_path import shortest_path
from node_agent.migration.situation import Neighbour, Operator, Situation, World, network
from node_agent.migration.time_graph import time_graph

BROKERS, STEPS, SEEDS = (10, 20, 40), 100, range(1, 10)
NEIGHBOURS = ("source", "other", "next")


def situation(seed: int, brokers: int) -> Situation:
    made = random.Random(seed)
    names = tuple(f"b{n}" for n in range(brokers))
    spots = {name: (made.random(), made.random()) for name in names}

    def apart(a: str, b: str) -> float:
        return abs(spots[a][0] - spots[b][0]) + abs(spots[a][1] - spots[b][1])

    steps = even_steps(0.0, 1.0, STEPS)
    plans = {}
    for each in NEIGHBOURS:
        hosts = [made.choice(names)]
        while len(hosts) < STEPS:
            hosts.append(made.choice(names) if made.random() < 0.1 else hosts[-1])
        plans[each] = certain_plan(steps, hosts, made.uniform(50, 250))
    net = network(names, apart, lambda a, b: made.choice([1000.0, 2000.0]))
    neighbours = tuple(Neighbour(each, each != "next") for each in NEIGHBOURS)
    operator = Operator("detect", made.uniform(0, 8000), 100.0, neighbours)
    return Situation(operator, names[0], World(steps, net, names), plans)


def rows() -> Iterator[Row]:
    for brokers in BROKERS:
        for seed in SEEDS:
            given = situation(seed, brokers)
            begin = time.process_time()
            created = create_plan(given)
            took = time.process_time() - begin
            graph = time_graph(given)
            begin = time.process_time()
            shortest_path(graph)
            searched = time.process_time() - begin
            hosts = created.plan.hosts()
            yield {
                "brokers": brokers,
                "steps": STEPS,
                "vertices": graph.size(),
                "migrations": sum(a != b for a, b in pairwise(hosts)),
                "milliseconds": 1000 * took,
                "of_that_search": 1000 * searched,
            }


def measure() -> tuple[Row, list[Row]]:
    found = list(rows())
    largest = [row["milliseconds"] for row in found if row["brokers"] == BROKERS[-1]]
    figures = {"milliseconds": statistics.median(largest), "longest": max(largest)}
    return {"benchmark": "migration_planner", **figures}, found


if __name__ == "__main__":
    main("migration_planner: processor time of a plan", measure)
