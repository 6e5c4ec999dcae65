"""The cheapest way through a time graph, and the k cheapest ones.

Of ways that cost the same, the one with fewer migrations is taken: else an operator would move back and forth
between brokers without latency between them.
"""

from heapq import nsmallest
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import NamedTuple

from node_agent.migration.plan import TOLERANCE
from node_agent.migration.time_graph import NEVER, TimeGraph


class Path(NamedTuple):
    """``hosts``: by step. ``arrivals``: steps at which a migration ends, and where it begins."""

    cost: float
    hosts: tuple[str, ...]
    arrivals: tuple[tuple[int, int], ...]


def shortest_path(graph: TimeGraph) -> Path:
    """Relaxes edges step by step. What an edge from (p, j) to (i, k) costs but for the copying depends on
    p, j and k only, so it is computed once for all i."""
    count, last = len(graph.targets), len(graph.vertices) - 1
    best = [[inf] * count for _ in graph.vertices]
    moves = [[0] * count for _ in graph.vertices]
    back: list[list[tuple[int, int]]] = [[(NEVER, NEVER)] * count for _ in graph.vertices]
    best[0][graph.start] = 0.0
    into = [[row[i] if p != i else inf for p, row in enumerate(graph.moving)] for i in range(count)]
    nearest = [min(each) for each in into]
    kinds = [[row[i] for row in graph.kind] for i in range(count)]
    for k in range(1, last + 1):
        leaving = [_leaving(graph, best, begins[k], k) for begins in graph.begins]
        staying = _leaving(graph, best, k - 1, k)
        bounds = [min(column) for column in zip(*leaving, strict=True)]
        order = sorted(range(count), key=bounds.__getitem__)
        for i in graph.vertices[k]:
            found, origin, fewest = staying[i], (k - 1, i), moves[k - 1][i]
            if i not in graph.forced[k] and bounds[order[0]] + nearest[i] <= found * (1 + TOLERANCE):
                ways = _worthwhile(order, bounds, found, nearest[i], leaving, kinds[i], into[i])
                least = min(ways, default=(inf, NEVER))[0]
                for cost, p in ways:
                    if cost > least * (1 + TOLERANCE):
                        continue
                    begin = graph.begins[kinds[i][p]][k]
                    fewer = moves[begin][p] + 1 < fewest
                    if cost < found * (1 - TOLERANCE) or (fewer and cost <= found * (1 + TOLERANCE)):
                        found, origin, fewest = cost, (begin, p), moves[begin][p] + 1
            best[k][i], back[k][i], moves[k][i] = found, origin, fewest
    final = _leaving(graph, best, last, last + 1)
    end = min(graph.vertices[last], key=lambda i: (round_cost(final[i], min(final)), moves[last][i], i))
    return _path(graph, final[end], _walk(back, last, end))


def _worthwhile(
    order: list[int],
    bounds: list[float],
    least: float,
    nearest: float,
    leaving: list[list[float]],
    kinds: list[int],
    into: list[float],
) -> list[tuple[float, int]]:
    """Costs of migrations from other targets, by target, but for those that cannot be as cheap as the best of
    them or as ``least``. ``order``: targets by ``bounds``, the least that they begin at; ``nearest``: what
    the cheapest migration costs."""
    found, most = [], least * (1 + TOLERANCE)
    for p in order:
        if bounds[p] + nearest > most or bounds[p] == inf:
            break
        cost = leaving[kinds[p]][p] + into[p]
        if cost < inf:
            found.append((cost, p))
            most = min(most, cost * (1 + TOLERANCE))
    return sorted(found, key=itemgetter(1))


def _leaving(graph: TimeGraph, best: list[list[float]], begin: int, k: int) -> list[float]:
    """By target: the cheapest way to be there at step ``begin`` and to stay until step ``k`` begins."""
    if begin == NEVER:
        return [inf] * len(graph.targets)
    since = graph.since[k] if k < len(graph.since) else [begin] * len(graph.targets)
    return [
        cost + b - a if first <= begin else inf
        for cost, a, b, first in zip(best[begin], graph.until[begin], graph.until[k], since, strict=True)
    ]


def round_cost(cost: float, least: float) -> float:
    """Costs that are as good as the least one count as the least one."""
    return least if cost <= least * (1 + TOLERANCE) else cost


def _walk(back: list[list[tuple[int, int]]], k: int, i: int) -> list[tuple[int, int]]:
    vertices = [(k, i)]
    while k > 0:
        k, i = back[k][i]
        vertices.append((k, i))
    return vertices[::-1]


def _path(graph: TimeGraph, cost: float, vertices: list[tuple[int, int]]) -> Path:
    """Fills in the steps during which a migration goes on."""
    hosts: list[str] = []
    arrivals = []
    for (j, p), (k, i) in pairwise(vertices):
        hosts += [graph.targets[p]] * (k - j)
        if p != i:
            arrivals.append((k, j))
    hosts.append(graph.targets[vertices[-1][1]])
    return Path(cost, tuple(hosts), tuple(arrivals))


def k_shortest_paths(graph: TimeGraph, k: int) -> list[Path]:
    """The ``k`` cheapest paths, the cheapest first. Each vertex keeps its ``k`` cheapest ways.

    All of them differ in the hosts of some step: two edges between the same brokers with different ends are
    different sequences of hosts.
    """
    Way = tuple[float, int, tuple[tuple[int, int], ...]]
    ways: dict[tuple[int, int], list[Way]] = {(0, graph.start): [(0.0, 0, ((0, graph.start),))]}
    for step in range(1, len(graph.vertices)):
        for i in graph.vertices[step]:
            found: list[Way] = []
            for j, p, weight in graph.edges_into(step, i):
                for cost, moves, vertices in ways.get((j, p), ()):
                    found.append((cost + weight, moves + (p != i), (*vertices, (step, i))))
            if found:
                ways[step, i] = nsmallest(k, found)
    last = len(graph.vertices) - 1
    ends = [
        (cost + graph.costs.placing[last][i], moves, vertices)
        for i in graph.vertices[last]
        for cost, moves, vertices in ways.get((last, i), ())
    ]
    return [_path(graph, cost, list(vertices)) for cost, _, vertices in nsmallest(k, ends)]
