"""Statistics of a trace, on motions whose answers are known."""

import random
from math import hypot

import numpy as np
import pytest

from orchestrator.mobility import statistics
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.static import grid_paths, static_path
from orchestrator.mobility.statistics import (
    hop_counts,
    links_at,
    mean_speed,
    mobility_statistics,
    sample_positions,
)
from orchestrator.model.trace import Trace, Waypoint


def test_a_chain_that_stands_still() -> None:
    chain = Trace(grid_paths(["a", "b", "c", "d"], 100.0, columns=4))
    found = mobility_statistics(chain, 100.0, 0.0, 10.0)
    assert found.degree == pytest.approx(6 / 4)
    assert found.connected_pairs == 1
    assert found.shortest_path_hops == pytest.approx((3 * 1 + 2 * 2 + 1 * 3) / 6)
    assert (found.links_up_per_s, found.links_down_per_s, found.mean_speed) == (0, 0, 0)


def test_a_node_that_passes_another_by() -> None:
    """In range from 2.05 s to 4.05 s of 10 s, at 100 m/s for 6 s."""
    trace = Trace({"a": static_path((305.0, 0.0)), "b": (Waypoint(0, 0, 0), Waypoint(6, 600, 0))})
    found = mobility_statistics(trace, 100.0, 0.0, 10.0)
    assert (found.links_up_per_s, found.links_down_per_s) == (0.1, 0.1)
    assert found.degree == pytest.approx(0.2)
    assert found.connected_pairs == pytest.approx(0.2)
    assert found.shortest_path_hops == 1
    assert found.mean_speed == pytest.approx(30.0)
    assert mean_speed(trace, 5.0, 7.0) == pytest.approx(25.0)


def test_nodes_out_of_reach_have_no_hops() -> None:
    found = mobility_statistics(Trace({"a": static_path((0, 0)), "b": static_path((9, 0))}), 8.0, 0.0, 2.0)
    assert (found.connected_pairs, found.shortest_path_hops) == (0, None)
    alone = mobility_statistics(Trace({"a": static_path((0, 0))}), 8.0, 0.0, 2.0)
    assert (alone.degree, alone.connected_pairs, alone.shortest_path_hops) == (0, 1, None)


def roaming() -> Trace:
    return Trace(
        {
            f"n{i}": random_waypoint_path(random.Random(f"{i}"), (500.0, 500.0), (5, 20), (0, 3), 60.0)
            for i in range(12)
        }
    )


def test_samples_agree_with_the_trace_and_hops_with_a_plain_search() -> None:
    trace = roaming()
    times = np.arange(0.0, 60.0, 7.3)
    positions = sample_positions(trace, times)
    links = links_at(positions, 150.0)
    counts = hop_counts(links)
    for sample, t in enumerate(times):
        at = list(trace.at(float(t)).values())
        assert positions[sample] == pytest.approx(np.array(at))
        for source in range(12):
            hops, frontier = {source: 0}, [source]
            while frontier:
                node = frontier.pop(0)
                for other in range(12):
                    if (
                        other not in hops
                        and hypot(at[node][0] - at[other][0], at[node][1] - at[other][1]) <= 150
                    ):
                        hops[other] = hops[node] + 1
                        frontier.append(other)
            assert [hops.get(other, 0) for other in range(12)] == counts[sample, source].tolist()


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mobility_statistics(roaming(), 150.0, 5.0, 60.0)
    monkeypatch.setattr(statistics, "CHUNK_CELLS", 12 * 12 * 7)
    assert mobility_statistics(roaming(), 150.0, 5.0, 60.0) == whole
