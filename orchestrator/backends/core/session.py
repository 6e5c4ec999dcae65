"""Describes a run for CORE: reference point, nodes, radio, and each node's path.

CORE's positions are pixels. Here a pixel is a metre, also for EMANE, which uses the Earth's true shape.
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
"""``scale``: the metres of a hundred pixels."""
_ON_THE_GROUND_M = 1.0
_SEMI_MAJOR_M = 6378137.0
_MERIDIAN_M = 6335439.327
"""WGS 84: the Earth's radius along the equator, and its radius of curvature there towards the poles."""

PixelPath = tuple[tuple[float, float, float], ...]
"""Seconds, x, y."""


class Location(Struct, frozen=True):
    """Where (0, 0) is on Earth.

    On the equator, because CORE places pixels by Web Mercator: elsewhere its metres are too short, by 0.675
    at its default latitude. The altitude is the height of every antenna, and determines the path loss.
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
    """``mark`` identifies the session as the run's."""

    mark: str
    location: Location
    air: Air
    air_id: int
    nodes: tuple[CoreNode, ...]


class Pixels(NamedTuple):
    """How many pixels a metre is. Web Mercator treats the Earth as a sphere: on the equator, EMANE measures
    0.7 % less from north to south than configured."""

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
