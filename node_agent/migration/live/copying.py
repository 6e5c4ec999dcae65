"""What the old host copies while it works on: the buffered input that the new one does not get directly.

Copying of a stream begins when the time left is what it takes. The upstream is then asked to stream to the
new host too, and says which item that began with; what comes before is copied from the old host's buffer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from node_agent.migration.live.buffer import Buffer
from node_agent.migration.live.messages import Copy, Effect, Sent, StreamTo
from node_agent.migration.live.values import Limits, Method, Order, Savepoint, batches, item_size


def is_due(order: Order, size: int, now: float, step: float) -> bool:
    """Whether a buffer of that size must be copied now in order to be there by the deadline."""
    return now >= order.deadline - size / order.bandwidth - step


@dataclass(slots=True)
class Copying:
    """``ends``: by stream, the last item that the new host does not get directly, once that is known.
    ``copied``: up to where streams were copied; only those that were begun."""

    order: Order
    limits: Limits
    state_kept: bool = False
    ready: bool = False
    waits_until: float | None = None
    """Until then, for a boundary."""
    copied: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    direct: set[str] = field(default_factory=set)
    """Streams of which the upstream sends everything."""

    def go_on(self, buffers: Mapping[str, Buffer], safe: Savepoint, now: float) -> list[Effect]:
        """Copies what is due."""
        effects: list[Effect] = []
        order = self.order
        at_once = order.method is Method.STOP_AND_COPY or order.deadline == float("inf")
        for stream, buffer in buffers.items():
            incomplete = buffer.floor > safe.position(stream) or buffer.overflowed
            if incomplete and self.state_kept:
                if stream not in self.direct:  # it is not here any more, but the upstream has it
                    self.direct.add(stream)
                    effects.append(Sent(stream, StreamTo(order.target, safe.position(stream) + 1)))
                continue
            if stream not in self.copied:
                if not self.state_kept or not (at_once or is_due(order, buffer.size, now, self.limits.step)):
                    continue
                self.copied[stream] = safe.position(stream)
                effects.append(Sent(stream, StreamTo(order.target)))
            effects += self._copy(stream, buffer)
        return effects

    def _copy(self, stream: str, buffer: Buffer) -> list[Effect]:
        end = self.ends.get(stream)
        items = buffer.since(self.copied[stream] + 1, end)
        if items:
            self.copied[stream] = items[-1].position
        return [
            Sent(self.order.target, Copy(self.order.migration, stream, batch))
            for batch in batches(items, item_size, self.limits)
        ]
