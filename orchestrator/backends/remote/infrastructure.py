"""What carries the nodes of a remote run: makes them reachable, and is taken down after them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from orchestrator.backends.remote.site import Site
from orchestrator.errors import RoveError
from orchestrator.runs.backend import Progress


class Infrastructure(Protocol):
    """The infrastructure of one run.

    Methods are called in this order; ``close`` at any time, also repeatedly.
    """

    async def open(self, progress: Progress) -> Mapping[str, Site | RoveError]:
        """Connects to every node and deploys to it. Returns a site for each, or why it cannot be used.

        Return the error of a single node; raise only what concerns all nodes. ``Unreachable`` makes the node
        unreachable, every other error makes it failed.
        """
        ...

    async def begin(self) -> None:
        """Begins to watch over the nodes. Called when the agents run, before the wait for routing."""
        ...

    async def move(self) -> None:
        """Lets nodes begin to move, if that is in its power. Called when routing has converged, right before
        sources are opened: until then nodes stand where they are at the beginning.
        """
        ...

    def check(self) -> None:
        """Raises RoveError once the infrastructure as a whole is broken; called every second."""
        ...

    def doubts(self) -> Sequence[str]:
        """Returns why the results must not be used."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Returns what the manifest stores about it."""
        ...

    async def close(self) -> None:
        """Disconnects, and takes down what ``open`` made. Supervisors have ended by then, or end when their
        leases run out."""
        ...
