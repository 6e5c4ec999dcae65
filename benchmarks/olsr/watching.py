"""Defines what can be asked of a network of daemons, in either time, and waits for conditions."""

from collections.abc import Callable
from typing import Protocol

from benchmarks.olsr.tables import Tables


class Network(Protocol):
    started_s: float
    """When the first daemon was started, in model time."""

    def now_s(self) -> float:
        """Returns model time: 0 when the radio came up."""
        ...

    def run_until(self, seconds: float) -> None: ...

    def tables(self) -> Tables: ...

    def cpu_seconds(self) -> float:
        """Returns the processor time of all daemons together; in virtual time it includes the radio model."""
        ...

    def silence(self, node: str) -> None:
        """Makes a node send nothing any more."""
        ...


def seconds_until(
    network: Network, holds: Callable[[Tables], bool], limit_s: float, step_s: float = 0.1
) -> float | None:
    """Returns how long it takes from now until the condition holds, to a step;
    None if not within the limit.
    """
    start = network.now_s()
    while network.now_s() - start < limit_s:
        network.run_until(network.now_s() + step_s)
        if holds(network.tables()):
            return network.now_s() - start
    return None
