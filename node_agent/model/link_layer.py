"""What a node's radio knows about its own links, as a driver's station table shows it: one interface for all
radios.

Sources: the medium in virtual time, the emulated radio in namespaces, nl80211 on real cards.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class LinkReading(NamedTuple):
    """One neighbour. Counters never fall, except if the radio starts anew; broadcasts count as received only.

    ``signal_dbm``: of the neighbour's last frame, which is ``age_s`` old; None: the radio does not say.
    """

    received: int
    acknowledged: int
    """Frames to the neighbour that it acknowledged."""
    retries: int
    """Transmissions to it that it did not acknowledge."""
    failed: int
    """Frames to it that were given up."""
    signal_dbm: float | None
    age_s: float = 0.0


Readings = Mapping[bytes, LinkReading]
"""By hardware address."""


class LinkLayer(Protocol):
    @property
    def sensitivity_dbm(self) -> float | None:
        """The signal at which half of the full-size frames arrive; None: not known."""
        ...

    def read(self) -> Readings:
        """Returns what is known now; nothing if the radio does not answer. Does not wait."""
        ...
