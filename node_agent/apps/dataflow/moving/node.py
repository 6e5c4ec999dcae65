"""What one node does for operators that move: as a host, as a neighbour, or as the coordinator."""

from collections.abc import Coroutine, Iterator
from typing import Any

import msgspec

from node_agent.apps.base import KEPT, AppUnusable, Surroundings
from node_agent.apps.dataflow.config import DataflowConfig
from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.dataflow.moving.coordinator import MovingCoordinator
from node_agent.apps.dataflow.moving.host import MovingHost
from node_agent.apps.dataflow.moving.post import Post, Roles
from node_agent.apps.dataflow.moving.sink import MovingSink, Receive
from node_agent.apps.dataflow.moving.state import MOST_STATE, Recipe, TooLargeToMove
from node_agent.apps.dataflow.moving.stream import MovingStream
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorUnusable
from node_agent.migration.live.values import Limits

ITEMS = 512
"""Tuples on their way to an operator that moves, if its ``buffers`` say nothing else."""


class MovingParts:
    def __init__(self, config: DataflowConfig, around: Surroundings) -> None:
        """Raises AppUnusable."""
        self._config, self._around = config, around
        plan = config.plan
        self.roles = {moving.operator: Roles(plan, moving) for moving in plan.moving}
        self._post = Post(plan, around, self.roles)
        self._hosts: dict[str, MovingHost] = {}
        self._coordinators: dict[str, MovingCoordinator] = {}
        self._sinks: dict[tuple[str, str], MovingSink] = {}
        for name, roles in self.roles.items():
            if around.node in roles.moving.hosts:
                self._hosts[name] = self._make_host(roles)
            if around.node == roles.moving.coordinator:
                self._coordinators[name] = MovingCoordinator(
                    roles, self._post, around, self._recipe(roles), self._limits(roles), config.warmup
                )

    def stream(self, operator: str) -> MovingStream:
        """The stream of a replica of this node to ``operator``, which moves."""
        roles = self.roles[operator]
        return MovingStream(roles, self._post, self._around.record, self._limits(roles))

    def feed(self, replica: str, receive: Receive) -> None:
        """``replica`` of this node gets what moving operators send it."""
        for name, roles in self.roles.items():
            for sink in roles.sinks:
                if sink.id == replica:
                    self._sinks[name, replica] = MovingSink(roles, sink, self._post, receive)

    async def start(self, port: int) -> None:
        """Raises PortError; AppUnusable also if the agent was started again and kept what hosts need."""
        for name, roles in self.roles.items():
            beside = {self._around.node} & {roles.upstream.node, *(sink.node for sink in roles.sinks)}
            if self._around.boot > 1 and (beside or name in self._coordinators):
                raise AppUnusable(
                    f"what this node kept for {name}, which moves, is lost: its agent was killed"
                )
        await self._post.open(port)
        try:
            for host in self._hosts.values():
                await host.start()
            for coordinator in self._coordinators.values():
                await coordinator.start()
        except (OperatorUnusable, TooLargeToMove) as error:
            raise AppUnusable(str(error)) from error

    def open(self) -> None:
        for coordinator in self._coordinators.values():
            coordinator.open()

    def runs(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """By name what must run; the owner makes tasks of it."""
        for name, host in self._hosts.items():
            yield f"host of {name}", host.run()
            yield f"operator {name}", host.work()
            yield f"clock of {name}", host.keep_time()
        for name, coordinator in self._coordinators.items():
            yield f"coordinator of {name}", coordinator.run()
            yield f"times of {name}", coordinator.keep_time()
        for (name, replica), sink in self._sinks.items():
            yield f"{name} → {replica}", sink.run()

    async def close(self) -> None:
        await self._post.close()

    def samples(self) -> list[QueueSample]:
        found = (host.sample() for host in self._hosts.values())
        return [sample for sample in found if sample is not None]

    def here(self) -> tuple[str, ...]:
        """The replicas that are on this node now."""
        return tuple(self.roles[name].replica.id for name, host in self._hosts.items() if host.is_owner)

    def _make_host(self, roles: Roles) -> MovingHost:
        around = self._around
        spec = self._config.plan.query.operator(roles.moving.operator)
        directory = None if around.directory is None else around.directory / KEPT
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        recipe, limits = self._recipe(roles), self._limits(roles)
        return MovingHost(roles, self._post, around, recipe, spec, limits, directory)

    def _recipe(self, roles: Roles) -> Recipe:
        around = self._around
        spec = self._config.plan.query.operator(roles.moving.operator)
        kind = OPERATORS[spec.kind]
        context = Context(
            roles.replica.id, around.port, around.core, spec, around.record, around.directory, around.app
        )
        return Recipe(kind, msgspec.convert(spec.params, kind.params), context)

    def _limits(self, roles: Roles) -> Limits:
        spec = self._config.plan.query.operator(roles.moving.operator)
        items = spec.buffers.get(roles.upstream.operator, ITEMS)
        return Limits(
            most_state=MOST_STATE, items=items, bytes=64 * 1024**2, pending=256, grain=min(16, items)
        )
