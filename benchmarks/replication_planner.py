"""Compares what `replicas: auto` derives for the paper's networks with the throughput that the paper
measured.

``two``, ``three``: value of two and three replicas over that of one, as the planner expects it; ``paper_…``:
the paper's ratios of throughput, if it states them. ``settle_s``: how long routing takes to recover from a
lost link (switching period included); 12 s by its authors' later configuration, 22 s by olsrd's defaults.
"""

from collections.abc import Iterator

from benchmarks.radio.report import Row, main
from orchestrator.apps.dataflow.planning.drawn_networks import Placing
from orchestrator.apps.dataflow.planning.replication import Prospect, advise
from orchestrator.apps.dataflow.spec.placement import PLACEMENT_POLICIES

EMULATED = {  # nodes, side in m, m/s: the paper's ratios
    (25, 1200.0, 1.0): (1.3, 1.4),
    (25, 1200.0, 5.0): (1.6, 1.8),
    (25, 1200.0, 10.0): (2.1, 2.6),
    (50, 1697.0, 5.0): (1.8, 2.3),
}
EMULATED_RANGE_M, SIMULATED_RANGE_M = 450.0, 625.0


def rows() -> Iterator[Row]:
    for (nodes, side, speed), paper in EMULATED.items():
        for settle_s in (12.0, 22.0):
            yield row(Prospect(nodes, side, side, EMULATED_RANGE_M, speed, at_random(2), settle_s), paper)
    for side in (1500.0, 3135.0):
        yield row(Prospect(25, side, side, SIMULATED_RANGE_M, 4.0, at_random(3), 6.0), (None, None))


def at_random(operators: int) -> Placing:
    return Placing(PLACEMENT_POLICIES["random"], (0.0,) * (operators + 2), 1, stays=False)


def row(prospect: Prospect, paper: tuple[float | None, float | None]) -> Row:
    advice = advise(prospect)
    two = 1.0 + advice.gains[0]
    return {
        "nodes": prospect.nodes,
        "side_m": prospect.width_m,
        "speed": prospect.speed,
        "settle_s": prospect.settle_s,
        "replicas": advice.replicas,
        "two": two,
        "three": two * (1.0 + advice.gains[1]) if len(advice.gains) > 1 else None,
        "paper_two": paper[0],
        "paper_three": paper[1],
    }


if __name__ == "__main__":
    main("replication_planner: k derived for the paper's networks", lambda: ({}, list(rows())))
