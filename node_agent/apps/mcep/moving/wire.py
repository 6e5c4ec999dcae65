"""What brokers say of operators that move, as bytes: bounded, and checked before it is believed."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.moving.messages import (
    Agreed,
    Arrived,
    Handed,
    Hosted,
    JointAt,
    Kind,
    Rates,
    Relocate,
    Role,
    Said,
    Told,
    Visited,
    Wish,
)
from node_agent.apps.mcep.packed import MOST_BYTES, Name
from node_agent.migration.live.values import Item
from node_agent.migration.live.wire import decode as decode_live
from node_agent.migration.live.wire import encode as encode_live
from node_agent.migration.wire import decode as decode_plan
from node_agent.migration.wire import encode as encode_plan
from node_agent.model.checked import Checked, Whole

MOST_ITEMS = 1000
Moment = Annotated[float, Meta(ge=-1e9, le=1e9)]
Title = Annotated[str, Meta(max_length=500)]


class _Told(Struct, frozen=True, array_like=True, tag="told"):
    operator: Name
    sender: tuple[Kind, Title]
    receiver: tuple[Kind, Title]
    message: Annotated[bytes, Meta(max_length=MOST_BYTES)]


class _Relocate(Struct, frozen=True, array_like=True, tag="relocate"):
    producer: Name
    successor: Name
    version: Whole
    to: Name


class _Handed(Struct, frozen=True, array_like=True, tag="handed"):
    producer: Name
    successor: Name
    version: Whole
    taken: Whole
    producer_at: Name
    producer_term: Whole
    successor_at: Name
    successor_term: Whole
    emitted: Whole
    kept: Annotated[tuple[tuple[Whole, bytes], ...], Meta(max_length=MOST_ITEMS)]
    last: bool


class _Arrived(Struct, frozen=True, array_like=True, tag="arrived"):
    producer: Name
    successor: Name
    version: Whole


class _JointAt(Struct, frozen=True, array_like=True, tag="joint"):
    producer: Name
    successor: Name
    version: Whole
    broker: Name


class _Agreed(Struct, frozen=True, array_like=True, tag="agreed"):
    operator: Name
    sender: Title
    message: Annotated[bytes, Meta(max_length=MOST_BYTES)]


class _Rates(Struct, frozen=True, array_like=True, tag="rates"):
    values: Annotated[
        tuple[tuple[Title, Annotated[float, Meta(ge=0, le=1e12)]], ...], Meta(max_length=MOST_ITEMS)
    ]


class _Hosted(Struct, frozen=True, array_like=True, tag="hosted"):
    operator: Name
    host: Name


class _Wish(Struct, frozen=True, array_like=True, tag="wish"):
    """Without a deadline there is none."""

    operator: Name
    to: Name
    begin_at: Moment
    deadline: Moment | None
    why: Title


class _Visited(Struct, frozen=True, array_like=True, tag="visited"):
    client: Name
    t: Moment


_Said = _Told | _Relocate | _Handed | _Arrived | _JointAt | _Agreed | _Rates | _Hosted | _Wish | _Visited
_DECODER: Checked[_Said] = Checked(_Said, MOST_BYTES, "msgpack")
_ENCODER = msgspec.msgpack.Encoder()


def encode(said: Said) -> bytes:
    return _ENCODER.encode(_packed(said))


def decode(data: bytes) -> Said:
    """Raises Refused, and nothing else, whatever the bytes are."""
    return _unpacked(_DECODER.decode(data))


def _packed(said: Said) -> _Said:
    match said:
        case Told(operator, sender, receiver, message):
            return _Told(operator, _pair(sender), _pair(receiver), encode_live(message))
        case Relocate(producer, successor, version, to):
            return _Relocate(producer, successor, version, to)
        case Handed():
            own = (said.taken, said.producer_at, said.producer_term, said.successor_at, said.successor_term)
            kept = tuple((position, payload) for position, payload in said.kept)
            return _Handed(said.producer, said.successor, said.version, *own, said.emitted, kept, said.last)
        case Arrived(producer, successor, version):
            return _Arrived(producer, successor, version)
        case JointAt(producer, successor, version, broker):
            return _JointAt(producer, successor, version, broker)
        case Agreed(operator, sender, planned):
            return _Agreed(operator, sender, encode_plan(planned))
        case Rates(values):
            return _Rates(values)
        case Hosted(operator, host):
            return _Hosted(operator, host)
        case Wish(operator, to, begin_at, deadline, why):
            return _Wish(operator, to, begin_at, None if deadline == math.inf else deadline, why)
        case Visited(client, t):
            return _Visited(client, t)


def _pair(role: Role) -> tuple[Kind, str]:
    return role.kind, role.name


def _unpacked(said: _Said) -> Said:
    match said:
        case _Told():
            ends = Role(*said.sender), Role(*said.receiver)
            return Told(said.operator, *ends, decode_live(said.message))
        case _Relocate():
            return Relocate(said.producer, said.successor, said.version, said.to)
        case _Handed():
            own = (said.taken, said.producer_at, said.producer_term, said.successor_at, said.successor_term)
            kept = tuple(Item(*each) for each in said.kept)
            return Handed(said.producer, said.successor, said.version, *own, said.emitted, kept, said.last)
        case _Arrived():
            return Arrived(said.producer, said.successor, said.version)
        case _JointAt():
            return JointAt(said.producer, said.successor, said.version, said.broker)
        case _Agreed():
            return Agreed(said.operator, said.sender, decode_plan(said.message))
        case _Rates():
            return Rates(said.values)
        case _Hosted():
            return Hosted(said.operator, said.host)
        case _Wish():
            deadline = math.inf if said.deadline is None else said.deadline
            return Wish(said.operator, said.to, said.begin_at, deadline, said.why)
        case _Visited():
            return Visited(said.client, said.t)
