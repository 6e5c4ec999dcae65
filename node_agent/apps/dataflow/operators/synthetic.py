"""Operators that load a network and its nodes like a video query, without any video.

``synthetic_chain`` has the shape of the face recognition query (paper, figure 4). Every operator passes on
the whole payload (selectivity 1), so throughput at the sink is what the path sustained.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.operators.pace import Pace, Rate
from node_agent.apps.dataflow.operators.registry import Context, OperatorKind, OperatorUnusable
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.wire.packing import MAX_PAYLOAD

MAX_CHAIN = 1000
MOST_STATE = 512 * 1024**2
Size = Annotated[int, Meta(ge=0, le=MAX_PAYLOAD)]
State = Annotated[int, Meta(ge=0, le=MOST_STATE)]


class SourceParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``payload`` in bytes; a ``limit`` of 0 means endless."""

    rate: Rate = 10.0
    payload: Size = 8192
    limit: Annotated[int, Meta(ge=0)] = 0


class WorkParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``cpu`` in seconds a unit; ``output`` in bytes, None to pass the payloads on as they are. ``state``:
    bytes of immutable state, which are copied if the operator moves."""

    cpu: Annotated[float, Meta(ge=0, le=3600)] = 0.005
    output: Size | None = None
    state: State | None = None


class SinkParams(Struct, frozen=True, forbid_unknown_fields=True):
    pass


def pattern(origin: str, tau: int, size: int) -> bytes:
    """Returns bytes that differ from tuple to tuple, and can be computed again from its name."""
    digest = hashlib.blake2b(f"{origin} {tau}".encode()).digest()
    return (digest * (size // len(digest) + 1))[:size]


class SyntheticSource:
    def __init__(self, params: SourceParams, context: Context) -> None:
        self._params = params
        self._context = context
        self._pace = Pace(params.rate, context)

    async def next(self, tau: int) -> bytes | None:
        if 0 < self._params.limit < tau:
            return None
        await self._pace.until_due(tau)
        return pattern(self._context.replica, tau, self._params.payload)


class Work:
    def __init__(self, params: WorkParams, context: Context) -> None:
        self._params = params
        self._context = context

    async def process(self, unit: Unit) -> Sequence[bytes]:
        await self._context.compute(self._params.cpu)
        if self._params.output is None:
            return unit.payloads()
        return (pattern(unit.origin, unit.tau, self._params.output),)


class Sink:
    def __init__(self, params: SinkParams, context: Context) -> None:
        pass

    async def process(self, unit: Unit) -> Sequence[bytes]:
        return ()


def synthetic_chain(
    operators: Annotated[int, Meta(ge=1, le=MAX_CHAIN)] = 2,
    rate: Rate = 10.0,
    payload: int = 8192,
    cpu: float = 0.005,
) -> Query:
    """Builds camera → detect → recognise → screen; with other than two operators in between, op1 … opN."""
    if operators < 1:
        raise ValueError(f"a chain needs at least one operator between source and sink, not {operators}")
    inner = ("detect", "recognise") if operators == 2 else tuple(f"op{i + 1}" for i in range(operators))
    names = ("camera", *inner, "screen")
    camera = OperatorSpec("camera", "synthetic_source", (), {"rate": rate, "payload": payload})
    work = (
        OperatorSpec(name, "work", (before,), {"cpu": cpu})
        for before, name in zip(names, inner, strict=False)
    )
    screen = OperatorSpec("screen", "sink", (inner[-1],))
    return Query("synthetic_chain", (camera, *work, screen))


SOURCE = OperatorKind("synthetic_source", "source", SourceParams, SyntheticSource)


def _state(params: WorkParams, context: Context) -> bytes:
    return pattern("state", 0, params.state or 0)


def _restored(params: WorkParams, context: Context, state: bytes) -> Work:
    if state != _state(params, context):
        raise OperatorUnusable("its state is not what it was made with")
    return Work(params, context)


WORK = OperatorKind("work", "operator", WorkParams, Work, state=_state, restore=_restored)
SINK = OperatorKind("sink", "sink", SinkParams, Sink)
