"""Defines what a placement policy is, and what it is given.
Rove's own are in ``placements``, one file each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from node_agent.apps.dataflow.model.query import Query
from node_agent.extensions import ExtensionError
from node_agent.extensions.files import short_name
from node_agent.extensions.guard import Failed, Foreign, guarded
from orchestrator.apps.dataflow.planning.arrangement import Choose, Placed, Slot, arranged, within_roles
from orchestrator.planning.distances import Distance
from orchestrator.spec.base import Section, Seed

WHAT = "placement policy"
LIMIT_S = 1.0
"""Limit of processor time in which a policy that others wrote must choose one node."""


class Drawn(Section):
    """Placement by an order of the nodes; without a seed of its own it follows the experiment's."""

    seed: Seed | None = None


class ForeignPlacement(Drawn):
    """Placement by a policy that others wrote."""

    policy: str


@dataclass(frozen=True)
class Site:
    """What a policy places on: a query, and nodes in an ``order`` that the seed decides.

    ``needs``: cores that a replica of each operator needs; ``cores``: those of each node. ``roles``: by node,
    what it is meant for. ``settings``: the section ``placement`` of the file.
    """

    query: Query
    order: Sequence[str]
    needs: Mapping[str, float]
    cores: Mapping[str, int]
    roles: Mapping[str, Sequence[str]]
    settings: Section
    measure: Callable[[], Distance]
    foresee: Callable[[], Distance]

    @cached_property
    def distance(self) -> Distance:
        """Returns a function ``distance(a, b)``: how far two nodes are apart through the network at the
        start.
        """
        return self.measure()

    @cached_property
    def mean_distance(self) -> Distance:
        """Returns a function ``distance(a, b)``: how far two nodes are apart on average during the run, by
        the movements that the topology plans for them.
        """
        return self.foresee()


Hosts = Callable[[Site, Mapping[str, int]], dict[Slot, str]]
"""Returns a node for each replica, by operator and index, given how many there are; some may be missing."""
Place = Callable[[Slot, Placed, Site], str | None]


@dataclass(frozen=True)
class PlacementPolicy:
    """Decides where replicas go. ``section``: what may be in ``placement`` beside the policy's name.

    ``on_any_nodes``: whether it goes by CPU and distance alone, one by one, so that ``replicas: auto`` can
    ask it about networks that are only expected. Rove's own may say so; for others k is derived as for
    ``random``.

    POLICY = PlacementPolicy(one_by_one(lambda site: at_random(site.order)), "drawn at random")
    """

    hosts: Hosts
    description: str = ""
    section: type[Section] = ForeignPlacement
    on_any_nodes: bool = False


def one_by_one(make: Callable[[Site], Choose]) -> Hosts:
    """Makes a policy that places replicas one after the other, so that a larger k moves none;
    respects roles.
    """

    def hosts(site: Site, counts: Mapping[str, int]) -> dict[Slot, str]:
        return arranged(site.query, counts, within_roles(site.roles, site.query.names(), make(site)))

    return hosts


def checked_placement(name: str, value: object) -> PlacementPolicy:
    """Accepts a PlacementPolicy, or a function ``place(slot, placed, site)`` that names the next replica's
    node.
    """
    if isinstance(value, PlacementPolicy):
        return value
    if not callable(value) or isinstance(value, type):
        kind = "a class" if isinstance(value, type) else type(value).__name__
        raise ExtensionError(f"{name} is {kind}, neither a function nor a PlacementPolicy")
    place: Place = value
    foreign = Foreign.of(WHAT, short_name(name), place)
    description = (value.__doc__ or "").strip().partition("\n")[0]
    return PlacementPolicy(one_by_one(lambda site: _guarded(place, foreign, site)), description)


def _guarded(place: Place, foreign: Foreign, site: Site) -> Choose:
    def choose(slot: Slot, placed: Placed) -> str | None:
        shown = MappingProxyType(placed)
        return guarded(foreign, lambda: _checked(place(slot, shown, site), slot, placed, site), LIMIT_S)

    return choose


def _checked(node: object, slot: Slot, placed: Placed, site: Site) -> str | None:
    replica = f"{slot[0]}/{slot[1]}"
    if node is None:
        return None
    if not isinstance(node, str) or node not in site.order:
        raise ExtensionError(f"it places {replica} on {str(node)[:40]!r}, which is no node")
    if any(operator == slot[0] and there == node for (operator, _), there in placed.items()):
        raise ExtensionError(f"it places {replica} on {node}, which has a replica of {slot[0]} already")
    return node


def placed_by(name: str, policy: PlacementPolicy, site: Site, counts: Mapping[str, int]) -> dict[Slot, str]:
    """Asks the policy; raises ExtensionError, which names its file and line, if it fails."""
    foreign = Foreign.of(WHAT, short_name(name), policy.hosts)
    try:
        return guarded(foreign, lambda: _whole(policy.hosts(site, counts), site), 10 * LIMIT_S)
    except Failed as failed:
        inner = failed.__cause__ if isinstance(failed.__cause__, Failed) else failed
        raise ExtensionError(str(inner)) from failed


def _whole(found: object, site: Site) -> dict[Slot, str]:
    if not isinstance(found, dict) or not all(
        isinstance(slot, tuple) and len(slot) == 2 and isinstance(node, str) and node in site.order
        for slot, node in found.items()
    ):
        raise ExtensionError("it gives no mapping from operator and index to a node")
    return found
