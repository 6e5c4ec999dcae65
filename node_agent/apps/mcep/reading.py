"""What a query reads of its graphs: one epoch after another, each from the graph of its region."""

from collections import deque
from dataclasses import dataclass, field

from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.model import Event


@dataclass(slots=True)
class Epoch:
    marker: Marker
    waiting: list[Delivered] = field(default_factory=list)
    is_done: bool = False


class Reading:
    """``strict``: results of an epoch wait until all of the one before are there; else what is left of an
    epoch is dropped when the next one begins."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._epochs: deque[Epoch] = deque()

    def begin(self, marker: Marker) -> list[Delivered]:
        if not self._strict:
            self._epochs.clear()
        self._epochs.append(Epoch(marker))
        return self._flush()

    def take(self, epoch: int, event: Event) -> list[Delivered]:
        for each in self._epochs:
            if each.marker.epoch == epoch:
                made = Delivered(epoch, event._replace(epoch=epoch), event.t < each.marker.t)
                each.waiting.append(made)
                return self._flush() if each is self._epochs[0] else []
        return []

    def done(self, epoch: int) -> list[Delivered]:
        """All results of an epoch have been taken."""
        for each in self._epochs:
            each.is_done = each.is_done or each.marker.epoch == epoch
        return self._flush()

    def _flush(self) -> list[Delivered]:
        found: list[Delivered] = []
        while self._epochs:
            first = self._epochs[0]
            found += first.waiting
            first.waiting = []
            if not first.is_done or len(self._epochs) == 1:
                break
            self._epochs.popleft()
        return found
