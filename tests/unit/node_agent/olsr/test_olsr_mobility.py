"""Properties over random movement in a disc model: routes follow connectivity, and do not loop."""

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from node_agent.olsr.config import OlsrConfig, Quality
from tests.unit.olsr_network import Network

CONFIG = OlsrConfig(hello_interval=0.5, hello_validity=2.0, tc_interval=0.5, tc_validity=5.0)
NODES = range(1, 10)
SIDE, RANGE, SPEED = 100.0, 42.0, 4.0
MOVING = 40
SETTLING = 12  # seconds a path must have stood for a route to be due: measured, told, flooded
FORGETTING = 12  # validities of HELLO and TC, and the time a TC needs through the network
CALM = 45  # until all link qualities have reached their end

Pair = tuple[int, int]


class Walk:
    """Everybody walks from one random point to the next, and stops after ``MOVING`` seconds."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self._legs: dict[int, list[tuple[float, float, float]]] = {}
        for node in NODES:
            when, x, y = 0.0, rng.uniform(0, SIDE), rng.uniform(0, SIDE)
            legs = [(when, x, y)]
            while when < MOVING:
                to_x, to_y = rng.uniform(0, SIDE), rng.uniform(0, SIDE)
                when += math.dist((x, y), (to_x, to_y)) / SPEED
                x, y = to_x, to_y
                legs.append((when, x, y))
            self._legs[node] = legs

    def position(self, node: int, seconds: float) -> tuple[float, float]:
        now = min(seconds, MOVING)
        legs = self._legs[node]
        later = next(index for index, leg in enumerate(legs) if leg[0] >= now)
        if later == 0:
            return legs[0][1:]
        (t0, x0, y0), (t1, x1, y1) = legs[later - 1], legs[later]
        share = (now - t0) / (t1 - t0)
        return x0 + share * (x1 - x0), y0 + share * (y1 - y0)

    def loss(self, a: int, b: int, seconds: float) -> float | None:
        near = math.dist(self.position(a, seconds), self.position(b, seconds)) <= RANGE
        return 0.0 if near else None

    def edges(self, seconds: float) -> frozenset[Pair]:
        return frozenset(
            (a, b) for a in NODES for b in NODES if a < b and self.loss(a, b, seconds) is not None
        )


def _components(pairs: Iterable[Pair]) -> dict[int, int]:
    part = {node: node for node in NODES}
    for a, b in pairs:
        old, new = part[a], part[b]
        part = {node: new if where == old else where for node, where in part.items()}
    return part


@pytest.mark.parametrize("quality", ["etx_ff", "hops"])
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_routes_follow_connectivity_and_do_not_loop(quality: Quality, seed: int) -> None:
    walk = Walk(seed)
    network = Network(NODES, walk.loss, structs.replace(CONFIG, quality=quality), seed)
    truth: list[frozenset[Pair]] = []
    for second in range(MOVING + CALM):
        truth.extend(walk.edges(second + tenth / 10) for tenth in range(10))
        network.run(1)
        stood = _components(frozenset.intersection(*truth[-10 * SETTLING :]))
        existed = _components(frozenset.union(*truth[-10 * FORGETTING :]))
        for node in NODES:
            known = network.routes(node)
            for other in NODES:
                if other == node:
                    continue
                if stood[other] == stood[node] and second >= SETTLING:
                    assert other in known, (second, node, other)
                if existed[other] != existed[node]:
                    assert other not in known, (second, node, other)
    final = _components(truth[-1])
    for node in NODES:
        for other in NODES:
            if node != other and final[node] == final[other]:
                _follow(network, walk, node, other)


def _follow(network: Network, walk: Walk, node: int, destination: int) -> None:
    at, hops = node, 0
    while at != destination:
        following = network.next_hop(at, destination)
        assert following is not None
        assert walk.loss(at, following, MOVING) is not None
        at, hops = following, hops + 1
        assert hops < len(NODES), "a loop"
    assert hops == network.routes(node)[destination]
