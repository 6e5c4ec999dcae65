"""What using a node costs beyond its links: CPU load, battery, or whatever an experiment sets."""

from collections.abc import Mapping

from msgspec.structs import replace

from node_agent.model.cost_graph import CostGraph


def with_node_costs(graph: CostGraph, node_costs: Mapping[str, float]) -> CostGraph:
    """Adds to every link the cost of the node that it leads to, in the graph's unit."""
    if not node_costs:
        return graph
    costs = {
        sender: {receiver: cost + node_costs.get(receiver, 0.0) for receiver, cost in row.items()}
        for sender, row in graph.costs.items()
    }
    return replace(graph, costs=costs)
