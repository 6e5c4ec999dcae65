"""Summarises the load of a run's machines for its backend, for the time in which the query flowed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.clocks.book import ClockBook
from orchestrator.clocks.correction import pieces_of
from orchestrator.host_load.files import Measured, Window, after, limits_of, of_host, of_nodes
from orchestrator.spec.experiment import Experiment

FACT = "host_load"
"""The manifest's key."""


class RunLoad:
    """``host``: the name of the one machine that runs all nodes; empty if each node is a machine."""

    def __init__(self, directory: Path, experiment: Experiment, host: str = "") -> None:
        self._directory = directory
        self._limits = limits_of(experiment)
        self._host = host
        self._window: Window | None = None

    def flowed(self, from_ns: int, until_ns: int) -> None:
        """Notes that the query flowed in that time. The last call is the
        measured time; earlier ones were warm-up."""
        self._window = after(self._window, from_ns, until_ns)

    def doubts(self, nodes: Iterable[str] = (), clocks: ClockBook | None = None) -> list[str]:
        """``nodes``: those whose records are here. ``clocks``: of machines with their own clock."""
        return [doubt for load in self._measured(nodes, clocks) for doubt in load.doubts]

    def facts(self, nodes: Iterable[str] = (), clocks: ClockBook | None = None) -> dict[str, Any]:
        return {FACT: {load.who: load.document() for load in self._measured(nodes, clocks)}}

    def _measured(self, nodes: Iterable[str], clocks: ClockBook | None) -> list[Measured]:
        if self._window is None:
            return []  # nothing has flowed
        book = clocks if clocks is not None else ClockBook()
        pieces = {node: pieces_of(book.of(node)) for node in book.nodes}
        if not self._host:
            return of_nodes(self._directory, sorted(nodes), self._window, self._limits, pieces)
        clock = next((known for known in pieces.values() if known), ())  # all nodes have the host's
        return [of_host(self._directory, self._host, self._window, self._limits, clock)]
