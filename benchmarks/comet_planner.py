"""Measures how long a plan takes for networks of 50, 200 and 500 nodes: processor time from the request to
the plan.

A tenth or a fifth of the nodes are sources of one pattern, ``and`` or ``seq``. ``seconds``: the longest for
each size.
"""

import time
from collections.abc import Iterator

from benchmarks.comet.random_networks import random_network
from benchmarks.radio.report import Row, main
from orchestrator.apps.comet.planning.together import plan_requests

SIZES = (50, 200, 500)
SEEDS = range(1, 4)


def rows() -> Iterator[Row]:
    for nodes in SIZES:
        for sources in (nodes // 10, nodes // 5):
            for seed in SEEDS:
                network = random_network(seed, nodes, sources)
                begin = time.process_time()
                (plan,) = plan_requests([network.request], network.world).plans
                yield {
                    "nodes": nodes,
                    "sources": sources,
                    "operator": type(network.request.pattern).__name__.lower(),
                    "junctions": len(plan.tree.junctions),
                    "seconds": time.process_time() - begin,
                }


def measure() -> tuple[Row, list[Row]]:
    found = list(rows())
    longest = {size: max(row["seconds"] for row in found if row["nodes"] == size) for size in SIZES}
    return {"benchmark": "comet_planner", "seconds": longest}, found


if __name__ == "__main__":
    main("comet_planner: processor time of a plan", measure)
