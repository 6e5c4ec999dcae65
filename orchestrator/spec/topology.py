"""The topology file as a value: nodes, mobility, radio."""

from collections.abc import Callable, Iterable
from ipaddress import IPv4Network
from math import ceil, sqrt
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from node_agent.extensions import ExtensionError
from orchestrator.contacts.plan import ContactLink, ContactPlan
from orchestrator.errors import BadInput
from orchestrator.model.trace import Drives, Position
from orchestrator.spec.area import AreaField
from orchestrator.spec.base import NAME_PATTERN, Name, Section, check_name
from orchestrator.spec.contacts import MODEL_CONTACTS, ContactRadio
from orchestrator.spec.core import CORE_HOST, Core
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.hosts import HostDefaults, Hosts, RealNode, host_findings, real_node
from orchestrator.spec.inventory import Host
from orchestrator.spec.links import Links, link_findings
from orchestrator.spec.mobility import MOBILITY_MODELS, MobilityField
from orchestrator.spec.node_ranges import RANGE_PATTERN, count_of, counted
from orchestrator.spec.pathloss import PATH_LOSS_MODELS
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.radio import Radio80211b, RadioField, default_radio
from orchestrator.spec.registered import file_of
from orchestrator.spec.resources import CapacityField, CostsField
from orchestrator.spec.wires import Wire, wire_findings, wire_links

T = TypeVar("T")

MAX_NODES = 10_000
_HOSTS_PER_BLOCK = 250
_GRID_M = 100
NODE_NETWORK = IPv4Network("10.77.0.0/16")


def _read_nodes(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MAX_NODES:
            raise unusable(f"{value} nodes: between 1 and {MAX_NODES} are supported")
        return value
    if not isinstance(value, list | tuple):
        raise unusable(f"{shown(value)} is neither a number of nodes nor a list of names", "nodes: 25")
    listed = list(counted(value))
    if not 1 <= len(listed) <= MAX_NODES:
        raise unusable(f"a list of {len(listed)} nodes: between 1 and {MAX_NODES} are supported")
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for index, entry in listed:
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
    return tuple(first)


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
                    "items": {"type": "string", "pattern": f"^({NAME_PATTERN}|{RANGE_PATTERN})$"},
                },
            ],
            "description": "How many nodes (named n01, n02, …), or a list of their names and of ranges "
            "such as car1..car20",
        }
    ),
]


def _without_places(schema: dict[str, Any]) -> None:
    """With contacts, where nodes are matters only for the map."""
    schema["required"] = [key for key in schema["required"] if key not in ("area", "mobility")]
    by_contacts = {"properties": {"radio": {"properties": {"model": {"const": MODEL_CONTACTS}}}}}
    schema["anyOf"] = [{"required": ["area", "mobility"]}, {"required": ["radio"], **by_contacts}]


class Topology(Section):
    """Nodes, their mobility, their radio."""

    model_config = ConfigDict(json_schema_extra=_without_places)

    name: Name = Field(examples=["rwp-25"])
    nodes: Nodes = Field(examples=[25])
    area: AreaField = Field(examples=["1200 m x 1200 m"])
    mobility: MobilityField = Field(examples=["{model: random_waypoint, speed: 5 m/s}"])
    radio: RadioField = Field(
        default_factory=default_radio, examples=["{model: 80211b, tx_power: -10 dBm, rate: 11 Mb/s}"]
    )

    wires: tuple[Wire, ...] = Field(
        default=(),
        description="Cables between nodes, beside the radio",
        examples=["[{between: [b1, b2], rate: 100 Mb/s}]"],
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
        """Returns each node's address in ``NODE_NETWORK``, by its position in the list."""
        return {
            node: f"10.77.{index // _HOSTS_PER_BLOCK}.{index % _HOSTS_PER_BLOCK + 1}"
            for index, node in enumerate(self.node_names)
        }

    def real_nodes(self) -> dict[str, RealNode]:
        """Returns the nodes that are machines of their own, in the order of the nodes."""
        addresses = self.addresses()
        return {
            node: real_node(node, self.hosts[node], self.defaults, addresses[node])
            for node in self.node_names
            if node in self.hosts
        }

    def machines(self) -> list[Host]:
        """Returns all hosts that are reached over SSH, for any backend."""
        nodes = [node.host for node in self.real_nodes().values()]
        return nodes if self.core is None else [*nodes, self.core.machine()]

    def roles(self) -> dict[str, tuple[str, ...]]:
        """Returns each node's roles as the file states them; most nodes have none."""
        real = self.real_nodes()
        return {node: real[node].roles if node in real else () for node in self.node_names}

    def cores(self) -> dict[str, int]:
        each = self.capacity
        return {node: each if isinstance(each, int) else each.get(node, 1) for node in self.node_names}

    def node_costs(self) -> dict[str, float]:
        """Returns the total cost of each node that has a cost."""
        totals = {
            node: float(sum(cost.values()) if isinstance(cost, dict) else cost)
            for node, cost in self.costs.items()
        }
        return {node: total for node, total in totals.items() if total > 0}

    def static_positions(self) -> dict[str, Position]:
        """Returns each node's fixed position from the file; empty if nodes move or the seed scatters them."""
        return self._asked(lambda: self.mobility.fixed_positions(self.node_names))

    def mean_speed(self) -> float | None:
        """Returns the mean speed in m/s, 0 if no node ever moves; None: compute it from the trace."""
        return self._asked(self.mobility.mean_speed)

    def drives(self, seed: int, until: float) -> Drives:
        """Returns the movements with speeds and, if the model has streets, lanes. Raises BadInput."""
        return self._asked(lambda: self.mobility.drives(self.node_names, self.area, seed, until))

    def contact_plan(self, seed: int, until: float) -> ContactPlan | None:
        """Returns who can talk with whom when, from 0 to ``until`` seconds; None: distance decides that."""
        radio = self.radio
        return radio.plan(self.node_names, seed, until) if isinstance(radio, ContactRadio) else None

    def wire_links(self) -> tuple[ContactLink, ...]:
        """Returns the cables between nodes, as links that are always up."""
        return wire_links(self.wires)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, document: Any) -> Any:
        return cls.completed(document)

    @classmethod
    def completed(cls, document: Any) -> Any:
        """With contacts, where nodes are matters only for the map: without mobility they are on a grid."""
        radio = document.get("radio") if isinstance(document, dict) else None
        if not isinstance(radio, dict) or radio.get("model") != MODEL_CONTACTS or "mobility" in document:
            return document
        nodes = document.get("nodes")
        count = nodes if isinstance(nodes, int) else count_of(nodes) if isinstance(nodes, list | tuple) else 1
        columns = ceil(sqrt(min(max(count, 1), MAX_NODES)))
        side = f"{columns * _GRID_M} m"
        grid = {"columns": columns, "spacing": f"{_GRID_M} m"}
        return {"area": f"{side} x {side}", **document, "mobility": {"model": "static", "grid": grid}}

    @model_validator(mode="after")
    def _everyone_has_a_place(self) -> "Topology":
        findings = self._mobility_findings() + _unknown_nodes(self) + _unknown_owners(self)
        findings += _wire_findings(self)
        findings += host_findings(self.node_names, self.hosts, self.defaults, self.addresses())
        if self.core is not None and CORE_HOST in self.hosts:
            findings.append(Finding(("hosts", CORE_HOST), "this is the name of the host that runs CORE"))
        if self.links is not None and not findings:
            findings += link_findings(self.links, self.node_names, self.real_nodes())
        if findings:
            raise Unusable(*findings)
        return self

    def _mobility_findings(self) -> list[Finding]:
        try:
            return self._ask_mobility(lambda: list(self.mobility.findings_for(self.node_names, self.area)))
        except ExtensionError as error:
            return [Finding(("mobility", "model"), str(error))]

    def _asked(self, question: Callable[[], T]) -> T:
        """Asks the mobility model. Raises BadInput if a user's model fails."""
        try:
            return self._ask_mobility(question)
        except ExtensionError as error:
            raise BadInput(str(error)) from error

    def _ask_mobility(self, question: Callable[[], T]) -> T:
        name = self.mobility.model
        own = MOBILITY_MODELS.is_builtin(name)
        return called(f"mobility model {name}", file_of(name, type(self.mobility)), question, own=own)


def _unknown_nodes(topology: Topology) -> list[Finding]:
    radio = topology.radio
    if isinstance(radio, ContactRadio):
        found = radio.findings_for(topology.node_names)
        return [Finding(("radio", *f.at), f.message, f.hint) for f in found]
    if not isinstance(radio, Radio80211b):
        return []
    model, at = radio.pathloss, ("radio", "pathloss")
    try:
        findings = called(
            f"path-loss model {model.model}",
            file_of(model.model, type(model)),
            lambda: list(model.findings_for(topology.node_names)),
            own=PATH_LOSS_MODELS.is_builtin(model.model),
        )
    except ExtensionError as error:
        return [Finding((*at, "model"), str(error))]
    return [Finding((*at, *f.at), f.message, f.hint) for f in findings]


def _wire_findings(topology: Topology) -> list[Finding]:
    if topology.wires and isinstance(topology.radio, ContactRadio):
        text = "contacts have no radio that wires could be beside: a link that is always up is a wire"
        return [Finding(("wires",), text, "write it in radio.links, with always: true")]
    found = wire_findings(topology.wires, topology.node_names)
    return [Finding(("wires", *f.at), f.message, f.hint) for f in found]


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
