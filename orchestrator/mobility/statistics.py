"""Computes what a trace means for a network with a given radio range: degree, link changes, connectivity,
hops.

A link is a pair of nodes at most ``radio_range`` apart. Links are sampled every 0.1 s, connectivity every
second, both over [start, end). A link change is counted when two consecutive samples differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orchestrator.model.trace import Trace

LINK_STEP_S = 0.1
CONNECTIVITY_STEP_S = 1.0
CHUNK_CELLS = 2_000_000
"""Limits the memory of one step: samples × nodes × nodes."""

Floats = npt.NDArray[np.float64]
Links = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MobilityStatistics:
    degree: float
    """Mean number of neighbours of a node."""
    links_up_per_s: float
    links_down_per_s: float
    connected_pairs: float
    """Share of pairs with a path of links between them; 1 for a single node."""
    shortest_path_hops: float | None
    """Mean over connected pairs; None if there never is one."""
    mean_speed: float
    """Distance travelled over time, pauses included, in m/s."""


def mobility_statistics(trace: Trace, radio_range: float, start: float, end: float) -> MobilityStatistics:
    degree, up, down = link_statistics(trace, radio_range, start, end)
    connected, hops = connectivity(trace, radio_range, start, end)
    return MobilityStatistics(degree, up, down, connected, hops, mean_speed(trace, start, end))


def link_statistics(trace: Trace, radio_range: float, start: float, end: float) -> tuple[float, float, float]:
    """Returns the mean degree, and how many links come up and go down per second."""
    times = sample_times(start, end, LINK_STEP_S)
    linked = ups = downs = 0
    last: Links | None = None
    for links in _chunks(trace, radio_range, times):
        linked += int(links.sum())
        joined = links if last is None else np.concatenate((last, links))
        ups += int((joined[1:] & ~joined[:-1]).sum())
        downs += int((joined[:-1] & ~joined[1:]).sum())
        last = links[-1:]
    # Matrices are symmetric: each link was counted from both ends.
    return linked / (len(times) * len(trace.paths)), ups / 2 / (end - start), downs / 2 / (end - start)


def connectivity(trace: Trace, radio_range: float, start: float, end: float) -> tuple[float, float | None]:
    """Returns the share of connected pairs, and the mean hops of the shortest paths between them."""
    times = sample_times(start, end, CONNECTIVITY_STEP_S)
    nodes = len(trace.paths)
    connected = hops = 0
    for links in _chunks(trace, radio_range, times):
        counts = hop_counts(links)
        connected += int(np.count_nonzero(counts))
        hops += int(counts.sum())
    pairs = len(times) * nodes * (nodes - 1)
    return (connected / pairs if pairs else 1.0), (hops / connected if connected else None)


def mean_speed(trace: Trace, start: float, end: float) -> float:
    """Returns the exact mean speed: the length of all paths between the two times, not sampled."""
    travelled = 0.0
    for path in trace.paths.values():
        t, x, y = np.array(path).T
        so_far = np.concatenate(([0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))))
        at_start, at_end = np.interp([start, end], t, so_far)
        travelled += float(at_end - at_start)
    return travelled / (len(trace.paths) * (end - start))


def sample_times(start: float, end: float, step: float) -> Floats:
    return start + step * np.arange(max(round((end - start) / step), 1), dtype=np.float64)


def sample_positions(trace: Trace, times: Floats) -> Floats:
    """Returns positions in metres, indexed by sample, node (in the trace's order) and axis."""
    columns = []
    for path in trace.paths.values():
        t, x, y = np.array(path).T
        columns.append(np.stack((np.interp(times, t, x), np.interp(times, t, y)), axis=-1))
    return np.stack(columns, axis=1)


def links_at(positions: Floats, radio_range: float) -> Links:
    """Returns which nodes are linked, indexed by sample, node and node; no node is linked to itself."""
    x, y = positions[..., 0], positions[..., 1]
    squared = (x[:, :, None] - x[:, None, :]) ** 2 + (y[:, :, None] - y[:, None, :]) ** 2
    links: Links = squared <= radio_range**2
    links[:, np.arange(links.shape[1]), np.arange(links.shape[1])] = False
    return links


def hop_counts(links: Links) -> npt.NDArray[np.int32]:
    """Returns the hops of the shortest path between any two nodes in each sample; 0 if there is none."""
    steps = links.astype(np.float32)
    counts = links.astype(np.int32)
    reached = links | np.eye(links.shape[1], dtype=np.bool_)
    hops = 1
    while True:
        hops += 1
        new = (reached.astype(np.float32) @ steps > 0) & ~reached
        if not new.any():
            return counts
        counts[new] = hops
        reached |= new


def _chunks(trace: Trace, radio_range: float, times: Floats) -> Iterator[Links]:
    size = max(CHUNK_CELLS // len(trace.paths) ** 2, 1)
    for first in range(0, len(times), size):
        yield links_at(sample_positions(trace, times[first : first + size]), radio_range)
