"""Pairs of nodes that are drawn for flows."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.apps.flows.drawing import drawn_pairs, most_pairs

NODES = [f"n{number:02}" for number in range(1, 11)]


def drawn(count: int, nodes: list[str], seed: int = 1) -> list[tuple[str, str]]:
    return drawn_pairs(count, nodes, random.Random(seed))


def test_the_seed_decides() -> None:
    assert drawn(5, NODES) == drawn(5, NODES)
    assert drawn(5, NODES) != drawn(5, NODES, seed=2)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_every_node_is_an_end_of_one_pair_while_there_are_enough(count: int) -> None:
    ends = [end for pair in drawn(count, NODES) for end in pair]
    assert len(set(ends)) == 2 * count


@pytest.mark.parametrize("count", [6, 10, 25])
def test_no_source_is_a_sink_as_long_as_that_is_possible(count: int) -> None:
    pairs = drawn(count, NODES)
    assert not {source for source, _ in pairs} & {sink for _, sink in pairs}


@given(st.integers(2, 12), st.integers(1, 132), st.integers(0, 5))
def test_pairs_are_different_and_of_two_nodes(size: int, count: int, seed: int) -> None:
    nodes = [f"n{number}" for number in range(size)]
    count = min(count, most_pairs(size))
    pairs = drawn(count, nodes, seed)
    assert len(set(pairs)) == count
    assert all(source != sink for source, sink in pairs)
