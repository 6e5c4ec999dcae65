"""Trees of brokers as in the thesis' evaluation: each leaf serves a part of the area, latency is by hops."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.migration.traffic import AREA
from node_agent.migration.leaves import Leaves, Span, grid
from node_agent.migration.situation import Network, network

HOP_S = 0.01
"""Seconds between parent and child; results are relative, so this does not matter."""
BANDWIDTH = 1.25e6
"""Bytes a second for state."""


@dataclass(frozen=True)
class Tree:
    """``ranges``: by broker, the part of the area that it or those below it serve."""

    name: str
    network: Network
    leaves: Leaves
    ranges: dict[str, Span]

    def near(self, broker: str, metres: float) -> tuple[str, ...]:
        """Brokers whose range is no further away than that."""
        here = self.ranges[broker]
        return tuple(name for name in self.network.brokers if _apart(here, self.ranges[name]) <= metres)


def quad() -> Tree:
    """Topology A: 16 leaves, 4 above them, and the cloud: 21 brokers on three levels."""
    leaves = [f"l{n:02}" for n in range(16)]
    parents = {f"m{n}": "cloud" for n in range(4)}
    for n, name in enumerate(leaves):
        parents[name] = f"m{n // 8 * 2 + n % 4 // 2}"
    return _tree("quad", parents, grid(leaves, 4, *AREA))


def flat() -> Tree:
    """Topology B: 40 leaves below the cloud."""
    leaves = [f"l{n:02}" for n in range(40)]
    return _tree("flat", dict.fromkeys(leaves, "cloud"), grid(leaves, 8, *AREA))


def _tree(name: str, parents: dict[str, str], leaves: Leaves) -> Tree:
    brokers = ("cloud", *sorted(parents))
    above = {each: [each] for each in brokers}
    for way in above.values():
        while way[-1] in parents:
            way.append(parents[way[-1]])

    def hops(a: str, b: str) -> int:
        return len(set(above[a]) ^ set(above[b]))

    net = network(brokers, lambda a, b: hops(a, b) * HOP_S, lambda a, b: BANDWIDTH)
    ranges = {
        each: _hull(box for leaf, box in leaves.boxes.items() if each in above[leaf]) for each in brokers
    }
    return Tree(name, net, leaves, ranges)


def _hull(boxes: Iterable[Span]) -> Span:
    found = list(boxes)
    return Span(
        min(each.x0 for each in found),
        min(each.y0 for each in found),
        max(each.x1 for each in found),
        max(each.y1 for each in found),
    )


def _apart(one: Span, other: Span) -> float:
    dx = max(one.x0 - other.x1, other.x0 - one.x1, 0.0)
    dy = max(one.y0 - other.y1, other.y0 - one.y1, 0.0)
    return max(dx, dy)
