"""What can be asked of a network of daemons, on either clock, and how long it takes to become so."""

from collections.abc import Callable
from typing import Protocol

from benchmarks.olsr.tables import Tables


class Network(Protocol):
    started_s: float
    """When the first daemon was started, in model time."""

    def now_s(self) -> float:
        """Model time: 0 when the air came up."""
        ...

    def run_until(self, seconds: float) -> None: ...

    def tables(self) -> Tables: ...

    def cpu_seconds(self) -> float:
        """Processor time of all daemons together; in virtual time also that of the radio model."""
        ...

    def silence(self, node: str) -> None:
        """It says nothing any more."""
        ...


def seconds_until(
    network: Network, holds: Callable[[Tables], bool], limit_s: float, step_s: float = 0.1
) -> float | None:
    """From now on, to a step; None if it does not hold within the limit."""
    start = network.now_s()
    while network.now_s() - start < limit_s:
        network.run_until(network.now_s() + step_s)
        if holds(network.tables()):
            return network.now_s() - start
    return None
