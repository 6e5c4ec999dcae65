"""Operators whose results show what they were made from, and a sink that remembers what it got."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind
from node_agent.apps.dataflow.windows.units import Unit


class Given(NamedTuple):
    """A position of a stream that a sink got, and its payload."""

    sink: str
    origin: str
    tau: int
    payloads: tuple[bytes, ...]


class StepParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``cpu`` seconds a unit; every third position is left out, or all are multiplied."""

    cpu: float = 0.002
    leave_out: bool = False
    copies: int = 1


class SinkParams(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Step:
    def __init__(self, params: StepParams, context: Context) -> None:
        self._params = params
        self._context = context

    async def process(self, unit: Unit) -> Sequence[bytes]:
        await self._context.compute(self._params.cpu)
        if self._params.leave_out and unit.tau % 3 == 0:
            return ()
        digest = blake2b(digest_size=16)
        for upstream, items in unit.inputs.items():
            for item in items:
                digest.update(f"{upstream} {item.origin} {item.tau} {len(item.payloads)}".encode())
                for payload in item.payloads:
                    digest.update(payload)
        return [digest.digest() + bytes([copy]) for copy in range(self._params.copies)]


@contextmanager
def campaign_kinds(given: list[Given]) -> Iterator[None]:
    """Registers the operators ``campaign_step`` and ``campaign_sink``, which adds to ``given``, within the
    context.
    """

    class Sink:
        def __init__(self, params: SinkParams, context: Context) -> None:
            self._name = context.replica

        async def process(self, unit: Unit) -> Sequence[bytes]:
            given.append(Given(self._name, unit.origin, unit.tau, tuple(unit.payloads())))
            return ()

    kinds = (
        OperatorKind("campaign_step", "operator", StepParams, Step),
        OperatorKind("campaign_sink", "sink", SinkParams, Sink),
    )
    for kind in kinds:
        OPERATORS.register(kind.name, kind)
    try:
        yield
    finally:
        for kind in kinds:
            OPERATORS.unregister(kind.name)
