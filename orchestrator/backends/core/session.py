"""A run as CORE is told of it: reference point, nodes, air, and the way that each node goes.

Positions are pixels there. Here a pixel is a metre, for EMANE (which has the Earth's true shape) too.
"""

from typing import NamedTuple

from msgspec import Struct

from orchestrator.backends.core.air import Air, air_of
from orchestrator.model.trace import Trace
from orchestrator.radio.path_loss.two_ray import TwoRay
from orchestrator.spec.radio import Radio80211b
from orchestrator.spec.topology import Topology

INTERFACE = "eth0"
PIXELS_PER_SCALE = 100.0
"""``scale`` is the metres of a hundred pixels."""
_ON_THE_GROUND_M = 1.0
_SEMI_MAJOR_M = 6378137.0
_MERIDIAN_M = 6335439.327
"""WGS 84: the Earth's radius along the equator, and how it is curved there towards the poles."""

PixelPath = tuple[tuple[float, float, float], ...]
"""Seconds, x and y."""


class Location(Struct, frozen=True):
    """Where (0, 0) is on Earth.

    On the equator, for CORE places pixels by Web Mercator: anywhere else its metres are too short, by 0.675
    at its default latitude. The altitude is the height of every antenna, and path loss follows from it.
    """

    lat: float = 0.0
    lon: float = 0.0
    alt: float = _ON_THE_GROUND_M
    scale: float = PIXELS_PER_SCALE


class CoreNode(Struct, frozen=True):
    id: int
    name: str
    address: str
    x: float
    y: float


class Session(Struct, frozen=True):
    """``mark``: by which it is found again, and told from sessions that are not the run's."""

    mark: str
    location: Location
    air: Air
    air_id: int
    nodes: tuple[CoreNode, ...]


class Pixels(NamedTuple):
    """How many pixels a metre is. Web Mercator takes the Earth for a ball: on the equator, EMANE measures
    0.7 % less from north to south than it was told."""

    x: float
    y: float

    def of(self, position: tuple[float, float]) -> tuple[float, float]:
        return position[0] * self.x, position[1] * self.y


def pixels(air: Air) -> Pixels:
    return Pixels(1.0, _SEMI_MAJOR_M / _MERIDIAN_M if air.emane else 1.0)


def session_of(topology: Topology, mark: str, trace: Trace) -> Session:
    air = air_of(topology)
    to_pixels, addresses = pixels(air), topology.addresses()
    nodes = tuple(
        CoreNode(number, name, addresses[name], *to_pixels.of(trace.position(name, 0.0)))
        for number, name in enumerate(topology.node_names, start=1)
    )
    location = Location(alt=antenna_height(topology))
    return Session(mark, location, air, len(nodes) + 1, nodes)


def antenna_height(topology: Topology) -> float:
    radio = topology.radio
    if isinstance(radio, Radio80211b) and isinstance(radio.pathloss, TwoRay):
        return radio.pathloss.antenna_height
    return _ON_THE_GROUND_M


def pixel_paths(trace: Trace, air: Air) -> dict[str, PixelPath]:
    to_pixels = pixels(air)
    return {
        node: tuple((point.t, *to_pixels.of((point.x, point.y))) for point in path)
        for node, path in trace.paths.items()
    }
