"""Operators that combine streams, for queries that are written without Python."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.dataflow.operators.registry import Context, OperatorKind
from node_agent.apps.dataflow.windows.units import Unit


class UnionParams(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Union:
    """Passes on whatever comes over any input."""

    def __init__(self, params: UnionParams, context: Context) -> None:
        pass

    async def process(self, unit: Unit) -> Sequence[bytes]:
        return unit.payloads()


class MatchParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``key``: how many bytes at the beginning of a payload must be the same."""

    key: Annotated[int, Meta(ge=1, le=1024)] = 8


class Match:
    """A join by key: combines one payload of each input, all with the same key, one after the other."""

    def __init__(self, params: MatchParams, context: Context) -> None:
        self._length = params.key
        self._inputs = context.spec.after if context.spec is not None else ()

    async def process(self, unit: Unit) -> Sequence[bytes]:
        first, *others = (
            [payload for item in unit.inputs.get(name, ()) for payload in item.payloads]
            for name in self._inputs
        )
        return [
            payload + b"".join(rest)
            for payload in first
            for rest in product(*([p for p in other if self._same(p, payload)] for other in others))
        ]

    def _same(self, one: bytes, other: bytes) -> bool:
        return one[: self._length] == other[: self._length]


UNION = OperatorKind("union", "operator", UnionParams, Union)
MATCH = OperatorKind("match", "operator", MatchParams, Match)
