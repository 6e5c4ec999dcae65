"""Events, markers, regions and what else channels bring, as bounded values that are checked before they are
believed.

    data = encode_message(Heartbeat(12.5))
"""

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.channel import Heartbeat, Log, Marker, Message
from node_agent.apps.mcep.geometry import Box, Circle, Place, Point, Polygon, Region, region_problem
from node_agent.apps.mcep.model import AtomicId, Event, Mark, Shared
from node_agent.apps.mcep.reuse.cells import Cells
from node_agent.model.checked import Checked, Refused, Whole

MOST_BYTES = 1_000_000
MOST_ITEMS = 10_000
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=1000)]
Numbers = Annotated[tuple[float, ...], Meta(max_length=2000)]
Key = Annotated[tuple[float | str, ...], Meta(max_length=4)]


Atoms = Annotated[tuple[tuple[Name, Whole], ...], Meta(max_length=MOST_ITEMS)]
Counts = Annotated[tuple[tuple[int, int, int, Whole], ...], Meta(max_length=MOST_ITEMS)]
"""Of a grid: three numbers of a cell, and how many atomic events are in it."""


class PackedShared(Struct, frozen=True, array_like=True):
    origin: tuple[Text, Whole, float, Whole]
    wanted: Atoms | None
    used_cells: Counts
    wanted_cells: Counts | None


class PackedEvent(Struct, frozen=True, array_like=True, tag="event"):
    t: float
    seq: Whole
    source: Name
    kind: Name
    place: Numbers
    attributes: Annotated[dict[Name, float | int | str | bool], Meta(max_length=100)]
    epoch: Whole
    born: Whole
    provenance: Atoms
    shared: PackedShared | None = None


class PackedHeartbeat(Struct, frozen=True, array_like=True, tag="beat"):
    t: float


class PackedRegion(Struct, frozen=True, array_like=True):
    kind: Name
    numbers: Numbers


class PackedMarker(Struct, frozen=True, array_like=True, tag="marker"):
    t: float
    epoch: Whole
    region: PackedRegion | None
    points: Annotated[dict[Name, float], Meta(max_length=MOST_ITEMS)]
    touched: Annotated[tuple[Name, ...], Meta(max_length=MOST_ITEMS)]


class PackedLog(Struct, frozen=True, array_like=True, tag="log"):
    first: Key
    last: Key


PackedMessage = PackedEvent | PackedHeartbeat | PackedMarker | PackedLog

_ENCODER = msgspec.msgpack.Encoder()
_MESSAGES: Checked[PackedMessage] = Checked(PackedMessage, MOST_BYTES, "msgpack")


def encode_message(message: Message) -> bytes:
    """What a channel brings, by itself."""
    return _ENCODER.encode(pack_message(message))


def decode_message(data: bytes) -> Message:
    """Raises Refused, and nothing else, whatever the bytes are."""
    return message_of(_MESSAGES.decode(data))


def pack_message(message: Message) -> PackedMessage:
    match message:
        case Event():
            return pack_event(message)
        case Heartbeat(t):
            return PackedHeartbeat(t)
        case Marker():
            return pack_marker(message)
        case Log(first, last):
            return PackedLog(first, last)


def message_of(message: PackedMessage) -> Message:
    match message:
        case PackedEvent():
            return event_of(message)
        case PackedHeartbeat():
            return Heartbeat(checked_number(message.t))
        case PackedMarker():
            return marker_of(message)
        case PackedLog():
            return Log(mark_of(message.first), mark_of(message.last))


def pack_event(event: Event) -> PackedEvent:
    provenance = tuple(sorted(event.provenance))
    own = (event.t, event.seq, event.source, event.type)
    rest = (dict(event.attributes), event.epoch, event.born, provenance)
    return PackedEvent(*own, _corners(event.place), *rest, _pack_shared(event.shared))


def _pack_shared(shared: Shared | None) -> PackedShared | None:
    if shared is None:
        return None
    used = pack_cells(shared.used_cells) or ()
    return PackedShared(shared.origin, pack_atoms(shared.wanted), used, pack_cells(shared.wanted_cells))


def _shared(shared: PackedShared | None) -> Shared | None:
    if shared is None:
        return None
    name, number, t, seq = shared.origin
    wanted = None if shared.wanted is None else frozenset(shared.wanted)
    cells = cells_of(shared.used_cells) or {}
    return Shared((name, number, checked_number(t), seq), wanted, cells, cells_of(shared.wanted_cells))


def pack_atoms(wanted: frozenset[AtomicId] | None) -> tuple[AtomicId, ...] | None:
    return None if wanted is None else tuple(sorted(wanted))


def pack_cells(cells: Cells | None) -> tuple[tuple[int, int, int, int], ...] | None:
    return None if cells is None else tuple((*cell, count) for cell, count in cells.items())


def cells_of(counts: tuple[tuple[int, int, int, int], ...] | None) -> Cells | None:
    return None if counts is None else {(x, y, t): count for x, y, t, count in counts}


def event_of(event: PackedEvent) -> Event:
    place = _place(event.place)
    own = (checked_number(event.t), event.seq, event.source, event.kind, place, event.attributes)
    return Event(*own, event.epoch, event.born, frozenset(event.provenance), _shared(event.shared))


def _corners(place: Place) -> tuple[float, ...]:
    return tuple(place) if isinstance(place, Point) else (place.x0, place.y0, place.x1, place.y1)


def _place(numbers: tuple[float, ...]) -> Place:
    checked = [checked_number(each) for each in numbers]
    if len(checked) == 2:
        return Point(*checked)
    if len(checked) == 4:
        return Box(*checked)
    raise Refused("malformed", f"a place has 2 or 4 numbers, not {len(checked)}")


def pack_marker(marker: Marker) -> PackedMarker:
    region = None if marker.region is None else pack_region(marker.region)
    return PackedMarker(marker.t, marker.epoch, region, dict(marker.points), tuple(sorted(marker.touched)))


def marker_of(marker: PackedMarker) -> Marker:
    region = None if marker.region is None else region_of(marker.region)
    points = {name: checked_number(t) for name, t in marker.points.items()}
    return Marker(checked_number(marker.t), marker.epoch, region, points, frozenset(marker.touched))


def pack_region(region: Region) -> PackedRegion:
    match region:
        case Box(x0, y0, x1, y1):
            return PackedRegion("box", (x0, y0, x1, y1))
        case Circle(x, y, radius):
            return PackedRegion("circle", (x, y, radius))
        case Polygon(corners):
            return PackedRegion("polygon", tuple(number for corner in corners for number in corner))


def region_of(region: PackedRegion) -> Region:
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


def checked_number(value: float, *, endless: bool = False) -> float:
    if math.isnan(value) or (math.isinf(value) and not endless):
        raise Refused("malformed", f"{value} is no time or place")
    return value
