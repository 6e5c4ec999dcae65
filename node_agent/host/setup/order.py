"""Describes one node's network during a run, as a value that is sent as a JSON file."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,63}$")]
Hardware = Annotated[str, Meta(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")]


class Ibss(Struct, frozen=True, tag_field="mode", tag="ibss"):
    """Ad-hoc mode. ``frequency`` is in MHz. With a ``bssid`` the cells stay one when they part and meet."""

    ssid: str
    frequency: int
    bssid: Hardware | None = None


class Mesh(Struct, frozen=True, tag_field="mode", tag="mesh"):
    """802.11s without its own forwarding: the routing daemon finds the routes."""

    ssid: str
    frequency: int


class Lan(Struct, frozen=True, tag_field="mode", tag="lan"):
    """A cable and a switch. The manager keeps an interface that works already."""


Radio = Ibss | Mesh | Lan


class ShapedLink(Struct, frozen=True):
    """``loss`` applies to frames from this peer (1: no link); ``rate``
    (bit/s) and ``delay`` to those to it."""

    node: Word
    hardware: Hardware
    loss: Annotated[float, Meta(ge=0, le=1)] = 0.0
    rate: Annotated[float, Meta(ge=8)] | None = None
    delay: Annotated[float, Meta(ge=0)] = 0.0


class SetupOrder(Struct, frozen=True):
    """``address`` includes its prefix length. Without ``address`` and
    ``radio`` the interface stays as it is."""

    run: str
    interface: Word
    address: str | None = None
    radio: Radio | None = None
    forwarding: bool = False
    links: tuple[ShapedLink, ...] = ()


def to_json(order: SetupOrder) -> bytes:
    return msgspec.json.encode(order)


def from_json(data: bytes) -> SetupOrder:
    return msgspec.json.decode(data, type=SetupOrder)
