"""What is below the nodes of a run on other machines: it makes them reachable, and ends when they have."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from orchestrator.backends.remote.site import Site
from orchestrator.errors import RoveError
from orchestrator.runs.backend import Progress


class Infrastructure(Protocol):
    """One run's. Methods are called in this order; ``close`` at any point, and repeatedly."""

    async def open(self, progress: Progress) -> Mapping[str, Site | RoveError]:
        """Reach every node and deploy to it: a site for each, or why it cannot be used.

        A node's failure is its own; raise only what concerns all of them. An ``Unreachable`` makes the node
        unreachable, every other error failed.
        """
        ...

    async def begin(self) -> None:
        """The agents are there, routing is about to be waited for: nodes begin to move."""
        ...

    def check(self) -> None:
        """Raises RoveError once the whole of it is broken; asked every second."""
        ...

    def doubts(self) -> Sequence[str]:
        """Why the numbers must not be used."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the manifest should hold about it."""
        ...

    async def close(self) -> None:
        """Let go of the nodes, and take down what ``open`` made. The supervisors have ended, or their leases
        will end them."""
        ...
