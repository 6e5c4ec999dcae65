"""The datagrams in which routers report costs to each other: between any two nodes, without a connection.

Routers repeat every notice within a second or so, and a late notice is useless. So nothing is sent again,
nothing waits behind tuples, and replicas that are not in use need no open connection. A node is believed
about its own replicas only. Within an epoch (see ``transport.datagrams``) the numbers of the messages show
which is newer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import structs

from node_agent.apps.dataflow.model.routing_messages import CostReport, Message, Notice
from node_agent.linkstate.overhead import AGENTS_OWN
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import RoutingOverhead
from node_agent.ports import Address, Port
from node_agent.transport.authentication import Credentials
from node_agent.transport.datagrams import Datagrams

VERSION = 2
PROTOCOL = "exchange"
"""The names under which they are counted."""
LARGEST_NUMBER, LARGEST_COST = 2**53, 1e15

OnNotice = Callable[[Notice], None]


def refusal(notices: Sequence[Notice], node: str, node_of: Mapping[str, str]) -> str | None:
    """Return why ``node`` is not believed; None if it is. ``node_of``: the node of each replica."""
    for notice in notices:
        message = notice.message
        if node_of.get(message.sender) != node:
            return "sender"
        if not all(0 <= number <= most for number, most in _numbers(message)):
            return "impossible"
    return None


def _numbers(message: Message) -> Iterator[tuple[float, float]]:
    """Each number with its maximum. NaN is refused, because it compares with nothing."""
    yield message.number, LARGEST_NUMBER
    if isinstance(message, CostReport):
        costs = [message.cost]
    else:
        yield message.queue, LARGEST_NUMBER
        costs = [message.to_sinks, message.aggregate]
    yield from ((cost, LARGEST_COST) for cost in costs if cost is not None)


class Notices:
    """Sends and receives the notices of one node.

    ``node_of``: the node of each replica of the plan. ``on_notice`` takes what is believed; ``refusals``
    counts what is not.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        addresses: Mapping[str, Address],
        node_of: Mapping[str, str],
        refusals: Refusals,
        on_notice: OnNotice,
    ) -> None:
        self._on_notice = on_notice
        self._latest: dict[str, Sequence[Notice]] = {}
        self._datagrams = Datagrams(
            port,
            credentials,
            addresses,
            refusals,
            Notice,
            VERSION,
            lambda node, notices: refusal(notices, node, node_of),
            self._take,
            self._repeat,
        )

    async def open(self, port: int) -> None:
        """Listen. Raise PortError."""
        await self._datagrams.open(port)

    def send(self, node: str, notices: Sequence[Notice]) -> None:
        """Send ``notices`` in as few datagrams as possible. They may be lost without notice."""
        self._latest[node] = notices
        self._datagrams.send(node, notices)

    async def read(self) -> tuple[RoutingOverhead, ...]:
        """Return what was sent since the start, with IP and UDP headers, without what other nodes forward."""
        sent = self._datagrams
        return (RoutingOverhead(PROTOCOL, AGENTS_OWN, sent.sent, sent.sent_bytes, 0, 0),)

    def close(self) -> None:
        """May be repeated."""
        self._datagrams.close()

    def _repeat(self, node: str) -> None:
        """Send the latest notices again: ``node`` has restarted and knows nothing."""
        if node in self._latest:
            self._datagrams.send(node, self._latest[node])

    def _take(self, starts: int, notices: Sequence[Notice]) -> None:
        # If several notices of one replica to another are in a datagram, the last one counts.
        for notice in {(notice.to, notice.message.sender): notice for notice in notices}.values():
            self._on_notice(Notice(notice.to, structs.replace(notice.message, boot=starts)))
