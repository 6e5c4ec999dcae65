"""Orders the migrations of one operator at their times, and says who goes on if a host is gone."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from node_agent.apps.base import Surroundings
from node_agent.apps.dataflow.events import MigrationStep
from node_agent.apps.dataflow.model.plan import Migration
from node_agent.apps.dataflow.moving.actor import Actor
from node_agent.apps.dataflow.moving.post import Post, Roles
from node_agent.apps.dataflow.moving.state import Recipe
from node_agent.migration.live.coordinator import Coordinator, CoordinatorJournal, Phase
from node_agent.migration.live.messages import Effect, Message, Note
from node_agent.migration.live.values import Card, Limits, Method, Order, card_of

LOOK_S = 0.1
GONE_S = 10.0
"""A host that does not answer for so long during a migration is taken for gone."""


class MovingCoordinator(Actor):
    """``warmup``: seconds from the opening of sources to the time that migrations count from."""

    def __init__(
        self,
        roles: Roles,
        post: Post,
        around: Surroundings,
        recipe: Recipe,
        limits: Limits,
        warmup: float,
    ) -> None:
        super().__init__(post, roles.moving.operator, roles.coordinator)
        self._roles, self._around, self._recipe, self._limits = roles, around, recipe, limits
        self._warmup = warmup
        self._due = deque(sorted(roles.moving.migrations, key=lambda each: each.at))
        self._machine: Coordinator | None = None
        self._card: Card | None = None
        self._opened = asyncio.Event()

    async def start(self) -> None:
        """Raises OperatorUnusable."""
        work = self._around.port.work
        depot = await work(self._recipe.state, 0.0)
        self._card = await work(lambda: card_of(depot), 0.0)
        journal = CoordinatorJournal(self._roles.moving.hosts[0])
        self._machine = Coordinator(self.name, journal, depot, self._limits)

    def open(self) -> None:
        self._opened.set()

    def receive(self, sender: str, message: Message) -> Sequence[Effect]:
        return () if self._machine is None else self._machine.receive(sender, message)

    async def carry_out(self, effect: Effect) -> bool:
        if isinstance(effect, Note):
            self._tell(effect.migration, effect.what, effect.detail)
        return True

    async def keep_time(self) -> None:
        await self._opened.wait()
        began = self._now()
        while True:
            now = self._now()
            if self._due and now >= began + self._warmup + self._due[0].at:
                self.do(self._begin)
            self.do(self._look)
            await self._around.port.sleep(LOOK_S)

    def _begin(self) -> Sequence[Effect]:
        """Orders the next migration, unless one is under way: then it waits."""
        machine = self._machine
        if machine is None or self._card is None or machine.journal.phase is not Phase.IDLE or not self._due:
            return ()
        due, number = self._due.popleft(), machine.next_number
        source = machine.journal.owner
        if source == due.target:
            self._tell(number, "finished", "already_there", due, source)
            machine.journal = replace(machine.journal, last=number, outcome="already_there")
            return ()
        self._tell(number, "ordered", due.method, due, source, self._card.size)
        give_up_at = self._now() + due.give_up
        streams, sinks = (self._roles.upstream.id,), tuple(sink.id for sink in self._roles.sinks)
        method = Method(due.method)
        return machine.migrate(
            Order(
                number, source, due.target, self._card, streams, sinks, method=method, give_up_at=give_up_at
            )
        )

    def _look(self) -> Sequence[Effect]:
        """Looks for hosts that are gone."""
        machine = self._machine
        if machine is None or machine.journal.order is None:
            return ()
        order = machine.journal.order
        for host in (order.source, order.target):
            if machine.journal.phase in (Phase.ASKED, Phase.ORDERED) and self._is_gone(host):
                self._tell(order.migration, "gone", host)
                return machine.gone(host)
        return ()

    def _is_gone(self, host: str) -> bool:
        return self._post.silent_for(host) > GONE_S

    def _tell(
        self,
        migration: int,
        what: str,
        detail: str,
        due: Migration | None = None,
        source: str = "",
        size: int = 0,
    ) -> None:
        target = "" if due is None else due.target
        replica = self._roles.replica.id
        self._around.record(MigrationStep(replica, migration, what, detail, source, target, size))
        self._around.flush()

    def _now(self) -> float:
        return self._around.port.now_ns() / 1e9
