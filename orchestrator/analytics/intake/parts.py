"""Divides runs among tasks: each reads whole nodes, so that it sees every record of a boot."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.results.inputs import RunInput
from orchestrator.results.segments import size_of
from orchestrator.results.truth import TRUTH

TASK_BYTES = 64 * 2**20
"""What a task reads at least, if there is so much. One node of a run is never divided."""


class Part(NamedTuple):
    """Nodes of a run, and files of its ground truth. ``directory``: of the run."""

    directory: str
    nodes: tuple[str, ...]
    truth: tuple[str, ...]


def tasks_for(runs: Sequence[RunInput], task_bytes: int = TASK_BYTES) -> list[tuple[Part, ...]]:
    """Returns the parts that each task reads, in the order of the runs."""
    tasks: list[list[Part]] = []
    room = 0
    for part, size in _sized(runs, task_bytes):
        if not tasks or room <= 0:
            tasks.append([])
            room = task_bytes
        tasks[-1].append(part)
        room -= size
    return [tuple(task) for task in tasks]


def _sized(runs: Iterable[RunInput], task_bytes: int) -> Iterator[tuple[Part, int]]:
    """Yields the parts of each run, none much larger than a task unless a node is."""
    for run in runs:
        directory = str(run.directory.path)
        truth = tuple(name for name in TRUTH if run.truth(name) is not None)
        size = sum(size_of(run.directory.radio / name) or 0 for name in truth)
        nodes: list[str] = []
        for node, amount in _sizes(run).items():
            nodes.append(node)
            size += amount
            if size >= task_bytes:
                yield Part(directory, tuple(nodes), truth), size
                nodes, truth, size = [], (), 0
        if nodes or truth:
            yield Part(directory, tuple(nodes), truth), size


def _sizes(run: RunInput) -> dict[str, int]:
    found: dict[str, int] = {}
    for segment in run.segments:
        found[segment.node] = found.get(segment.node, 0) + (segment.size or 0)
    return found
