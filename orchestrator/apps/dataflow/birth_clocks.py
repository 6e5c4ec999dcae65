"""Finds the clock that the capture times (births) of a dataflow's tuples were read from."""

from collections.abc import Mapping

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.clocks.correction import Pieces, most_ahead


def birth_clocks(clocks: Mapping[str, Pieces], plan: DeploymentPlan) -> dict[str, Pieces]:
    """Returns, by origin of tuples, the clock that their births were read from.

    The result of a window or join has the latest birth of its inputs. If these come from several nodes, the
    record does not say whose birth it is: most likely that of the clock that is most ahead.
    """
    node_of = {replica.operator: replica.node for replica in plan.replicas}
    sources = _sources(plan)
    found: dict[str, Pieces] = {}
    for operator, origins in plan.query.origins().items():
        for origin in origins:
            # The first operator that sends a stream has made it.
            if origin not in found:
                found[origin] = most_ahead([clocks.get(node_of[name], ()) for name in sources[operator]])
    return found


def _sources(plan: DeploymentPlan) -> dict[str, tuple[str, ...]]:
    """By operator, the sources that feed it."""
    found: dict[str, tuple[str, ...]] = {}
    for name in plan.query.topological():
        after = plan.query.operator(name).after
        found[name] = tuple(dict.fromkeys(s for up in after for s in found[up])) if after else (name,)
    return found
