"""What tests of video operators have in common: one operator in virtual time, and what it reports."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, Operator, Source
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.model.telemetry import Event
from tests.unit.worlds import VirtualWorld

T = TypeVar("T")
E = TypeVar("E", bound=Event)


class Bench:
    """A node of its own for one operator. Use its ``run`` for whatever needs a clock."""

    def __init__(self, kind: str, directory: Path | None = None, **params: Any) -> None:
        self.world = VirtualWorld()
        self.events: list[Event] = []
        self.context = Context(
            "tested/0",
            self.world.ports["a"],
            asyncio.Lock(),
            record=self.events.append,
            directory=directory,
        )
        registered = OPERATORS[kind]
        self.made: Any = registered.factory(msgspec.convert(params, registered.params), self.context)

    def run(self, scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self.world.loop.run_until_complete(scenario())

    def take(self, count: int) -> list[tuple[float, bytes | None]]:
        """What a source emits first, with the times of it."""
        source: Source = self.made

        async def scenario() -> list[tuple[float, bytes | None]]:
            taken = []
            for tau in range(1, count + 1):
                payload = await source.next(tau)
                taken.append((self.context.time(), payload))
            return taken

        return self.run(scenario)

    def process(self, *payloads: bytes, born_ns: int = 0) -> list[bytes]:
        operator: Operator = self.made

        async def scenario() -> list[bytes]:
            return list(await operator.process(unit(*payloads, born_ns=born_ns)))

        return self.run(scenario)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


def unit(*payloads: bytes, born_ns: int = 0) -> Unit:
    """Each payload over an input of its own."""
    inputs = {
        f"input{place}": (StreamTuple("camera/0", 1, 0, born_ns, 0, (payload,)),)
        for place, payload in enumerate(payloads)
    }
    return Unit("camera/0", 1, 0, born_ns, 0, inputs)
