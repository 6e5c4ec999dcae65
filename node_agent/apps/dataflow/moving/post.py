"""Carries what roles of migrations say: to roles on this node, and over one link to each other node.

A node is believed about its own roles only, and about what these may say (``migration.live.claims``).
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec import structs

from node_agent.apps.base import Surroundings
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Moving
from node_agent.apps.dataflow.moving.frames import (
    BOOTS,
    CODEC,
    ENVELOPES,
    Envelope,
    Have,
    Incoming,
    NodeAdmission,
    Parts,
    encode,
)
from node_agent.apps.dataflow.moving.link import Connection, Link
from node_agent.apps.dataflow.moving.tuples import check_payloads
from node_agent.apps.tasks import Tasks
from node_agent.migration.live import claims, wire
from node_agent.migration.live.messages import Message
from node_agent.model.checked import Refused
from node_agent.ports import Address
from node_agent.transport.authentication import Digests
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair
from node_agent.transport.server import ConnectionServer

PORTS_APART = 512
"""From an application's own port."""
WINDOW_ITEMS, WINDOW_BYTES = 64, 512 * 1024

Take = Callable[[str, Message], Awaitable[None]]
"""Called with the sender, a role, and what it says."""


class Roles:
    """Who takes part in migrations of one operator, and on which node each is.

    Hosts have the names of their nodes, neighbours those of their replicas.
    """

    def __init__(self, plan: DeploymentPlan, moving: Moving) -> None:
        query = plan.query
        (self.replica,) = plan.of(moving.operator)
        (self.upstream,) = (r for name in query.upstream(moving.operator) for r in plan.of(name))
        self.sinks = tuple(r for name in query.downstream(moving.operator) for r in plan.of(name))
        self.moving = moving
        self.coordinator = f"{moving.operator}/coordinator"
        self.parties = claims.Parties(
            self.coordinator,
            frozenset(moving.hosts),
            frozenset({self.upstream.id}),
            frozenset(sink.id for sink in self.sinks),
        )
        self.nodes = {
            **{host: host for host in moving.hosts},
            **{each.id: each.node for each in (self.upstream, *self.sinks)},
            self.coordinator: moving.coordinator,
        }


class Said(NamedTuple):
    """What a role of another node says to one of this node, after all checks."""

    operator: str
    sender: str
    receiver: str
    message: Message


def opened(plan: DeploymentPlan, roles: Mapping[str, Roles], own: str, node: str, data: bytes) -> Said:
    """Reads an envelope that ``node`` sent to node ``own``. Raises Refused or Impossible, with one word."""
    envelope = ENVELOPES.decode(data)
    message = wire.decode(envelope.content)
    operator, sender, receiver, _ = structs.astuple(envelope)
    known = roles.get(operator)
    if known is None:
        raise Impossible("operator")
    if known.nodes.get(sender) != node:
        raise Impossible("sender")
    if known.nodes.get(receiver) != own:
        raise Impossible("receiver")
    wrong = claims.refusal(known.parties, sender, receiver, message) or check_payloads(
        plan, known.upstream, known.replica, known.sinks, message
    )
    if wrong is not None:
        raise Impossible(wrong)
    return Said(operator, sender, receiver, message)


class Post:
    """``roles``: those of each operator that moves."""

    def __init__(self, plan: DeploymentPlan, around: Surroundings, roles: dict[str, Roles]) -> None:
        self._plan, self._around, self._roles = plan, around, roles
        self._take: dict[tuple[str, str], Take] = {}
        self._put: dict[tuple[str, str], Callable[[str, Message], None]] = {}
        self._peers = frozenset(node for each in roles.values() for node in each.nodes.values()) - {
            around.node
        }
        self._links: dict[str, Link] = {}
        self._incoming: dict[str, Incoming] = {}
        self._distrusted: dict[str, str] = {}
        self._digests = Digests()
        self._limits = structs.replace(around.links, window_items=WINDOW_ITEMS, window_bytes=WINDOW_BYTES)
        self._tasks = Tasks(around.fail)
        self._server = ConnectionServer[Parts, Have](
            around.port,
            around.credentials,
            CODEC,
            NodeAdmission(around.node, self._peers),
            {node: around.addresses[node].host for node in self._peers},
            self._limits,
            self._digests,
            around.refusals,
            self._receive,
            partial(around.fail, "incoming migration"),
        )

    def attach(self, operator: str, name: str, take: Take, put: Callable[[str, Message], None]) -> None:
        """A role of this node. ``take`` waits until it has room, ``put`` does not."""
        self._take[operator, name] = take
        self._put[operator, name] = put

    async def open(self, port: int) -> None:
        """Raises PortError."""
        await self._server.open(port + PORTS_APART)

    async def close(self) -> None:
        self._tasks.cancel()
        await self._tasks.wait()
        await self._server.close()

    def send(self, operator: str, sender: str, receiver: str, message: Message) -> None:
        node = self._roles[operator].nodes.get(receiver)
        if node is None:
            return  # a name that a neighbour made up leads nowhere
        if node == self._around.node:
            put = self._put.get((operator, receiver))
            if put is not None:
                put(sender, message)
            return
        self._link(node).add(encode(Envelope(operator, sender, receiver, wire.encode(message))))

    def silent_for(self, node: str) -> float:
        """For how many seconds a node that something was sent to has not answered."""
        link = self._links.get(node)
        since = None if link is None else link.silent_since
        return 0.0 if since is None else self._now() - since

    def _now(self) -> float:
        return self._around.port.now_ns() / 1e9

    def _link(self, node: str) -> Link:
        link = self._links.get(node)
        if link is None:
            link = self._links[node] = Link(self._around.boot, partial(self._connect, node), self._now)
            self._tasks.spawn(f"migration link to {node}", link.run())
        return link

    def _connect(self, node: str, link: Link) -> Connection:
        around, at = self._around, self._around.addresses[node]
        return Connection(
            around.port,
            Address(at.host, at.port + PORTS_APART),
            around.credentials.to(node, "connection"),
            Pair(around.node, node),
            CODEC,
            self._limits,
            self._digests,
            around.refusals,
            partial(around.fail, f"migration link to {node}"),
            link.said,
            link.lost,
            link.silent,
            link.back,
        )

    async def _receive(self, pair: Pair, batch: Parts) -> None:
        """Takes what a node sent, in order, and says what is here."""
        sender, again = pair.sender, False
        if sender in self._distrusted:
            raise Impossible(self._distrusted[sender])
        incoming = self._incoming.setdefault(sender, Incoming())
        for part in batch.parts:
            self._link(sender).peer_started(part.session // BOOTS)
            again, data = incoming.take(part)
            if again:
                break
            if data is not None:
                await self._open_envelope(sender, data)
        have = Have(self._around.boot, incoming.session, incoming.number, again)
        self._server.send_message(pair, have)

    async def _open_envelope(self, node: str, data: bytes) -> None:
        try:
            said = opened(self._plan, self._roles, self._around.node, node, data)
        except (Refused, Impossible) as error:
            raise self._distrust(node, str(error)) from error
        await self._take[said.operator, said.receiver](said.sender, said.message)

    def _distrust(self, node: str, why: str) -> Impossible:
        """Nothing of it can be taken back, so nothing may follow it."""
        self._distrusted[node] = f"{node} said what cannot be: {why}"
        return Impossible(self._distrusted[node])
