"""What planned migration is compared with: operators that never move, and operators that move greedily.

Greedy operators look every few seconds where their streams would be shortest now, stop, copy their state and
go on there. They know nothing of what comes and do not count what copying costs.
"""

from node_agent.migration.costs import costs
from node_agent.migration.plan import TOLERANCE
from node_agent.migration.situation import Network, Situation


def greedy_host(situation: Situation) -> str:
    """Where placement is cheapest in the first step; of equal brokers, where the operator is."""
    placing = costs(situation).placing[0]
    targets, open_ones = situation.targets(), situation.may_run()[0]
    cost, host = min((cost, name) for cost, name in zip(placing, targets, strict=True) if name in open_ones)
    stays = placing[targets.index(situation.host)]
    return situation.host if stays <= cost * (1 + TOLERANCE) else host


def stop_and_copy_seconds(state: float, network: Network, source: str, target: str) -> float:
    """How long an operator stands still that stops, copies its state and goes on."""
    if source == target:
        return 0.0
    bandwidth = network.bandwidth[network.number[source]][network.number[target]]
    return network.between(source, target) + state / bandwidth
