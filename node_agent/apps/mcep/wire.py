"""What brokers and clients say, as bytes between machines: bounded, and checked before it is believed.

data = encode(UpTo(12.5))
decode(data)   # UpTo(t=12.5); raises Refused for anything that is not a message
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.apps.mcep.channel import ChannelId
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Point
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
from node_agent.apps.mcep.moving.messages import Moves
from node_agent.apps.mcep.moving.wire import decode as decode_moves
from node_agent.apps.mcep.moving.wire import encode as encode_moves
from node_agent.apps.mcep.packed import (
    MOST_BYTES,
    MOST_ITEMS,
    Atoms,
    Counts,
    Name,
    PackedEvent,
    PackedMarker,
    PackedMessage,
    PackedRegion,
    Text,
    cells_of,
    checked_number,
    event_of,
    marker_of,
    message_of,
    pack_atoms,
    pack_cells,
    pack_event,
    pack_marker,
    pack_message,
    pack_region,
    region_of,
)
from node_agent.apps.mcep.reuse.offers import Covered, Offer, Offered
from node_agent.apps.mcep.reuse.results import Results as SharedResults
from node_agent.apps.mcep.reuse.results import Share
from node_agent.apps.mcep.switching import Held, Hold, Switch
from node_agent.model.checked import Checked, Whole


class _Seen(Struct, frozen=True, array_like=True, tag="seen"):
    events: Annotated[tuple[PackedEvent, ...], Meta(max_length=MOST_ITEMS)]


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
    message: PackedMessage


class _Results(Struct, frozen=True, array_like=True, tag="results"):
    query: Name
    results: Annotated[tuple[tuple[Whole, PackedEvent, bool], ...], Meta(max_length=MOST_ITEMS)]


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
    region: PackedRegion | None
    fresh: Annotated[tuple[PackedEvent, ...], Meta(max_length=MOST_ITEMS)]
    selections: Annotated[tuple[_Offer, ...], Meta(max_length=MOST_ITEMS)]
    forget: Whole
    upto: float


class _Covered(Struct, frozen=True, array_like=True, tag="covered"):
    """``shares``: an operator, the number of its selection, and what it would depend on without reuse."""

    manager: Text
    outputs: Annotated[tuple[PackedEvent, ...], Meta(max_length=MOST_ITEMS)]
    shares: Annotated[
        tuple[tuple[Text, Whole, Atoms | None, Counts | None], ...], Meta(max_length=MOST_ITEMS)
    ]
    used_cells: Counts
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


def _packed(said: Said) -> _Said:
    match said:
        case Seen(events):
            return _Seen(tuple(map(pack_event, events)))
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
            return _Streamed(query, successor, channel.producer, channel.origin, pack_message(message))
        case Results(query, results):
            return _Results(query, tuple((r.epoch, pack_event(r.event), r.historical) for r in results))
        case Offered():
            region = None if said.region is None else pack_region(said.region)
            fresh = tuple(map(pack_event, said.fresh))
            offers = tuple(_Offer(*each) for each in said.selections)
            own = (said.operator, said.epoch, said.since, region)
            return _Offered(*own, fresh, offers, said.forget, said.upto)
        case Covered(manager, found):
            shares = tuple(
                (each.operator, each.number, pack_atoms(each.wanted), pack_cells(each.wanted_cells))
                for each in found.shares
            )
            outputs = tuple(map(pack_event, found.outputs))
            return _Covered(manager, outputs, shares, pack_cells(found.used_cells) or (), found.empty)
        case Moves(query, moves):
            return _Moves(query, encode_moves(moves))
    raise AssertionError(f"{type(said).__name__} is no message")


def _unpacked(said: _Said) -> Said:
    match said:
        case _Seen():
            return Seen(tuple(map(event_of, said.events)))
        case _UpTo():
            return UpTo(checked_number(said.t, endless=True))
        case _Located():
            place = None if said.place is None else Point(*map(checked_number, said.place))
            return Located(said.query, place, checked_number(said.t))
        case _Placed():
            return Placed(said.query, checked_number(said.t))
        case _Known():
            return Known(tuple((client, checked_number(t, endless=True)) for client, t in said.upto))
        case _Hold():
            return Ordered(said.query, Hold(said.epoch))
        case _Switch():
            return Ordered(said.query, Switch(marker_of(said.marker)))
        case _Answered():
            return Answered(said.query, Held(said.epoch, checked_number(said.position, endless=True)))
        case _Streamed():
            channel = ChannelId(said.producer, said.origin)
            return Streamed(said.query, said.successor, channel, message_of(said.message))
        case _Results():
            found = tuple(Delivered(epoch, event_of(event), old) for epoch, event, old in said.results)
            return Results(said.query, found)
        case _Offered():
            region = None if said.region is None else region_of(said.region)
            own = (said.operator, said.epoch, checked_number(said.since), region)
            offers = tuple(Offer(checked_number(each.end), each.windows) for each in said.selections)
            upto = checked_number(said.upto, endless=True)
            return Offered(*own, tuple(map(event_of, said.fresh)), offers, said.forget, upto)
        case _Covered():
            shares = tuple(
                Share(operator, number, 1.0, None if wanted is None else frozenset(wanted), cells_of(cells))
                for operator, number, wanted, cells in said.shares
            )
            outputs = tuple(map(event_of, said.outputs))
            return Covered(
                said.manager, SharedResults(outputs, shares, cells_of(said.used_cells) or {}, said.empty)
            )
        case _Moves():
            return Moves(said.query, decode_moves(said.said))
