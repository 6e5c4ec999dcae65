"""Makes an operator's plan: time graph, shortest path, and what must be copied when (Alg. 4.1)."""

from typing import NamedTuple

from node_agent.migration.costs import Costs, plan_cost
from node_agent.migration.plan import Expected, Plan, Steps
from node_agent.migration.shortest_path import Path, shortest_path
from node_agent.migration.situation import Operator, Situation
from node_agent.migration.time_graph import time_graph


class Case(NamedTuple):
    """What neighbours may do, and how likely that is; ``costs``: of placements then."""

    chance: float
    situation: Situation
    costs: Costs


class Created(NamedTuple):
    """A plan, how many latency limits it breaks over all steps and streams, its cost, and what other
    placements would cost.

    ``cases``: of an uncertain plan, which is carried out by choosing between its sequences, what it was made
    for. Limits broken and costs are expected ones then.
    """

    plan: Plan
    broken: float
    cost: float
    costs: Costs
    cases: tuple[Case, ...] = ()


def create_plan(situation: Situation) -> Created:
    graph = time_graph(situation)
    path = shortest_path(graph)
    plan = plan_of(path, situation.operator, situation.world.steps)
    return Created(plan, *plan_cost(situation, path.hosts, graph.costs), graph.costs)


def plan_of(path: Path, operator: Operator, steps: Steps) -> Plan:
    """Copying of immutable state begins with the migration. Of each input, events are copied from where the
    operator's window will begin when it goes on at the new host."""
    begins = dict(path.arrivals)
    stages = []
    for k, host in enumerate(path.hosts):
        if k in begins:
            buffers = tuple((name, steps.times[k] - window) for name, window in operator.windows)
            stages.append((Expected((host,), (operator.rate,), steps.times[begins[k]], buffers),))
        else:
            stages.append((Expected((host,), (operator.rate,)),))
    return Plan(steps, tuple(stages))


def hosts_at(plan: Plan, steps: Steps) -> tuple[str, ...]:
    """The hosts of a certain plan at other steps than its own; after its end it stays at the last one."""
    hosts = plan.hosts()
    return tuple(hosts[plan.steps.index(t)] for t in steps.times)
