"""The paper's example (Figure 1): four events at V4 to V7, junctions V2 and V3, the sink V1.

The link numbers of the figure are lost; these are ours. The text has the rate of pe4, once in 8 s, and the
window of 2 s.
"""

from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.grammar import parse
from orchestrator.apps.comet.planning.ced_tree import CedTree, build_tree
from orchestrator.apps.comet.planning.estimator import Estimator
from orchestrator.apps.comet.planning.links import Link, Sizes
from orchestrator.apps.comet.planning.problem import Request, World, tasks, world

SIZES = Sizes(event=1.0, request=0.1)
FAST = 1e9
"""Bytes per second: nothing has to be waited for but disconnections."""
LINKS = (
    Link("V2", "V1", 10.0, 5.0, FAST, cost=2.0),
    Link("V3", "V1", 10.0, 5.0, FAST, cost=3.0),
    Link("V4", "V2", 4.0, 5.0, FAST, cost=1.0),
    Link("V5", "V2", 4.0, 5.0, FAST, cost=1.0),
    Link("V6", "V3", 4.0, 5.0, FAST, cost=1.0),
    Link("V7", "V3", 4.0, 5.0, FAST, cost=1.0),
)
SOURCES = (
    EventSource("pe1", "V4", 1.0),
    EventSource("pe2", "V5", 1 / 2),
    EventSource("pe3", "V6", 1 / 4),
    EventSource("pe4", "V7", 1 / 8),
)
PATTERN = "and(pe1, pe2, pe3, pe4; 2)"


def example() -> World:
    return world(LINKS, SOURCES, SIZES)


def planned(
    tolerance: float, text: str = PATTERN, given: World | None = None, sink: str = "V1"
) -> tuple[Estimator, CedTree]:
    known = given or example()
    task = tasks(Request("ce", parse(text), sink, tolerance), known)[0]
    return Estimator(task, known), build_tree(task, known)
