"""What the server needs of whoever turns runs into metrics. Without one, those addresses are not there."""

from typing import Protocol

from orchestrator.live.prometheus.exposition import Exposition
from orchestrator.runs.run_directory import RunDirectory


class MetricsDoor(Protocol):
    """Each method is awaited in the server's loop. ``accept`` is the header of the request, or empty.

    None: there is nothing of this name. A node that cannot be asked now raises RoveError.
    """

    async def node(self, run: RunDirectory, node: str, accept: str) -> Exposition | None:
        """Metrics of one node of a run that goes on."""
        ...

    async def run(self, run: RunDirectory, accept: str) -> Exposition | None:
        """What the orchestrator knows of one run that goes on."""
        ...

    async def orchestrator(self, accept: str) -> Exposition:
        """Metrics of all runs that go on, and of the server itself."""
        ...

    async def discovery(self, host: str) -> Exposition:
        """Targets for Prometheus' HTTP SD. ``host``: name and port by which the server was asked."""
        ...

    async def close(self) -> None: ...
