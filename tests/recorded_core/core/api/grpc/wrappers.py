"""The values that sessions are described by, as far as the driver uses them."""

from dataclasses import dataclass, field
from enum import Enum


class SessionState(Enum):
    DEFINITION = 1
    CONFIGURATION = 2
    INSTANTIATION = 3
    RUNTIME = 4
    DATACOLLECT = 5
    SHUTDOWN = 6


class NodeType(Enum):
    DEFAULT = 0
    WIRELESS_LAN = 6
    EMANE = 10


@dataclass
class Position:
    x: float
    y: float


@dataclass
class Interface:
    id: int
    name: str | None = None
    ip4: str | None = None
    ip4_mask: int | None = None


@dataclass
class SessionLocation:
    x: float
    y: float
    z: float
    lat: float
    lon: float
    alt: float
    scale: float


@dataclass
class Node:
    id: int
    name: str
    type: NodeType
    position: Position
    emane: str | None
    model: str
    services: set[str] = field(default_factory=set)
    wlan: dict[str, str] = field(default_factory=dict)
    emane_config: dict[str, str] = field(default_factory=dict)

    def set_wlan(self, config: dict[str, str]) -> None:
        assert all(isinstance(value, str) for value in config.values())
        self.wlan.update(config)

    def set_emane_model(self, model: str, config: dict[str, str]) -> None:
        assert model == self.emane
        assert all(isinstance(value, str) for value in config.values())
        self.emane_config.update(config)


@dataclass
class Link:
    node: Node
    interface: Interface


@dataclass
class SessionSummary:
    id: int
    state: SessionState


@dataclass
class Session:
    id: int
    state: SessionState
    dir: str
    metadata: dict[str, str] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    location: SessionLocation = field(
        default_factory=lambda: SessionLocation(
            x=0.0, y=0.0, z=0.0, lat=47.57917, lon=-122.13232, alt=2.0, scale=150.0
        )
    )

    def add_node(
        self,
        _id: int,
        *,
        name: str,
        position: Position,
        _type: NodeType = NodeType.DEFAULT,
        model: str = "PC",
        emane: str | None = None,
    ) -> Node:
        node = Node(_id, name, _type, position, emane, model)
        self.nodes[_id] = node
        return node

    def add_link(self, *, node1: Node, node2: Node, iface1: Interface) -> None:
        assert node2.type in (NodeType.WIRELESS_LAN, NodeType.EMANE)
        self.links.append(Link(node1, iface1))
