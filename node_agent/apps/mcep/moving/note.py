"""Where an operator stands, as bytes that another broker is sent: bounded, and checked before it is built.

Events in its windows are named by the stream and the position they came with; the events themselves are
among the input that follows.
"""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.model import Event, Mark
from node_agent.apps.mcep.moving.merge import At
from node_agent.apps.mcep.packed import Key, Name, PackedMarker, mark_of, marker_of, pack_marker
from node_agent.apps.mcep.standing import GateStanding, PartStanding, Standing
from node_agent.migration.live.values import Savepoint
from node_agent.model.checked import Checked, Refused, Whole

MOST_NOTE = 64 * 1024
MOST_PARTS = 20_000
MOST_EVENTS = 20_000

_Place = tuple[Whole, Key]
_PartName = None | bool | int | float | str | tuple[int, int]


class Reference(NamedTuple):
    """An event: the number of its stream, and its position there."""

    stream: int
    position: int


class _Part(Struct, frozen=True, array_like=True):
    name: _PartName
    begun: bool
    end: Key
    end_t: float
    to_begin: bool
    buffers: Annotated[
        tuple[Annotated[tuple[tuple[Whole, Whole], ...], Meta(max_length=MOST_EVENTS)], ...],
        Meta(max_length=100),
    ]


class _Note(Struct, frozen=True, array_like=True):
    taken: Annotated[tuple[Whole, ...], Meta(max_length=1000)]
    at: Annotated[tuple[_Place, ...], Meta(max_length=1000)]
    inlets: Annotated[tuple[_Place, ...], Meta(max_length=1000)]
    epoch: Whole
    producer: Annotated[str, Meta(max_length=200)]
    passed: Key
    marker: PackedMarker | None
    point: float
    said: Key
    stamped: tuple[float, Whole]
    reach: Annotated[dict[Name, float], Meta(max_length=1000)]
    parts: Annotated[tuple[_Part, ...], Meta(max_length=MOST_PARTS)]


_DECODER: Checked[_Note] = Checked(_Note, MOST_NOTE, "msgpack")
_ENCODER = msgspec.msgpack.Encoder()


class Note:
    """A note that was checked against the operator that it is about. ``taken``: by stream, up to which
    message it had come; ``at``: where that is in the order of all."""

    def __init__(self, packed: _Note, execution: Execution) -> None:
        self.packed = packed
        self.channels = tuple(execution.gate.inlets)
        self.streams = execution.operator.streams
        self.taken = packed.taken
        self.at: tuple[At, ...] = tuple((epoch, mark_of(mark)) for epoch, mark in packed.at)

    @cached_property
    def references(self) -> frozenset[Reference]:
        parts = self.packed.parts
        return frozenset(Reference(*at) for part in parts for buffer in part.buffers for at in buffer)


def encode_note(
    standing: Standing,
    places: Mapping[tuple[str, Mark], Reference],
    taken: tuple[int, ...],
    at: tuple[At, ...],
) -> bytes:
    """``places``: of the events in buffers, by their producer and key."""
    parts = tuple(
        _Part(
            part.name, part.begun, part.end, part.end_t, part.to_begin,
            tuple(tuple(_pair(places[s, e.key]) for e in es) for s, es in part.buffers.items()),
        )
        for part in standing.parts
    )  # fmt: skip
    gate = standing.gate
    marker = None if standing.marker is None else pack_marker(standing.marker)
    inlets, reach = tuple(gate.inlets.values()), dict(standing.reach)
    before = _Note(
        taken, at, inlets, gate.epoch, *gate.passed, marker,
        standing.point, standing.said, standing.stamped, reach, parts,
    )  # fmt: skip
    return _ENCODER.encode(before)


def _pair(reference: Reference) -> tuple[int, int]:
    return reference.stream, reference.position


def decode_note(savepoint: Savepoint, execution: Execution) -> Note:
    """Raises Refused if it is none of this operator's."""
    packed = _DECODER.decode(savepoint.at)
    operator, channels = execution.operator, tuple(execution.gate.inlets)
    count, streams = len(channels), operator.streams
    if not len(packed.taken) == len(packed.at) == len(packed.inlets) == len(savepoint.inputs) == count:
        raise Refused("malformed", f"operator {operator.name} has {count} streams")
    note = Note(packed, execution)
    for key in (packed.passed, packed.said, *(mark for _, mark in packed.inlets)):
        mark_of(key)
    floors = [position for _, position in savepoint.inputs]
    if any(taken < floor for taken, floor in zip(packed.taken, floors, strict=True)):
        raise Refused("malformed", "the input that is not needed was not taken")
    for part in packed.parts:
        mark_of(part.end)
        _check_part(part, operator.partition is None)
        if len(part.buffers) != len(streams):
            raise Refused("malformed", f"operator {operator.name} has {len(streams)} buffers")
        for stream, buffer in zip(streams, part.buffers, strict=True):
            for number, position in buffer:
                known = number < count and channels[number].producer == stream
                if not known or not floors[number] < position <= packed.taken[number]:
                    raise Refused("malformed", "a window holds an event that is not in the input")
    if len({part.name for part in packed.parts}) < len(packed.parts):
        raise Refused("malformed", "two parts have the same name")
    if any(math.isnan(each) for each in (packed.point, packed.stamped[0], *packed.reach.values())):
        raise Refused("malformed", "it is no place in time")
    if packed.marker is not None:
        marker_of(packed.marker)
    return note


def _check_part(part: _Part, whole: bool) -> None:
    if math.isnan(part.end_t) or (isinstance(part.name, float) and math.isnan(part.name)):
        raise Refused("malformed", "it is no place in time")
    if whole != (part.name is None):
        raise Refused("malformed", "the operator has no such part")


def events_of(note: Note, found: Mapping[Reference, Event]) -> Standing:
    """``found``: the events that it names. Raises Refused if one is missing."""
    packed = note.packed
    parts = tuple(
        PartStanding(part.name, part.begun, mark_of(part.end), part.end_t, part.to_begin, {
            stream: sorted((_event(found, Reference(*at), packed.epoch) for at in buffer), key=_key)
            for stream, buffer in zip(note.streams, part.buffers, strict=True)
        })
        for part in packed.parts
    )  # fmt: skip
    inlets = {
        channel: (epoch, mark_of(mark))
        for channel, (epoch, mark) in zip(note.channels, packed.inlets, strict=True)
    }
    gate = GateStanding(packed.epoch, (packed.producer, mark_of(packed.passed)), inlets)
    marker = None if packed.marker is None else marker_of(packed.marker)
    own = (marker, packed.point, mark_of(packed.said), packed.stamped, packed.reach, parts)
    return Standing(gate, *own)


def _event(found: Mapping[Reference, Event], at: Reference, epoch: int) -> Event:
    event = found.get(at)
    if event is None:
        raise Refused("malformed", "a window holds what is no event")
    return event._replace(epoch=epoch)


def _key(event: Event) -> Mark:
    return event.key
