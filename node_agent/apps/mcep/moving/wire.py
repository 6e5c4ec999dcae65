"""What brokers say of operators that move, as bytes: bounded, and checked before it is believed."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.moving.messages import (
    Arrived,
    Handed,
    JointAt,
    Kind,
    Relocate,
    Role,
    Said,
    Told,
)
from node_agent.migration.live.values import Item
from node_agent.migration.live.wire import decode as decode_live
from node_agent.migration.live.wire import encode as encode_live
from node_agent.model.checked import Checked, Whole

MOST_BYTES = 1_000_000
MOST_ITEMS = 1000
Name = Annotated[str, Meta(min_length=1, max_length=200)]
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


_Said = _Told | _Relocate | _Handed | _Arrived | _JointAt
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
