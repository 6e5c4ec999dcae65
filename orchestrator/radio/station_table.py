"""What a node's radio knows about its neighbours, as a driver's station table shows it.

A node learns only about its own links: signals are those of frames that it received.
"""

from collections.abc import Sequence
from math import log10

from node_agent.model.link_layer import LinkReading


class StationTable:
    """The table of one node among ``count``."""

    def __init__(self, count: int) -> None:
        self._signals: list[float | None] = [None] * count
        self._received = [0] * count
        self._heard_ns = [0] * count

    def read(
        self,
        received: Sequence[int],
        acknowledged: Sequence[int],
        timeouts: Sequence[int],
        given_up: Sequence[int],
        power_mw: Sequence[float],
        now_ns: int,
    ) -> dict[int, LinkReading]:
        """Returns the neighbours that were ever heard, by number; takes the medium's counts by neighbour.

        ``power_mw``: what arrives of each neighbour now.
        """
        readings = {}
        for there, count in enumerate(received):
            if not count:
                continue
            if count != self._received[there]:
                self._received[there] = count
                self._heard_ns[there] = now_ns
                if power_mw[there] > 0.0:  # otherwise it was silenced since
                    self._signals[there] = 10 * log10(power_mw[there])
            readings[there] = LinkReading(
                count,
                acknowledged[there],
                timeouts[there],
                given_up[there],
                self._signals[there],
                (now_ns - self._heard_ns[there]) / 1e9,
            )
        return readings
