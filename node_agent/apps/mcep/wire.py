"""What brokers and clients say, as bytes between machines: bounded, and checked before it is believed.

data = encode(UpTo(12.5))
decode(data)   # UpTo(t=12.5); raises Refused for anything that is not a message
"""

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Log, Marker, Message
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Box, Circle, Place, Point, Polygon, Region, region_problem
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Placed,
    Results,
    Said,
    Seen,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import AtomicId, Event, Mark, Shared
from node_agent.apps.mcep.moving.messages import Moves
from node_agent.apps.mcep.moving.wire import decode as decode_moves
from node_agent.apps.mcep.moving.wire import encode as encode_moves
from node_agent.apps.mcep.reuse.cells import Cells
from node_agent.apps.mcep.reuse.offers import Covered, Offer, Offered
from node_agent.apps.mcep.reuse.results import Results as SharedResults
from node_agent.apps.mcep.reuse.results import Share
from node_agent.apps.mcep.switching import Held, Hold, Switch
from node_agent.model.checked import Checked, Refused, Whole

MOST_BYTES = 1_000_000
MOST_ITEMS = 10_000
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=1000)]
Numbers = Annotated[tuple[float, ...], Meta(max_length=2000)]
Key = Annotated[tuple[float | str, ...], Meta(max_length=4)]


_Atoms = Annotated[tuple[tuple[Name, Whole], ...], Meta(max_length=MOST_ITEMS)]
_Counts = Annotated[tuple[tuple[int, int, int, Whole], ...], Meta(max_length=MOST_ITEMS)]
"""Of a grid: three numbers of a cell, and how many atomic events are in it."""


class _Shared(Struct, frozen=True, array_like=True):
    origin: tuple[Text, Whole, float, Whole]
    wanted: _Atoms | None
    used_cells: _Counts
    wanted_cells: _Counts | None


class _Event(Struct, frozen=True, array_like=True, tag="event"):
    t: float
    seq: Whole
    source: Name
    kind: Name
    place: Numbers
    attributes: Annotated[dict[Name, float | int | str | bool], Meta(max_length=100)]
    epoch: Whole
    born: Whole
    provenance: _Atoms
    shared: _Shared | None = None


class _Heartbeat(Struct, frozen=True, array_like=True, tag="beat"):
    t: float


class _Region(Struct, frozen=True, array_like=True):
    kind: Name
    numbers: Numbers


class PackedMarker(Struct, frozen=True, array_like=True, tag="marker"):
    t: float
    epoch: Whole
    region: _Region | None
    points: Annotated[dict[Name, float], Meta(max_length=MOST_ITEMS)]
    touched: Annotated[tuple[Name, ...], Meta(max_length=MOST_ITEMS)]


class _Log(Struct, frozen=True, array_like=True, tag="log"):
    first: Key
    last: Key


_Message = _Event | _Heartbeat | PackedMarker | _Log


class _Seen(Struct, frozen=True, array_like=True, tag="seen"):
    events: Annotated[tuple[_Event, ...], Meta(max_length=MOST_ITEMS)]


class _UpTo(Struct, frozen=True, array_like=True, tag="up to"):
    t: float


class _Located(Struct, frozen=True, array_like=True, tag="located"):
    query: Name
    place: tuple[float, float] | None
    t: float


class _Placed(Struct, frozen=True, array_like=True, tag="placed"):
    query: Name
    t: float


class _Known(Struct, frozen=True, array_like=True, tag="known"):
    upto: Annotated[tuple[tuple[Name, float], ...], Meta(max_length=MOST_ITEMS)]


class _Hold(Struct, frozen=True, array_like=True, tag="hold"):
    query: Name
    epoch: Whole


class _Switch(Struct, frozen=True, array_like=True, tag="switch"):
    query: Name
    marker: PackedMarker


class _Answered(Struct, frozen=True, array_like=True, tag="held"):
    query: Name
    epoch: Whole
    position: float


class _Streamed(Struct, frozen=True, array_like=True, tag="streamed"):
    query: Name
    successor: Name
    producer: Name
    origin: Text
    message: _Message


class _Results(Struct, frozen=True, array_like=True, tag="results"):
    query: Name
    results: Annotated[tuple[tuple[Whole, _Event, bool], ...], Meta(max_length=MOST_ITEMS)]


class _Moves(Struct, frozen=True, array_like=True, tag="moves"):
    query: Name
    said: Annotated[bytes, Meta(max_length=MOST_BYTES)]


class _Offer(Struct, frozen=True, array_like=True):
    end: float
    windows: Annotated[
        tuple[tuple[Name, Annotated[tuple[Whole, ...], Meta(max_length=MOST_ITEMS)]], ...],
        Meta(max_length=100),
    ]


class _Offered(Struct, frozen=True, array_like=True, tag="offered"):
    operator: Text
    epoch: Whole
    since: float
    region: _Region | None
    fresh: Annotated[tuple[_Event, ...], Meta(max_length=MOST_ITEMS)]
    selections: Annotated[tuple[_Offer, ...], Meta(max_length=MOST_ITEMS)]
    forget: Whole
    upto: float


class _Covered(Struct, frozen=True, array_like=True, tag="covered"):
    """``shares``: an operator, the number of its selection, and what it would depend on without reuse."""

    manager: Text
    outputs: Annotated[tuple[_Event, ...], Meta(max_length=MOST_ITEMS)]
    shares: Annotated[
        tuple[tuple[Text, Whole, _Atoms | None, _Counts | None], ...], Meta(max_length=MOST_ITEMS)
    ]
    used_cells: _Counts
    empty: Annotated[tuple[tuple[Text, Whole], ...], Meta(max_length=MOST_ITEMS)]


_Streams = _Known | _Hold | _Switch | _Answered | _Streamed
_Said = _Seen | _UpTo | _Located | _Placed | _Streams | _Results | _Offered | _Covered | _Moves
_DECODER: Checked[_Said] = Checked(_Said, MOST_BYTES, "msgpack")
_ENCODER = msgspec.msgpack.Encoder()


def encode(said: Said) -> bytes:
    return _ENCODER.encode(_packed(said))


def decode(data: bytes) -> Said:
    """Raises Refused, and nothing else, whatever the bytes are."""
    return _unpacked(_DECODER.decode(data))


_MESSAGES: Checked[_Message] = Checked(_Message, MOST_BYTES, "msgpack")


def encode_message(message: Message) -> bytes:
    """What a channel brings, by itself."""
    return _ENCODER.encode(_pack_message(message))


def decode_message(data: bytes) -> Message:
    """Raises Refused, and nothing else, whatever the bytes are."""
    return _message(_MESSAGES.decode(data))


def _packed(said: Said) -> _Said:
    match said:
        case Seen(events):
            return _Seen(tuple(map(_pack_event, events)))
        case UpTo(t):
            return _UpTo(t)
        case Located(query, place, t):
            return _Located(query, place, t)
        case Placed(query, t):
            return _Placed(query, t)
        case Known(upto):
            return _Known(upto)
        case Ordered(query, Hold(epoch)):
            return _Hold(query, epoch)
        case Ordered(query, Switch(marker)):
            return _Switch(query, pack_marker(marker))
        case Answered(query, Held(epoch, position)):
            return _Answered(query, epoch, position)
        case Streamed(query, successor, channel, message):
            return _Streamed(query, successor, channel.producer, channel.origin, _pack_message(message))
        case Results(query, results):
            return _Results(query, tuple((r.epoch, _pack_event(r.event), r.historical) for r in results))
        case Offered():
            region = None if said.region is None else _pack_region(said.region)
            fresh = tuple(map(_pack_event, said.fresh))
            offers = tuple(_Offer(*each) for each in said.selections)
            own = (said.operator, said.epoch, said.since, region)
            return _Offered(*own, fresh, offers, said.forget, said.upto)
        case Covered(manager, found):
            shares = tuple(
                (each.operator, each.number, _atoms(each.wanted), _counts(each.wanted_cells))
                for each in found.shares
            )
            outputs = tuple(map(_pack_event, found.outputs))
            return _Covered(manager, outputs, shares, _counts(found.used_cells) or (), found.empty)
        case Moves(query, moves):
            return _Moves(query, encode_moves(moves))
    raise AssertionError(f"{type(said).__name__} is no message")


def _unpacked(said: _Said) -> Said:
    match said:
        case _Seen():
            return Seen(tuple(map(_event, said.events)))
        case _UpTo():
            return UpTo(_number(said.t, endless=True))
        case _Located():
            place = None if said.place is None else Point(*map(_number, said.place))
            return Located(said.query, place, _number(said.t))
        case _Placed():
            return Placed(said.query, _number(said.t))
        case _Known():
            return Known(tuple((client, _number(t, endless=True)) for client, t in said.upto))
        case _Hold():
            return Ordered(said.query, Hold(said.epoch))
        case _Switch():
            return Ordered(said.query, Switch(marker_of(said.marker)))
        case _Answered():
            return Answered(said.query, Held(said.epoch, _number(said.position, endless=True)))
        case _Streamed():
            channel = ChannelId(said.producer, said.origin)
            return Streamed(said.query, said.successor, channel, _message(said.message))
        case _Results():
            found = tuple(Delivered(epoch, _event(event), old) for epoch, event, old in said.results)
            return Results(said.query, found)
        case _Offered():
            region = None if said.region is None else _region(said.region)
            own = (said.operator, said.epoch, _number(said.since), region)
            offers = tuple(Offer(_number(each.end), each.windows) for each in said.selections)
            upto = _number(said.upto, endless=True)
            return Offered(*own, tuple(map(_event, said.fresh)), offers, said.forget, upto)
        case _Covered():
            shares = tuple(
                Share(operator, number, 1.0, None if wanted is None else frozenset(wanted), _cells(cells))
                for operator, number, wanted, cells in said.shares
            )
            outputs = tuple(map(_event, said.outputs))
            return Covered(
                said.manager, SharedResults(outputs, shares, _cells(said.used_cells) or {}, said.empty)
            )
        case _Moves():
            return Moves(said.query, decode_moves(said.said))


def _pack_message(message: Message) -> _Message:
    match message:
        case Event():
            return _pack_event(message)
        case Heartbeat(t):
            return _Heartbeat(t)
        case Marker():
            return pack_marker(message)
        case Log(first, last):
            return _Log(first, last)


def _message(message: _Message) -> Message:
    match message:
        case _Event():
            return _event(message)
        case _Heartbeat():
            return Heartbeat(_number(message.t))
        case PackedMarker():
            return marker_of(message)
        case _Log():
            return Log(mark_of(message.first), mark_of(message.last))


def _pack_event(event: Event) -> _Event:
    provenance = tuple(sorted(event.provenance))
    own = (event.t, event.seq, event.source, event.type)
    rest = (dict(event.attributes), event.epoch, event.born, provenance)
    return _Event(*own, _corners(event.place), *rest, _pack_shared(event.shared))


def _pack_shared(shared: Shared | None) -> _Shared | None:
    if shared is None:
        return None
    used = _counts(shared.used_cells) or ()
    return _Shared(shared.origin, _atoms(shared.wanted), used, _counts(shared.wanted_cells))


def _shared(shared: _Shared | None) -> Shared | None:
    if shared is None:
        return None
    name, number, t, seq = shared.origin
    wanted = None if shared.wanted is None else frozenset(shared.wanted)
    cells = _cells(shared.used_cells) or {}
    return Shared((name, number, _number(t), seq), wanted, cells, _cells(shared.wanted_cells))


def _atoms(wanted: frozenset[AtomicId] | None) -> tuple[AtomicId, ...] | None:
    return None if wanted is None else tuple(sorted(wanted))


def _counts(cells: Cells | None) -> tuple[tuple[int, int, int, int], ...] | None:
    return None if cells is None else tuple((*cell, count) for cell, count in cells.items())


def _cells(counts: tuple[tuple[int, int, int, int], ...] | None) -> Cells | None:
    return None if counts is None else {(x, y, t): count for x, y, t, count in counts}


def _event(event: _Event) -> Event:
    place = _place(event.place)
    own = (_number(event.t), event.seq, event.source, event.kind, place, event.attributes)
    return Event(*own, event.epoch, event.born, frozenset(event.provenance), _shared(event.shared))


def _corners(place: Place) -> tuple[float, ...]:
    return tuple(place) if isinstance(place, Point) else (place.x0, place.y0, place.x1, place.y1)


def _place(numbers: tuple[float, ...]) -> Place:
    checked = [_number(each) for each in numbers]
    if len(checked) == 2:
        return Point(*checked)
    if len(checked) == 4:
        return Box(*checked)
    raise Refused("malformed", f"a place has 2 or 4 numbers, not {len(checked)}")


def pack_marker(marker: Marker) -> PackedMarker:
    region = None if marker.region is None else _pack_region(marker.region)
    return PackedMarker(marker.t, marker.epoch, region, dict(marker.points), tuple(sorted(marker.touched)))


def marker_of(marker: PackedMarker) -> Marker:
    region = None if marker.region is None else _region(marker.region)
    points = {name: _number(t) for name, t in marker.points.items()}
    return Marker(_number(marker.t), marker.epoch, region, points, frozenset(marker.touched))


def _pack_region(region: Region) -> _Region:
    match region:
        case Box(x0, y0, x1, y1):
            return _Region("box", (x0, y0, x1, y1))
        case Circle(x, y, radius):
            return _Region("circle", (x, y, radius))
        case Polygon(corners):
            return _Region("polygon", tuple(number for corner in corners for number in corner))


def _region(region: _Region) -> Region:
    numbers: Any = region.numbers
    made: object = None
    if region.kind == "box" and len(numbers) == 4:
        made = Box(*numbers)
    elif region.kind == "circle" and len(numbers) == 3:
        made = Circle(*numbers)
    elif region.kind == "polygon" and len(numbers) % 2 == 0:
        made = Polygon(tuple(Point(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)))
    problem = region_problem(made)
    if problem is not None:
        raise Refused("malformed", problem)
    assert isinstance(made, Region)
    return made


def mark_of(key: tuple[float | str, ...]) -> Mark:
    """A position in the order of events: a time, a number, a source. Others could not be compared."""
    kinds = (float | int, float | int, str)
    if any(not isinstance(part, kind) for part, kind in zip(key, kinds, strict=False)) or len(key) > len(
        kinds
    ):
        raise Refused("malformed", "it is no position among events")
    if any(isinstance(part, float) and math.isnan(part) for part in key):
        raise Refused("malformed", "it is no position among events")
    return key


def _number(value: float, *, endless: bool = False) -> float:
    if math.isnan(value) or (math.isinf(value) and not endless):
        raise Refused("malformed", f"{value} is no time or place")
    return value
