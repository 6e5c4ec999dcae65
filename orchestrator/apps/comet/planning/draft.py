"""A plan while it is being changed: tells what a change of one junction costs and how late it makes the
whole.
"""

from collections import ChainMap
from collections.abc import Mapping

from orchestrator.apps.comet.planning.ced_tree import CedTree, Junction
from orchestrator.apps.comet.planning.estimator import (
    Estimator,
    Plan,
    Steps,
    all_pushed,
    junction_delay,
    with_absences,
)


class Draft:
    """Begins with every input pushed to its junction (paper: a 2-state FSM everywhere)."""

    def __init__(self, estimator: Estimator, tree: CedTree, steps: Mapping[str, Steps] | None = None) -> None:
        self.estimator = estimator
        self.tree = tree
        self.steps = dict(steps) if steps else {j.node: all_pushed(j) for j in tree.junctions}
        self.pulled_absent: frozenset[str] = frozenset()
        self.junctions = {junction.node: junction for junction in tree.junctions}
        self._above: dict[str, Junction] = {}
        self.costs: dict[str, float] = {}
        self.delays: dict[str, float] = {}
        for junction in tree.junctions:
            for edge in junction.inputs:
                if edge.child is not None:
                    self._above[edge.child.node] = junction
            self.costs[junction.node] = estimator.junction_cost(junction, self.steps[junction.node])
            self.delays[junction.node] = junction_delay(junction, self.steps[junction.node], self.delays)

    @property
    def cost(self) -> float:
        absent = sum(
            self.estimator.absent_cost(edge, edge.name in self.pulled_absent) for edge in self.tree.absent
        )
        return sum(self.costs.values()) + absent

    @property
    def delay(self) -> float:
        return self._whole(self.delays[self.tree.root.node])

    def _whole(self, delay: float) -> float:
        if not self.tree.absent:
            return delay
        return with_absences(self.estimator, self.tree, self.pulled_absent, delay)

    def saving(self, node: str, steps: Steps) -> float:
        """What changing a junction's steps saves per second."""
        return self.costs[node] - self.estimator.junction_cost(self.junctions[node], steps)

    def delay_with(self, node: str, steps: Steps) -> float:
        """The delay of the whole plan, were a junction's steps changed."""
        changed = self._changed(node, steps)
        return self._whole(changed.get(self.tree.root.node, self.delays[self.tree.root.node]))

    def change(self, node: str, steps: Steps) -> None:
        self.delays.update(self._changed(node, steps))
        self.steps[node] = steps
        self.costs[node] = self.estimator.junction_cost(self.junctions[node], steps)

    def _changed(self, node: str, steps: Steps) -> dict[str, float]:
        """Delays that differ after the change: of the junction, and of those above it as far as it shows."""
        junction: Junction | None = self.junctions[node]
        changed: dict[str, float] = {}
        delays = ChainMap(changed, self.delays)
        while junction is not None:
            own = steps if junction.node == node else self.steps[junction.node]
            delay = junction_delay(junction, own, delays)
            if delay == self.delays[junction.node]:
                break
            changed[junction.node] = delay
            junction = self._above.get(junction.node)
        return changed

    def finished(self) -> Plan:
        return self.estimator.plan(self.tree, self.steps, self.pulled_absent)
