"""Builds the runtime of a replica, for the reliability that its query promises."""

from functools import partial
from math import inf
from typing import Any, Protocol

import msgspec

from node_agent.apps.base import AppUnusable, Surroundings
from node_agent.apps.dataflow.best_effort.dispatcher import Dispatcher
from node_agent.apps.dataflow.best_effort.replica import ReplicaRuntime
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.limits import MOST_OPEN, Overflow, Reliability
from node_agent.apps.dataflow.delivery.plan_neighbours import plan_neighbours_of
from node_agent.apps.dataflow.delivery.runtime import Connector, DeliveryRuntime, Job
from node_agent.apps.dataflow.delivery.spill import SpillFile
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.moving.node import MovingParts
from node_agent.apps.dataflow.moving.stream import MovingStream
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind, OperatorUnusable
from node_agent.apps.dataflow.windows.assembly import assembler_for
from node_agent.apps.dataflow.windows.units import Gaps
from node_agent.apps.dataflow.wire.codec import OnLost, TupleSender

Runtime = ReplicaRuntime | DeliveryRuntime


class ReplicaConnector(Connector, Protocol):
    """Reaches other replicas, on this node and on others, in best effort too."""

    def make_sender(self, sender: Replica, to: str, on_lost: OnLost) -> TupleSender: ...


class ReplicaBuilder:
    def __init__(
        self,
        config: DataflowConfig,
        around: Surroundings,
        connector: ReplicaConnector,
        spill: SpillFile,
        moving: MovingParts | None,
    ) -> None:
        self._moving = moving
        self._config = config
        self._around = around
        self._connector = connector
        self._spill = spill

    def build(self, replica: Replica) -> Runtime:
        """Returns the runtime of ``replica``. Raises AppUnusable."""
        try:
            return self._build(replica)
        except OperatorUnusable as error:
            raise AppUnusable(f"operator {replica.operator}: {error}") from error

    def _build(self, replica: Replica) -> Runtime:
        around, query = self._around, self._config.plan.query
        spec = query.operator(replica.operator)
        kind = OPERATORS[spec.kind]
        params = msgspec.convert(spec.params, kind.params)
        context = Context(
            replica.id, around.port, around.core, spec, around.record, around.directory, around.app
        )
        if query.reliability == "best_effort":
            return self._build_best_effort(replica, spec, kind, params, context)
        assembler = None if isinstance(spec.takes, Each) else assembler_for(spec, query.origins())
        limits = self._config.delivery
        spill = self._spill if limits.overflow is Overflow.SPILL else None
        buffers = {
            name: msgspec.structs.replace(limits, items=room)
            for name in query.downstream(replica.operator)
            if (room := query.operator(name).buffers.get(replica.operator)) is not None
        }
        neighbours, level = plan_neighbours_of(replica, self._config.plan), Reliability(query.reliability)
        core = DeliveryCore(neighbours, level, limits, assembler, spill, buffers)
        # What a window collects is under way for as long as the window takes.
        one_by_one = all(isinstance(operator.takes, Each) for operator in query.operators)
        most_open = MOST_OPEN if one_by_one else inf
        job = Job(replica, self._config.plan, kind, params, most_open)
        return DeliveryRuntime(job, core, context, self._connector, around.record, limits.sources_wait)

    def _build_best_effort(
        self, replica: Replica, spec: OperatorSpec, kind: OperatorKind, params: Any, context: Context
    ) -> ReplicaRuntime:
        query, record = self._config.plan.query, self._around.record
        make_sender = partial(self._connector.make_sender, replica)
        dispatchers: list[Dispatcher | MovingStream] = []
        for downstream in query.downstream(replica.operator):
            if self._moving is not None and downstream in self._moving.roles:
                dispatchers.append(self._moving.stream(downstream))
                continue
            usual = self._config.limits
            room = query.operator(downstream).buffers.get(replica.operator, usual.output_buffer)
            limits = msgspec.structs.replace(usual, output_buffer=room)
            dispatchers.append(Dispatcher(replica.id, downstream, make_sender, record, limits))
        each = isinstance(spec.takes, Each)
        assembler = None if each else assembler_for(spec, query.origins(), Gaps())
        runtime = ReplicaRuntime(
            replica,
            spec,
            kind,
            params,
            assembler,
            context,
            dispatchers,
            self._connector.open_connection,
            record,
            self._config.limits,
        )
        if self._moving is not None:
            self._moving.feed(replica.id, runtime.receive)
        return runtime
