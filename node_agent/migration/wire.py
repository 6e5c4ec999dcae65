"""What operators and brokers say while they agree on plans, as bytes: bounded, and checked before it is
believed.

data = encode(PlanAccepted(3))
decode(data)   # PlanAccepted(version=3); raises Refused for anything that is not a message
"""

import math
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.migration.messages import (
    Message,
    PlanAccepted,
    PlanDecided,
    PlanUpdated,
    Reserve,
    ReserveReply,
    Revoke,
)
from node_agent.migration.plan import Expected, MigrationError, Plan, Steps
from node_agent.model.checked import Checked, Refused, Whole

MOST_BYTES = 900_000
MOST_STEPS, MOST_PLACEMENTS, MOST_HOSTS = 1000, 256, 256
FAR_S, MOST_RATE = 1e9, 1e12
NEAR_ONE = 1e-6
"""By how much probabilities together may differ from 1."""
Name = Annotated[str, Meta(min_length=1, max_length=400)]
Time = Annotated[float, Meta(ge=-FAR_S, le=FAR_S)]
Rate = Annotated[float, Meta(ge=0, le=MOST_RATE)]
Chance = Annotated[float, Meta(ge=0, le=1 + NEAR_ONE)]
Row = Annotated[tuple[Chance, ...], Meta(max_length=MOST_PLACEMENTS)]


class _Expected(Struct, frozen=True, array_like=True):
    hosts: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=MOST_HOSTS)]
    rates: Annotated[tuple[Rate, ...], Meta(min_length=1, max_length=MOST_HOSTS)]
    copy_at: Time | None
    buffers_from: Annotated[tuple[tuple[Name, Time], ...], Meta(max_length=MOST_HOSTS)]


class _Plan(Struct, frozen=True, array_like=True):
    times: Annotated[tuple[Time, ...], Meta(min_length=1, max_length=MOST_STEPS)]
    end: Time
    stages: Annotated[
        tuple[Annotated[tuple[_Expected, ...], Meta(min_length=1, max_length=MOST_PLACEMENTS)], ...],
        Meta(max_length=MOST_STEPS),
    ]
    start: Row
    moves: Annotated[
        tuple[Annotated[tuple[Row, ...], Meta(max_length=MOST_PLACEMENTS)], ...],
        Meta(max_length=MOST_STEPS),
    ]


class _Updated(Struct, frozen=True, array_like=True, tag="updated"):
    version: Whole
    plan: _Plan
    final: bool


class _Accepted(Struct, frozen=True, array_like=True, tag="accepted"):
    version: Whole


class _Decided(Struct, frozen=True, array_like=True, tag="decided"):
    version: Whole
    kept: bool


class _Reserve(Struct, frozen=True, array_like=True, tag="reserve"):
    """The last span may have no end."""

    version: Whole
    need: Annotated[float, Meta(ge=0, le=1e6)]
    spans: Annotated[tuple[tuple[Time, Time | None], ...], Meta(max_length=MOST_STEPS)]


class _Reply(Struct, frozen=True, array_like=True, tag="reply"):
    version: Whole
    granted: bool


class _Revoke(Struct, frozen=True, array_like=True, tag="revoke"):
    version: Whole


_Message = _Updated | _Accepted | _Decided | _Reserve | _Reply | _Revoke
_DECODER: Checked[_Message] = Checked(_Message, MOST_BYTES, "msgpack")
_ENCODER = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    return _ENCODER.encode(_packed(message))


def decode(data: bytes) -> Message:
    """Raises Refused, and nothing else, whatever the bytes are."""
    return _unpacked(_DECODER.decode(data))


def _packed(message: Message) -> _Message:
    match message:
        case PlanUpdated(version, plan, final):
            stages = tuple(
                tuple(_Expected(e.hosts, e.rates, e.copy_at, e.buffers_from) for e in stage)
                for stage in plan.stages
            )
            packed = _Plan(plan.steps.times, plan.steps.end, stages, plan.start, plan.moves)
            return _Updated(version, packed, final)
        case PlanAccepted(version):
            return _Accepted(version)
        case PlanDecided(version, kept):
            return _Decided(version, kept)
        case Reserve(version, need, spans):
            bounded = tuple((begin, None if end == math.inf else end) for begin, end in spans)
            return _Reserve(version, need, bounded)
        case ReserveReply(version, granted):
            return _Reply(version, granted)
        case Revoke(version):
            return _Revoke(version)


def _unpacked(message: _Message) -> Message:
    match message:
        case _Updated():
            return PlanUpdated(message.version, _plan(message.plan), message.final)
        case _Accepted():
            return PlanAccepted(message.version)
        case _Decided():
            return PlanDecided(message.version, message.kept)
        case _Reserve():
            spans = tuple((begin, math.inf if end is None else end) for begin, end in message.spans)
            if any(end <= begin for begin, end in spans):
                raise Refused("malformed", "a span ends before it begins")
            return Reserve(message.version, message.need, spans)
        case _Reply():
            return ReserveReply(message.version, message.granted)
        case _Revoke():
            return Revoke(message.version)


def _plan(packed: _Plan) -> Plan:
    stages = tuple(
        tuple(Expected(each.hosts, each.rates, each.copy_at, each.buffers_from) for each in stage)
        for stage in packed.stages
    )
    if any(len(each.hosts) != len(each.rates) for stage in stages for each in stage):
        raise Refused("malformed", "a placement needs a rate for each of its brokers")
    try:
        plan = Plan(Steps(packed.times, packed.end), stages, packed.start, packed.moves)
    except MigrationError as error:
        raise Refused("malformed", str(error)) from error
    if abs(sum(plan.start) - 1) > NEAR_ONE:
        raise Refused("malformed", "the probabilities of a plan are 1 together")
    if not plan.certain:
        _check_moves(plan)
    return plan


def _check_moves(plan: Plan) -> None:
    for move, (before, after) in zip(plan.moves, pairwise(plan.stages), strict=True):
        if len(move) != len(before) or any(len(row) != len(after) for row in move):
            raise Refused("malformed", "a plan needs a probability for each two placements in turn")
        if any(abs(sum(row) - 1) > NEAR_ONE for row in move):
            raise Refused("malformed", "the probabilities of a plan are 1 together")
