"""How far nodes are from each other when a run begins: in hops where they stay, else in metres.

Where nodes move, the first network says little about the next ones; places drift apart more slowly.
"""

from collections.abc import Callable, Iterable, Mapping
from math import dist, inf

from orchestrator.mobility.generate import generate_trace
from orchestrator.model.trace import Position
from orchestrator.spec.radio import DiscRadio
from orchestrator.spec.topology import Topology

Distance = Callable[[str, str], float]
Neighbours = Mapping[str, Iterable[str]]


def initial_distance(topology: Topology, seed: int) -> Distance:
    """``seed`` is the one of the movements."""
    places = generate_trace(topology, seed, 0.0).at(0.0)
    looked_up = not isinstance(topology.radio, DiscRadio) and not topology.radio.pathloss.follows_distance
    if topology.mobility.mean_speed() == 0.0 or looked_up:
        return in_hops(network_at(topology, places))
    return lambda one, other: dist(places[one], places[other])


def network_at(topology: Topology, places: Mapping[str, Position]) -> Neighbours:
    """Who has a link to whom, in the beginning."""
    radio = topology.radio
    if isinstance(radio, DiscRadio):
        return {
            node: [other for other, there in places.items() if dist(here, there) <= radio.range]
            for node, here in places.items()
        }
    # Imported here: numpy comes with it, which is worth its time only where it is needed.
    from orchestrator.radio.from_spec import air_settings
    from orchestrator.radio.survey import survey

    choice, mac = air_settings(topology)
    return survey(choice.radio(), mac, places).links


def in_hops(network: Neighbours) -> Distance:
    """Infinite where there is no way."""
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
    """For each node the number of the group it can talk to over any number of hops."""
    island: dict[str, int] = {}
    for number, start in enumerate(neighbours):
        frontier = [] if start in island else [start]
        while frontier:
            node = frontier.pop()
            if node not in island:
                island[node] = number
                frontier.extend(other for other in neighbours[node] if other not in island)
    return island
