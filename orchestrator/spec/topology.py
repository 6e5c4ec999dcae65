"""Who is there, how they move, which radio: the topology file as a value."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from orchestrator.mobility.trace import Position
from orchestrator.mobility.trace_file import TraceError
from orchestrator.spec.base import NAME_PATTERN, Name, Section, check_name
from orchestrator.spec.core import CORE_HOST, Core
from orchestrator.spec.hosts import HostDefaults, Hosts, RealNode, host_findings, real_node
from orchestrator.spec.inventory import Host
from orchestrator.spec.links import Links, link_findings
from orchestrator.spec.mobility import GaussMarkov, Group, RandomWalk, RandomWaypoint, Static
from orchestrator.spec.pathloss import LossTrace, Matrix
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.radio import Radio80211b, RadioField, default_radio
from orchestrator.spec.recorded import RecordedTrace
from orchestrator.spec.resources import CapacityField, CostsField
from orchestrator.spec.units import LENGTH

MAX_NODES = 10_000
LEAST_CROSSING_S = 0.1
"""Nodes are moved ten times a second."""
_ACROSS = f"would be across in less than {LEAST_CROSSING_S:g} s"
_HOSTS_PER_BLOCK = 250
NODE_NETWORK = IPv4Network("10.77.0.0/16")


class Area(NamedTuple):
    """The rectangle nodes live in, from (0, 0), in metres."""

    width: float
    height: float

    def __str__(self) -> str:
        width, height = (repr(side).removesuffix(".0") for side in self)
        return f"{width} m x {height} m"


def _read_area(value: Any) -> Area:
    parts = value.replace("×", "x").split("x") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise unusable(f"{shown(value)} is not an area", "write it like 1200 m x 1200 m or [1200 m, 1200 m]")
    side = LENGTH.positive()
    return Area(side.read(parts[0]), side.read(parts[1]))


def _read_nodes(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MAX_NODES:
            raise unusable(f"{value} nodes: between 1 and {MAX_NODES} are supported")
        return value
    if not isinstance(value, list | tuple):
        raise unusable(f"{shown(value)} is neither a number of nodes nor a list of names", "nodes: 25")
    if not 1 <= len(value) <= MAX_NODES:
        raise unusable(f"a list of {len(value)} nodes: between 1 and {MAX_NODES} are supported")
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for index, entry in enumerate(value):
        try:
            name = check_name(entry)
        except Unusable as error:
            findings += [Finding((index,), f.message, f.hint) for f in error.findings]
            continue
        if name in first:
            findings.append(Finding((index,), f"the node {shown(name)} is listed twice"))
        first.setdefault(name, index)
    if findings:
        raise Unusable(*findings)
    return tuple(value)


Nodes = Annotated[
    int | tuple[str, ...],
    BeforeValidator(_read_nodes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_NODES},
                {
                    "type": "array",
                    "minItems": 1,
                    "uniqueItems": True,
                    "items": {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
                },
            ],
            "description": "How many nodes (named n01, n02, …), or a list of their names",
        }
    ),
]
AreaField = Annotated[
    Area,
    BeforeValidator(_read_area),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[^x×]+[x×][^x×]+$"},
                {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}},
            ],
            "description": "Width x height of the rectangle the nodes live in",
            "examples": ["1200 m x 1200 m"],
        }
    ),
]


Mobility = Annotated[
    RandomWaypoint | RandomWalk | GaussMarkov | Group | Static | RecordedTrace, Field(discriminator="model")
]


class Topology(Section):
    """Who is there, how they move, which radio."""

    name: Name = Field(examples=["rwp-25"])
    nodes: Nodes = Field(examples=[25])
    area: AreaField = Field(examples=["1200 m x 1200 m"])
    mobility: Mobility = Field(examples=["{model: random_waypoint, speed: 5 m/s}"])
    radio: RadioField = Field(
        default_factory=default_radio, examples=["{model: 80211b, tx_power: -10 dBm, rate: 11 Mb/s}"]
    )

    capacity: CapacityField = 1
    costs: CostsField = Field(default={})
    hosts: Hosts = Field(default={}, description="Real nodes: how each is reached over SSH")
    defaults: HostDefaults = Field(default=HostDefaults(), description="What the real nodes have in common")
    links: Links | None = Field(default=None, description="Emulated links between real nodes on one LAN")
    core: Core | None = Field(default=None, description="The host that runs CORE, for backend: core")

    @property
    def node_names(self) -> tuple[str, ...]:
        if isinstance(self.nodes, tuple):
            return self.nodes
        width = max(2, len(str(self.nodes)))
        return tuple(f"n{number:0{width}}" for number in range(1, self.nodes + 1))

    def addresses(self) -> dict[str, str]:
        """Each node's address in ``NODE_NETWORK``, by its place in the list."""
        return {
            node: f"10.77.{index // _HOSTS_PER_BLOCK}.{index % _HOSTS_PER_BLOCK + 1}"
            for index, node in enumerate(self.node_names)
        }

    def real_nodes(self) -> dict[str, RealNode]:
        """Those nodes that are machines of their own, in the order of the nodes."""
        addresses = self.addresses()
        return {
            node: real_node(node, self.hosts[node], self.defaults, addresses[node])
            for node in self.node_names
            if node in self.hosts
        }

    def machines(self) -> list[Host]:
        """All that is reached over SSH, whichever backend needs it."""
        nodes = [node.host for node in self.real_nodes().values()]
        return nodes if self.core is None else [*nodes, self.core.machine()]

    def roles(self) -> dict[str, tuple[str, ...]]:
        """What each node is for, by the words of whoever owns it; nothing for most."""
        real = self.real_nodes()
        return {node: real[node].roles if node in real else () for node in self.node_names}

    def cores(self) -> dict[str, int]:
        each = self.capacity
        return {node: each if isinstance(each, int) else each.get(node, 1) for node in self.node_names}

    def node_costs(self) -> dict[str, float]:
        """Of nodes that cost anything, all parts of it together."""
        totals = {
            node: float(sum(cost.values()) if isinstance(cost, dict) else cost)
            for node, cost in self.costs.items()
        }
        return {node: total for node, total in totals.items() if total > 0}

    def static_positions(self) -> dict[str, Position]:
        """Where each node stands for good by this file; empty if nodes move or the seed scatters them."""
        if not isinstance(self.mobility, Static) or self.mobility.scatter:
            return {}
        if self.mobility.positions is not None:
            return {node: self.mobility.positions[node] for node in self.node_names}
        grid = self.mobility.grid
        assert grid is not None
        return {
            node: (index % grid.columns * grid.spacing, index // grid.columns * grid.spacing)
            for index, node in enumerate(self.node_names)
        }

    @model_validator(mode="after")
    def _everyone_has_a_place(self) -> "Topology":
        match self.mobility:
            case Static():
                findings = _misnamed(self.node_names, self.mobility) or _outside(self)
            case Group():
                findings = _misgrouped(self.node_names, self.mobility) + _cramped(self.mobility, self.area)
            case RecordedTrace():
                findings = _unlike_the_trace(self, self.mobility)
            case _:
                findings = []
        findings += _hurried(self.mobility, self.area) + _unheard_of(self) + _unknown_owners(self)
        findings += host_findings(self.node_names, self.hosts, self.defaults, self.addresses())
        if self.core is not None and CORE_HOST in self.hosts:
            findings.append(Finding(("hosts", CORE_HOST), "this is the name of the host that runs CORE"))
        if self.links is not None and not findings:
            findings += link_findings(self.links, self.node_names, self.real_nodes())
        if findings:
            raise Unusable(*findings)
        return self


def _misnamed(nodes: tuple[str, ...], mobility: Static) -> list[Finding]:
    if mobility.positions is None:
        return []
    at = ("mobility", "positions")
    known = frozenset(nodes)
    unknown = [
        Finding((*at, name), f"there is no node {shown(name)}", did_you_mean(name, nodes))
        for name in mobility.positions
        if name not in known
    ]
    without = [node for node in nodes if node not in mobility.positions]
    if without:
        unknown.append(Finding(at, f"no position for {_some(without)}", "every node needs one"))
    return unknown


def _hurried(mobility: Mobility, area: Area) -> list[Finding]:
    """Who crosses its room between two looks at it is nowhere in particular, and turns without end."""
    match mobility:
        case RandomWaypoint():
            room, speed = max(area), mobility.speeds[1]
        case RandomWalk():
            room, speed = min(area), mobility.speeds[1]
        case GaussMarkov():
            room, speed = min(area), mobility.fastest
        case Group():
            room, speed = max(area) - 2 * mobility.radius, mobility.speeds[1]
            if 2 * mobility.radius < LEAST_CROSSING_S * mobility.member_speeds[1]:
                text = f"{mobility.radius:g} m: members at up to {mobility.member_speeds[1]:g} m/s {_ACROSS}"
                return [Finding(("mobility", "radius"), text, "use a larger one, or slower members")]
        case _:
            return []
    # A group that does not fit at all is told so elsewhere.
    if room <= 0 or room >= LEAST_CROSSING_S * speed:
        return []
    text = f"{area}: nodes at up to {speed:g} m/s {_ACROSS}"
    return [Finding(("area",), text, "use a larger area, or slower nodes")]


def _unheard_of(topology: Topology) -> list[Finding]:
    radio = topology.radio
    if not isinstance(radio, Radio80211b) or not isinstance(radio.pathloss, Matrix | LossTrace):
        return []
    at = ("radio", "pathloss")
    return [Finding((*at, *f.at), f.message, f.hint) for f in radio.pathloss.findings(topology.node_names)]


def _unknown_owners(topology: Topology) -> list[Finding]:
    nodes = topology.node_names
    known = frozenset(nodes)
    stated: dict[str, Iterable[str]] = {"costs": topology.costs}
    if isinstance(topology.capacity, dict):
        stated["capacity"] = topology.capacity
    return [
        Finding((key, name), f"there is no node {shown(name)}", did_you_mean(name, nodes))
        for key, names in stated.items()
        for name in names
        if name not in known
    ]


def _misgrouped(nodes: tuple[str, ...], mobility: Group) -> list[Finding]:
    at = ("mobility", "groups")
    if isinstance(mobility.groups, int):
        fits = mobility.groups <= len(nodes)
        return [] if fits else [Finding(at, f"{mobility.groups} groups, but only {len(nodes)} nodes")]
    findings = []
    known, seen = frozenset(nodes), set[str]()
    for number, members in enumerate(mobility.groups):
        for index, node in enumerate(members):
            if node not in known:
                text = f"there is no node {shown(node)}"
                findings.append(Finding((*at, number, index), text, did_you_mean(node, nodes)))
            elif node in seen:
                findings.append(Finding((*at, number, index), f"{shown(node)} is in a group already"))
            seen.add(node)
    without = [node for node in nodes if node not in seen]
    if without:
        hint = "every node needs one; a group may consist of its leader alone"
        findings.append(Finding(at, f"no group for {_some(without)}", hint))
    return findings


def _cramped(mobility: Group, area: Area) -> list[Finding]:
    if 2 * mobility.radius < min(area):
        return []
    text = f"{mobility.radius:g} m: a group of that radius does not fit into {area}"
    return [Finding(("mobility", "radius"), text, f"use less than {min(area) / 2:g} m, or a larger area")]


def _unlike_the_trace(topology: Topology, mobility: RecordedTrace) -> list[Finding]:
    try:
        mobility.read(topology.node_names, topology.area)
    except TraceError as error:
        name = Path(error.file).name
        place = name if error.line is None else f"{name}, line {error.line}"
        return [Finding(("mobility", "file"), f"{place}: {error.message}", error.hint)]
    return []


def _some(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:5]) + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")


def _outside(topology: Topology) -> list[Finding]:
    area = topology.area
    outside = [n for n, (x, y) in topology.static_positions().items() if x > area.width or y > area.height]
    if isinstance(topology.mobility, Static) and topology.mobility.grid is not None and outside:
        text = f"the grid does not fit into {area} (first outside: {outside[0]})"
        return [Finding(("mobility", "grid"), text, "use a smaller spacing, other columns or a larger area")]
    text = f"outside the area of {area}"
    return [Finding(("mobility", "positions", node), text) for node in outside]
