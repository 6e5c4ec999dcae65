"""A replicated stream query on one node: its replicas, their connections to other nodes, and the router."""

from collections.abc import Sequence
from functools import partial

from node_agent.apps.base import AppKind, AppStatus, Surroundings
from node_agent.apps.dataflow.belief import RECORDS
from node_agent.apps.dataflow.best_effort.replica import ReplicaRuntime
from node_agent.apps.dataflow.config import DataflowConfig, nodes_of, problems, watched
from node_agent.apps.dataflow.delivery.runtime import DeliveryRuntime
from node_agent.apps.dataflow.delivery.spill import SpillFile
from node_agent.apps.dataflow.events import LinkLost, SpillSample
from node_agent.apps.dataflow.metrics import METRIC_KINDS
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.node import MovingParts
from node_agent.apps.dataflow.replicas import ReplicaBuilder, Runtime
from node_agent.apps.dataflow.switching.exchange import is_needed
from node_agent.apps.dataflow.switching.exchanges import Exchanges
from node_agent.apps.dataflow.switching.router import Router
from node_agent.apps.dataflow.wire.admission import PlanAdmission
from node_agent.apps.dataflow.wire.codec import (
    CODEC,
    OnLost,
    OnMessage,
    TupleConnection,
    TupleSender,
    TupleServer,
)
from node_agent.apps.dataflow.wire.messages import Batch, Data, Message, batch_of
from node_agent.apps.dataflow.wire.notices import Notices
from node_agent.apps.tasks import Tasks
from node_agent.linkstate.overhead import OverheadSource
from node_agent.transport.authentication import Digests
from node_agent.transport.errors import Impossible
from node_agent.transport.item_sender import LocalSender
from node_agent.transport.messages import Pair
from node_agent.transport.outgoing import ignore_loss, ignore_message
from node_agent.transport.server import ConnectionServer


class Dataflow:
    """The ``Application`` of a stream query."""

    def __init__(self, config: DataflowConfig, around: Surroundings) -> None:
        """Raises AppUnusable if an operator cannot run here."""
        self._config = config
        self._around = around
        self._spill = SpillFile(around.scratch, config.delivery.spill_bytes)
        self._spilled: SpillSample | None = None
        self._digests = Digests()
        self._moving = MovingParts(config, around) if config.plan.moving else None
        builder = ReplicaBuilder(config, around, self, self._spill, self._moving)
        self._replicas: dict[str, Runtime] = {
            replica.id: builder.build(replica)
            for replica in config.plan.on(around.node)
            if not config.plan.moves(replica.operator)
        }
        self._notices = self._make_notices()
        send = self._notices.send if self._notices is not None else None
        exchanges = Exchanges(config, around.node, around.boot, send) if send is not None else None
        self._router = Router(config, around, tuple(self._replicas.values()), exchanges, self._queue)
        self._server: TupleServer = ConnectionServer(
            around.port,
            around.credentials,
            CODEC,
            PlanAdmission(config.plan, around.node),
            {node: address.host for node, address in around.addresses.items() if node != around.node},
            around.links,
            self._digests,
            around.refusals,
            self._take,
            partial(around.fail, "incoming connection"),
            self._receive_message,
        )
        self._tasks = Tasks(around.fail)
        self._stopped = False

    async def start(self) -> None:
        port = self._around.addresses[self._around.node].port
        await self._server.open(port)
        if self._notices is not None:
            await self._notices.open(port)
        if self._moving is not None:
            await self._moving.start(port)
            for name, run in self._moving.runs():
                self._tasks.spawn(name, run)
        for runtime in self._replicas.values():
            for name, run in runtime.runs().items():
                self._tasks.spawn(name, run)
        self._tasks.spawn("router", self._router.run())
        self._tasks.spawn("exchange", self._router.exchange())

    def open(self) -> None:
        if self._moving is not None:
            self._moving.open()
        for runtime in self._replicas.values():
            runtime.open_source()

    async def stop(self) -> None:
        self._stopped = True
        try:
            self._tasks.cancel()
            await self._tasks.wait()
            await self._server.close()
            if self._moving is not None:
                await self._moving.close()
            for runtime in self._replicas.values():
                await runtime.close()
            if self._notices is not None:
                self._notices.close()
        finally:
            self._spill.close()

    def sample(self) -> None:
        if not self._stopped:
            for runtime in self._replicas.values():
                for sample in runtime.samples():
                    self._around.record(sample)
            for sample in self._moving.samples() if self._moving is not None else ():
                self._around.record(sample)
        self._sample_spill()

    def status(self) -> AppStatus:
        moving = self._moving.here() if self._moving is not None else ()
        return AppStatus(self._router.ready, (*self._replicas, *moving))

    def overheads(self) -> Sequence[OverheadSource]:
        return () if self._notices is None else (self._notices,)

    def send_local(self, to: str, sender: str, content: Batch | Message) -> bool:
        """Gives ``content`` to replica ``to`` of this node. Returns False if it is on another node."""
        runtime = self._replicas.get(to)
        if not isinstance(runtime, DeliveryRuntime):
            return False
        runtime.receive_local(sender, content)
        return True

    def open_connection(
        self, pair: Pair, on_message: OnMessage = ignore_message, on_lost: OnLost = ignore_loss
    ) -> TupleConnection:
        around = self._around

        def lost(pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
            around.record(LinkLost(pair.sender, pair.receiver, reason))
            on_lost(pair, items, reason)

        node = self._config.plan.replica(pair.receiver).node
        return TupleConnection(
            around.port,
            around.addresses[node],
            around.credentials.to(node, "connection"),
            pair,
            CODEC,
            around.links,
            self._digests,
            around.refusals,
            partial(around.fail, f"connection to {pair.receiver}"),
            on_message,
            lost,
            lambda: self._router.reconsider(),
            lambda: self._router.found_again(),
        )

    def make_sender(self, sender: Replica, to: str, on_lost: OnLost) -> TupleSender:
        """Returns a sender for best effort, to a replica of this node or another."""
        receiver = self._replicas.get(to)
        if isinstance(receiver, ReplicaRuntime):
            return LocalSender(partial(receiver.receive, sender.id))
        return self.open_connection(Pair(sender.id, to), on_lost=on_lost)

    def answer(self, pair: Pair, message: Message) -> bool:
        """Sends a message to the sender of an incoming connection. Returns False if there is no
        connection.
        """
        return self._server.send_message(pair, message)

    def _make_notices(self) -> Notices | None:
        """Returns None if replicas need not exchange anything: then no datagram is sent."""
        plan, switching, around = self._config.plan, self._config.switching, self._around
        if not is_needed(plan.query, switching.rule.policy, switching.mode):
            return None
        node_of = {replica.id: replica.node for replica in plan.replicas}
        return Notices(
            around.port,
            around.credentials,
            around.addresses,
            node_of,
            around.refusals,
            lambda notice: self._router.receive(notice),
        )

    def _queue(self, replica: str) -> int:
        return self._replicas[replica].queued() + self._server.waiting(replica)

    async def _take(self, pair: Pair, data: Data) -> None:
        batch = batch_of(pair, data)
        via = pair.sender if pair.sender != batch.sender else ""
        runtime = self._replicas[pair.receiver]
        if runtime.overrun(batch):
            raise Impossible(f"{pair.sender} sends more than it may have")
        await runtime.take(batch, via)

    def _receive_message(self, pair: Pair, message: Message) -> None:
        self._replicas[pair.receiver].receive_message(pair.sender, message)

    def _sample_spill(self) -> None:
        """Records the spill file only if it has changed, which is rare."""
        spill = self._spill
        if spill.size or spill.refused or self._spilled is not None:
            sample = SpillSample(spill.size, spill.refused, spill.refusal)
            if sample != self._spilled:
                self._spilled = sample
                self._around.record(sample)


QUERY = AppKind(DataflowConfig, Dataflow, RECORDS, nodes_of, problems, watched, METRIC_KINDS)
