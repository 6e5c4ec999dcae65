"""Situations around moving objects on one node: a broker or a client over Rove's connections.

Between two nodes messages arrive once and in order, however often connections break. A broker that has too
much takes nothing from clients, which then wait with what they see next; if that does not help it takes
nothing at all. What an agent keeps is not written down: one that was killed and started again is silent, and
queries that need it stall. Nothing wrong is delivered.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from node_agent.apps.base import AppKind, Application, AppStatus, AppUnusable, Surroundings
from node_agent.apps.mcep.claims import Claims
from node_agent.apps.mcep.config import InterestConfig, deployment_of, nodes_of, problems
from node_agent.apps.mcep.frames import CODEC, Have, Items, NodeAdmission, pieces
from node_agent.apps.mcep.link import Link, Sender
from node_agent.apps.mcep.messages import Said, Sent
from node_agent.apps.mcep.metrics import METRIC_KINDS
from node_agent.apps.mcep.model import McepError
from node_agent.apps.mcep.roles import BrokerRole, ClientRole
from node_agent.apps.mcep.situations import SENSED
from node_agent.apps.mcep.telemetry import (
    NODE,
    RECORDS,
    InterestLink,
    InterestStalled,
    link,
    peers_of,
    sensor,
)
from node_agent.apps.mcep.wire import decode
from node_agent.apps.tasks import Tasks
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.checked import Refused
from node_agent.transport.authentication import Digests
from node_agent.transport.errors import Impossible
from node_agent.transport.messages import Pair
from node_agent.transport.server import ConnectionServer

NS = 1e9
TICK_S = 0.25
FULL, TOO_FULL = 1.0, 4.0
STALLED_S, STALLED_READINGS = 5.0, 3
"""Without progress for so long, and so many readings of clients, a broker says what it waits for."""
NO_ROOM = "there is no room for more of what clients see: allow more (room:), or ask for less history"
RESTARTED = "the agent was started again, and what it kept is lost: queries that need this node stall"


class Bystander:
    """An ``Application`` on a node that is neither a broker nor a client: it does nothing."""

    async def start(self) -> None:
        pass

    def open(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def sample(self) -> None:
        pass

    def status(self) -> AppStatus:
        return AppStatus(True)

    def overheads(self) -> Sequence[OverheadSource]:
        return ()


class Interest:
    """An ``Application`` on a broker or a client."""

    def __init__(self, config: InterestConfig, around: Surroundings) -> None:
        self._config, self._around = config, around
        self._tasks = Tasks(around.fail)
        self._is_broker = config.node in config.settings.areas
        self._role: BrokerRole | ClientRole
        try:
            deployment = deployment_of(config.settings)
            broker = partial(BrokerRole, tick_s=TICK_S)
            self._role = (broker if self._is_broker else ClientRole)(config, around.record)
        except (McepError, ValueError) as error:
            raise AppUnusable(str(error)) from error
        self._peers = frozenset(peers_of(config))
        self._claims = Claims(config.node, deployment)
        self._digests = Digests()
        self._links: dict[str, Link] = {}
        self._recorded: dict[str, tuple[int, ...]] = {}
        """By node, what was recorded last of its link."""
        self._taken: dict[str, int] = {}
        """By node, the number of the last message that was taken."""
        self._distrusted: dict[str, str] = {}
        self._room = asyncio.Event()
        self._server = ConnectionServer[Items, Have](
            around.port,
            around.credentials,
            CODEC,
            NodeAdmission(config.node, self._claims),
            {node: at.host for node, at in around.addresses.items() if node != around.node},
            around.links,
            self._digests,
            around.refusals,
            self._receive,
            partial(around.fail, "connection of a node"),
        )
        self._opened_ns: int | None = None
        self._reason = ""
        """Why nothing goes on, as it was told last."""
        self._progress: tuple[float, int] = (0.0, 0)
        """How far a broker was, and since when."""
        self._is_lost = around.boot > 1
        self._started = self._stopped = False

    async def start(self) -> None:
        around = self._around
        if self._is_lost:
            self._tell(RESTARTED)
            return
        await self._server.open(around.addresses[around.node].port)
        self._started = True
        self._progress = 0.0, around.port.now_ns()
        if isinstance(self._role, BrokerRole):
            self._tasks.spawn("clock", self._keep_time(self._role))

    def open(self) -> None:
        if self._opened_ns is not None or not self._started:
            return
        self._opened_ns = self._around.port.now_ns()
        if isinstance(self._role, ClientRole):
            self._tasks.spawn("drive", self._drive(self._role, self._opened_ns))

    async def stop(self) -> None:
        self._stopped = True
        self._tasks.cancel()
        await self._server.close()
        await self._tasks.wait()

    def sample(self) -> None:
        if self._is_lost:
            return
        self._role.sample()
        for name, each in self._links.items():
            counts = each.messages, each.bytes, each.connections, each.waiting
            if self._recorded.get(name) != counts:
                self._recorded[name] = counts
                self._around.record(InterestLink(link(name), name, *counts))
        if self._started and not self._stopped:
            self._look_for_stalls()

    def status(self) -> AppStatus:
        return AppStatus(True, () if self._is_broker else tuple(map(sensor, SENSED)))

    def overheads(self) -> Sequence[OverheadSource]:
        return ()

    def _send(self, sent: Iterable[Sent]) -> None:
        for to, said in sent:
            if to in self._peers:
                for piece in pieces(said):
                    self._link(to).add(piece)

    def _link(self, to: str) -> Link:
        found = self._links.get(to)
        if found is None:
            found = self._links[to] = Link(to, self._connect, self._arrived)
            self._tasks.spawn(f"link to {to}", found.run())
        return found

    def _connect(self, to: Link) -> Sender:
        around = self._around
        return Sender(
            around.port,
            around.addresses[to.to],
            around.credentials.to(to.to, "connection"),
            Pair(around.node, to.to),
            CODEC,
            around.links,
            self._digests,
            around.refusals,
            partial(around.fail, f"connection to {to.to}"),
            to.said,
            to.lost,
        )

    def _arrived(self, to: str, said: Said) -> None:
        self._send(self._role.arrived(to, said))
        self._room.set()

    async def _receive(self, pair: Pair, batch: Items) -> None:
        """Takes what a node sent, in order, and says what is here."""
        sender, again = pair.sender, False
        await self._wait_for_room(sender)
        for item in batch.items:  # without a pause: an older connection of this node may still be read
            taken = self._taken.get(sender, 0)
            if item.number > taken + 1:
                again = True
                break
            if item.number == taken + 1:
                self._take(sender, item.said)
                self._taken[sender] = item.number
        self._server.send_message(pair, Have(self._taken.get(sender, 0), again))

    def _take(self, sender: str, data: bytes) -> None:
        if sender in self._distrusted:
            raise Impossible(self._distrusted[sender])
        try:
            said = decode(data)
            wrong = self._claims.refusal(sender, said)
            if wrong is not None:
                raise Impossible(f"{sender} cannot say this: {wrong}")
            self._send(self._role.take(sender, said))
        except (Refused, McepError) as error:
            # Nothing of it can be taken back, so nothing may follow it.
            self._distrusted[sender] = f"{sender} said what cannot be: {error}"
            self._tell(self._distrusted[sender])
            raise Impossible(self._distrusted[sender]) from error

    async def _wait_for_room(self, sender: str) -> None:
        """Brokers always hear each other, or they could wait for each other forever."""
        if not isinstance(self._role, BrokerRole):
            return
        most = FULL if sender in self._config.settings.clients else TOO_FULL
        while self._role.load(self._outgoing()) >= most:
            if most == TOO_FULL:
                self._tell("more waits here than there is room for: it takes nothing more")
            self._room.clear()
            await self._room.wait()

    def _outgoing(self) -> int:
        return sum(each.waiting for each in self._links.values())

    async def _keep_time(self, role: BrokerRole) -> None:
        while True:
            await self._around.port.sleep(TICK_S)
            self._send(role.tick())
            self._room.set()

    async def _drive(self, role: ClientRole, opened_ns: int) -> None:
        """Reads sensors at their times, later if too much waits."""
        for reading in role.readings:
            await self._until(opened_ns, reading.t)
            while self._outgoing() + role.client.unplaced >= self._config.settings.limits.waiting:
                self._room.clear()
                await self._room.wait()
            self._send(role.read(reading))
        await self._until(opened_ns, self._config.settings.until)
        self._send(role.leave(self._config.settings.until))

    async def _until(self, opened_ns: int, t: float) -> None:
        while (left := t - (self._around.port.now_ns() - opened_ns) / NS) > 0:
            await self._around.port.sleep(left + 1e-6)

    def _look_for_stalls(self) -> None:
        if not isinstance(self._role, BrokerRole) or self._opened_ns is None or self._distrusted:
            return
        arrived, now_ns = self._role.broker.reached, self._around.port.now_ns()
        if arrived != self._progress[0]:
            self._progress = arrived, now_ns
            self._tell("")
        elif now_ns - self._progress[1] > NS * max(STALLED_S, STALLED_READINGS * self._config.settings.every):
            full = self._role.load(self._outgoing()) >= FULL
            self._tell(NO_ROOM if full else self._role.waits_for())

    def _tell(self, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            self._around.record(InterestStalled(NODE, reason))


def built(config: InterestConfig, around: Surroundings) -> Application:
    """Raises AppUnusable."""
    return Interest(config, around) if config.node in nodes_of(config) else Bystander()


INTEREST = AppKind(InterestConfig, built, RECORDS, nodes_of, problems, metrics=METRIC_KINDS)
