"""Computes distances between nodes, at the start of a run or on average: in hops if nodes stay, else metres.

If nodes move, the first network says little about later ones, while positions change more slowly.
"""

from collections.abc import Callable, Iterable, Mapping
from math import dist, inf
from statistics import fmean

from orchestrator.mobility.generate import generate_trace
from orchestrator.model.trace import Position
from orchestrator.radio.wires import wired_nodes
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.topology import Topology

_MOMENTS = 20
"""How often the mean looks where nodes are."""

Distance = Callable[[str, str], float]
Neighbours = Mapping[str, Iterable[str]]


def initial_distance(topology: Topology, seed: int) -> Distance:
    """Returns a function for the distance of two nodes. ``seed`` is that of the movements."""
    places = generate_trace(topology, seed, 0.0).at(0.0)
    if topology.mean_speed() == 0.0 or not topology.radio.follows_distance:
        return in_hops(network_at(topology, places))
    return lambda one, other: dist(places[one], places[other])


def mean_distance(topology: Topology, seed: int, seconds: float) -> Distance:
    """Returns a function for the distance of two nodes on average over a run; of nodes that stay, in hops."""
    if topology.mean_speed() == 0.0 or isinstance(topology.radio, ContactRadio):
        return initial_distance(topology, seed)
    trace = generate_trace(topology, seed, seconds)
    moments = [trace.at(seconds * i / _MOMENTS) for i in range(_MOMENTS + 1)]
    return lambda one, other: fmean(dist(places[one], places[other]) for places in moments)


def network_at(topology: Topology, places: Mapping[str, Position]) -> Neighbours:
    """Returns the links at the start of the run, wires too; with contacts, all that there ever are."""
    by_radio = _radio_network_at(topology, places)
    if not topology.wires:
        return by_radio
    wired = wired_nodes(topology.wire_links())
    return {node: [*peers, *wired.get(node, ())] for node, peers in by_radio.items()}


def _radio_network_at(topology: Topology, places: Mapping[str, Position]) -> Neighbours:
    radio = topology.radio
    if isinstance(radio, ContactRadio):
        return radio.neighbours(topology.node_names)
    if isinstance(radio, DiscRadio):
        return {
            node: [other for other, there in places.items() if dist(here, there) <= radio.range]
            for node, here in places.items()
        }
    # Imported here: it imports numpy, which takes time that not every command needs.
    from orchestrator.radio.from_spec import air_settings
    from orchestrator.radio.survey import survey

    choice, mac = air_settings(topology)
    return survey(choice.radio(), mac, places).links


def in_hops(network: Neighbours) -> Distance:
    """Returns the hops between nodes; infinite if they are not connected."""
    known: dict[str, dict[str, int]] = {}

    def distance(one: str, other: str) -> float:
        if one not in known:
            known[one] = _hops_from(network, one)
        return known[one].get(other, inf)

    return distance


def _hops_from(network: Neighbours, start: str) -> dict[str, int]:
    hops = {start: 0}
    frontier = [start]
    while frontier:
        found = dict.fromkeys(other for node in frontier for other in network[node] if other not in hops)
        hops.update(dict.fromkeys(found, hops[frontier[0]] + 1))
        frontier = list(found)
    return hops


def islands(neighbours: Neighbours) -> dict[str, int]:
    """Returns for each node the number of the group it can reach over any number of hops."""
    island: dict[str, int] = {}
    for number, start in enumerate(neighbours):
        frontier = [] if start in island else [start]
        while frontier:
            node = frontier.pop()
            if node not in island:
                island[node] = number
                frontier.extend(other for other in neighbours[node] if other not in island)
    return island
