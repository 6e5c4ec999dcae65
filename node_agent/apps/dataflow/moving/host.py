"""A node where an operator is, or may come to be: keeps its journal and state, and works on its tuples."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from node_agent.apps.base import Surroundings
from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import MigrationStep, QueueSample
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.actor import Actor
from node_agent.apps.dataflow.moving.post import Post, Roles
from node_agent.apps.dataflow.moving.state import MOST_STATE, Recipe
from node_agent.apps.dataflow.moving.steps import Result, Steps
from node_agent.apps.dataflow.moving.tuples import pack, unpack
from node_agent.apps.dataflow.operators.processing import GivenUp, process
from node_agent.apps.dataflow.operators.registry import Operator, OperatorUnusable
from node_agent.apps.dataflow.windows.each import unit_of
from node_agent.migration.live.disk import Files
from node_agent.migration.live.host import Host
from node_agent.migration.live.journal import Journal
from node_agent.migration.live.messages import Chunk, Copy, Effect, Keep, Message, Note, Start, Store
from node_agent.migration.live.new_host import refuse
from node_agent.migration.live.values import Limits, Savepoint, card_of
from node_agent.model.checked import Refused

TICK_S = 0.1


class MovingHost(Actor):
    """``directory``: where it keeps what must survive the agent; None: nothing does."""

    def __init__(
        self,
        roles: Roles,
        post: Post,
        around: Surroundings,
        recipe: Recipe,
        spec: OperatorSpec,
        limits: Limits,
        directory: Path | None,
    ) -> None:
        super().__init__(post, roles.moving.operator, around.node)
        self._roles, self._around, self._recipe, self._spec = roles, around, recipe, spec
        self._recorder = TupleRecorder(roles.replica.id, around.record)
        self._host = Host(around.node, roles.coordinator, self._build, limits)
        self._files = (
            None
            if directory is None
            else Files(directory, f"{around.app}.{roles.moving.operator}", Journal, MOST_STATE)
        )
        self._operator: Operator | None = None
        self._steps_of: Steps | None = None
        self._wanted = asyncio.Event()
        self._copied = 0
        """Bytes of state and input that came from the other host."""

    @property
    def is_owner(self) -> bool:
        return self._host.is_owner

    async def start(self) -> None:
        """Runs the operator where it was deployed, or goes on after a crash. Raises OperatorUnusable."""
        work = self._around.port.work
        journal = None if self._files is None else await work(self._read_journal, 0.0)
        if journal is not None and self._around.boot > 1:
            self._host.journal = journal
            self._host.state = await work(partial(self._read_state, journal), 0.0)
            if self._host.state is not None:
                self._operator = await work(partial(self._recipe.operator, self._host.state), 0.0)
            self.do(lambda: self._host.restart(self._now()))
        elif self.name == self._roles.moving.hosts[0]:
            self._host.state = state = await work(self._recipe.state, 0.0)
            self._operator = await work(partial(self._recipe.operator, state), 0.0)
            card = await work(partial(card_of, state), 0.0)
            sinks = [sink.id for sink in self._roles.sinks]
            self.do(lambda: self._host.own(card, [self._roles.upstream.id], sinks))

    def receive(self, sender: str, message: Message) -> Sequence[Effect]:
        match message:
            case Chunk(_, _, data):
                self._copied += len(data)
            case Copy(_, _, items):
                self._copied += sum(len(item.payload) for item in items)
            case Start(_, _, outputs):
                self._copied += sum(map(len, outputs))
        return self._host.receive(sender, message, self._now())

    async def carry_out(self, effect: Effect) -> bool:
        match effect:
            case Keep(Journal() as journal):
                if self._files is not None:
                    await self._around.port.work(partial(self._keep, journal), 0.0)
                if self._host.state is None:
                    self._operator = None
            case Store(data):
                return await self._store(data)
            case Note(what, migration, detail):
                size, self._copied = self._copied, 0 if what == "took_over" else self._copied
                self._tell(what, migration, detail, size if what in ("state_kept", "took_over") else 0)
        return True

    async def keep_time(self) -> None:
        while True:
            await self._around.port.sleep(TICK_S)
            if self._host.journal.order is not None:
                self.do(lambda: self._host.tick(self._now()))

    async def work(self) -> None:
        """Makes the results that the machine asks for."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            steps, operator = self._steps_of, self._operator
            if steps is None or operator is None or steps.wanted is None:
                continue
            item = steps.wanted
            result = await self._result(operator, item.position, unpack(item.payload))
            self.do(partial(self._go_on, steps, result))

    def sample(self) -> QueueSample | None:
        """How many tuples wait here; None while the operator is elsewhere."""
        work = self._host.work
        if not self.is_owner or work is None:
            return None
        waiting = sum(max(0, b.last - work.pushed.get(s, 0)) for s, b in self._host.buffers.items())
        return QueueSample(self._roles.replica.id, "input", waiting)

    def _go_on(self, steps: Steps, result: Result) -> Sequence[Effect]:
        steps.result = result
        return self._host.go_on(self._now())

    async def _result(self, operator: Operator, position: int, item: StreamTuple) -> Result:
        clock = asyncio.get_running_loop().time
        began, payloads, why = clock(), item.payloads, ""
        if payloads:
            unit = unit_of(self._roles.upstream.operator, item)
            try:
                payloads = await process(operator, unit, self._spec, self._around.port.sleep)
            except GivenUp as error:
                payloads, why = (), f"dead_letter:{error}"
        made, took_ns = item.with_payloads(payloads), round((clock() - began) * 1e9)
        return Result(position, pack(made), partial(self._accepted, item, made, took_ns, why))

    def _accepted(self, item: StreamTuple, made: StreamTuple, took_ns: int, why: str) -> None:
        self._recorder.received(self._roles.upstream.id, [item])
        if why:
            self._recorder.dropped(item, why)
        else:
            self._recorder.processed([item], took_ns)
        for sink in self._roles.sinks:
            self._recorder.sent(sink.id, [made])

    def _build(self, state: bytes, at: Savepoint) -> Steps:
        self._steps_of = Steps(at, self._wanted.set)
        self._wanted.set()
        return self._steps_of

    async def _store(self, data: bytes) -> bool:
        """Writes the state down and makes the operator of it: both before this host says that it has it."""
        work = self._around.port.work
        try:
            if self._files is not None:
                await work(partial(self._files.store, data), 0.0)
            self._operator = await work(partial(self._recipe.operator, data), 0.0)
        except (OperatorUnusable, OSError) as error:
            order = self._host.journal.order
            if self._host.is_owner or order is None:
                raise
            self._tell("unusable", order.migration, str(error))
            self.do(lambda: refuse(self._host, "unusable"))
            return False
        self._wanted.set()
        return True

    def _keep(self, journal: Journal) -> None:
        assert self._files is not None
        self._files.keep(journal)
        if not journal.stored:
            self._files.forget_state()

    def _read_journal(self) -> Journal | None:
        assert self._files is not None
        try:
            return self._files.journal()
        except (Refused, OSError) as error:
            raise OperatorUnusable(f"its journal cannot be used: {error}") from error

    def _read_state(self, journal: Journal) -> bytes | None:
        """What was written down; or what was deployed here, if it is the same."""
        assert self._files is not None
        try:
            state = self._files.state() if journal.stored else None
        except Refused as error:
            raise OperatorUnusable(f"its state cannot be used: {error}") from error
        if state is None and journal.stored and journal.card is not None:
            deployed = self._recipe.state()
            state = deployed if card_of(deployed, journal.card.chunk) == journal.card else None
        return state

    def _tell(self, what: str, migration: int, detail: str, size: int = 0) -> None:
        replica = self._roles.replica.id
        self._around.record(MigrationStep(replica, migration, what, detail, size=size))
        self._around.flush()

    def _now(self) -> float:
        return self._around.port.now_ns() / 1e9
