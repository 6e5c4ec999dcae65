"""Chooses on whose behalf operators may process (thesis, Alg. 5.3), and in which order they are asked.

Each query's graph finds the graphs near it and takes one as its *reference*: the one whose interest overlaps
those of all others most. Operators are then covered by operators near the reference. Graphs that agree on a
reference get their input from the same places, so the inputs of one selection fit together (low disparity).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from node_agent.apps.mcep.geometry import Point, Region, distance
from node_agent.apps.mcep.model import McepError
from node_agent.apps.mcep.reuse.overlap import area, common_area


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an operator looks for others that process for it: at most ``neighbours`` of them, within
    ``own`` metres of its own focal object and ``reference`` metres of the reference's."""

    neighbours: float = math.inf
    own: float = math.inf
    reference: float = math.inf


@dataclass(frozen=True, slots=True)
class Shareable:
    """An operator that may share. Operators of one ``type`` have the same logic down to their sources."""

    name: str
    type: str
    reach: Reach = Reach()


@dataclass(frozen=True, slots=True)
class Graph:
    """A query's operators, the root first, with its focal object's place and its processing interest."""

    name: str
    place: Point
    interest: Region
    operators: tuple[Shareable, ...]


@dataclass
class Neighbourhood:
    """Graphs that know each other. Call ``select`` for each of them every few seconds.

    >>> here = Neighbourhood()
    >>> for name, x in (("q1", 0.0), ("q2", 10.0)):
    ...     operators = (Shareable(f"{name}/mean", "mean"),)
    ...     here.enter(Graph(name, Point(x, 0.0), Circle(x, 0.0, 100.0), operators))
    >>> here.select("q1")
    >>> here.neighbours["q2/mean"]
    {'q1/mean'}
    """

    graphs: dict[str, Graph] = field(default_factory=dict)
    neighbours: dict[str, set[str]] = field(default_factory=dict)
    """By operator, those on whose behalf it may process."""
    references: dict[str, str] = field(default_factory=dict)
    """By graph; one that has not chosen yet is its own."""

    def enter(self, graph: Graph) -> None:
        known = {each.name for other in self.graphs.values() for each in other.operators}
        if graph.name in self.graphs or not graph.operators or known & {o.name for o in graph.operators}:
            raise McepError(f"graph {graph.name} needs a name and operators that no other graph has")
        self.graphs[graph.name] = graph
        self.references[graph.name] = graph.name
        self.neighbours.update({each.name: set() for each in graph.operators})

    def move(self, name: str, place: Point, interest: Region) -> None:
        self.graphs[name] = replace(self.graphs[name], place=place, interest=interest)

    def leave(self, name: str) -> None:
        """Graphs whose reference it was are their own until they select again."""
        gone = {each.name for each in self.graphs.pop(name).operators}
        del self.references[name]
        for graph, reference in self.references.items():
            if reference == name:
                self.references[graph] = graph
        for each in gone:
            del self.neighbours[each]
        for others in self.neighbours.values():
            others -= gone

    def select(self, name: str) -> None:
        """Chooses the reference of a graph, and who processes for its operators."""
        graph = self.graphs[name]
        near = [
            each
            for each in self.graphs.values()
            if distance(each.place, graph.place) <= graph.operators[0].reach.own
        ]
        reference = reference_of(near, graph)
        self.references[name] = reference.name
        for each in graph.operators:
            self._select_for(each, graph, reference)

    def _select_for(self, operator: Shareable, graph: Graph, reference: Graph) -> None:
        for others in self.neighbours.values():
            others.discard(operator.name)
        reach = operator.reach
        found: list[tuple[float, str, Shareable, Graph]] = []
        for other in self.graphs.values():
            away = distance(other.place, reference.place)
            if other is graph or away > reach.reference or distance(other.place, graph.place) > reach.own:
                continue
            alike = (each for each in other.operators if each.type == operator.type)
            found += [(away, each.name, each, other) for each in alike]
        found.sort(key=lambda each: each[:2])
        asked = found if math.isinf(reach.neighbours) else found[: int(reach.neighbours)]
        for _, name, each, other in asked:
            theirs = self.graphs[self.references[other.name]]
            if (
                reach.reference >= each.reach.reference
                and distance(reference.place, theirs.place) < reach.reference
            ):
                self.neighbours[name].add(operator.name)

    def priorities(self) -> dict[str, float]:
        """By operator, for Alg. 5.2: how much of its interest is shared with those it processes for."""
        home = {each.name: graph for graph in self.graphs.values() for each in graph.operators}
        return {
            name: summed_overlap(home[name].interest, [home[each].interest for each in sorted(others)])
            for name, others in self.neighbours.items()
        }


def reference_of(graphs: Iterable[Graph], own: Graph) -> Graph:
    """The graph whose interest overlaps those of all most; its own if it is as good as another."""
    every = list(graphs)

    def rank(each: Graph) -> tuple[float, bool, str]:
        others = [other.interest for other in every if other is not each]
        return -summed_overlap(each.interest, others), each is not own, each.name

    return min(every, key=rank)


def summed_overlap(interest: Region, others: Iterable[Region]) -> float:
    """In square metres. An interest overlaps itself, too."""
    return area(interest) + sum(common_area(interest, each) for each in others)


def all_of_a_type(types: Mapping[str, str]) -> dict[str, set[str]]:
    """Neighbours if every operator may process for all others of its type; ``types``: by operator."""
    return {
        name: {other for other, its in types.items() if its == type and other != name}
        for name, type in types.items()
    }
