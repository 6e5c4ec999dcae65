"""The exchanges of all replicas of a node. Passes messages within the node at once, and sends those for
another node together.
"""

import asyncio
from collections.abc import Callable, Sequence

from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.model.routing_messages import Notice
from node_agent.apps.dataflow.switching.exchange import Exchange

SendNotices = Callable[[str, Sequence[Notice]], None]


class Exchanges:
    """``boot`` counts the starts of the agent; ``send`` sends notices to another node."""

    def __init__(self, config: DataflowConfig, node: str, boot: int, send: SendNotices) -> None:
        plan, switching = config.plan, config.switching
        self._node = node
        self._node_of = {replica.id: replica.node for replica in plan.replicas}
        self._send = send
        self._exchanges = {
            own.id: Exchange(plan, own, switching.rule.policy, boot, switching.mode) for own in plan.on(node)
        }

    def of(self, replica: str) -> Exchange:
        return self._exchanges[replica]

    @staticmethod
    def now_ns() -> int:
        """Returns the time on a clock that nobody sets, for ages."""
        return round(asyncio.get_running_loop().time() * 1e9)

    @property
    def due_ns(self) -> int:
        """When the next message of one of them is due."""
        return min(exchange.due_ns for exchange in self._exchanges.values())

    def receive(self, notice: Notice) -> bool:
        """Takes a message from another node. Returns whether it is new; then something may be due at once."""
        exchange = self._exchanges.get(notice.to)
        if exchange is None or not exchange.received(notice.message, self.now_ns()):
            return False
        self.send_due()
        return True

    def send_due(self) -> None:
        """Sends whatever is due. A message from one replica of this node may make a message of another one
        due.
        """
        now_ns = self.now_ns()
        others: dict[str, list[Notice]] = {}
        while due := [notice for each in self._exchanges.values() for notice in each.updates_due(now_ns)]:
            for notice in due:
                node = self._node_of[notice.to]
                if node == self._node:
                    self._exchanges[notice.to].received(notice.message, now_ns)
                else:
                    others.setdefault(node, []).append(notice)
        for node, notices in others.items():
            self._send(node, notices)
