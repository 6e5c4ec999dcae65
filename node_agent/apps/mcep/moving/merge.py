"""Puts the messages of several channels in one order, whatever arrived when.

The order is that of times, then of channels. So an operator that is fed with it makes the same outputs
everywhere, heartbeats among them. A message is next as soon as no channel can bring an earlier one; that is
no later than the gate behind would let it pass.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Log, Marker, Message
from node_agent.apps.mcep.model import BEGINNING, END, Mark, McepError, just_before

At = tuple[int, Mark]
"""A place in the order: how many markers came before, and the position among events."""


class Next(NamedTuple):
    """``behind``: channels that bring nothing at ``mark`` or before it any more."""

    channel: ChannelId
    position: int
    message: Message
    mark: Mark
    behind: tuple[ChannelId, ...]


class Merge:
    """``positions``: by channel, the last message that was taken; ``at``: where that is in the order."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self.positions = dict.fromkeys(channels, 0)
        self.at: dict[ChannelId, At] = dict.fromkeys(self.positions, (0, BEGINNING))
        self._last = dict(self.at)
        """Of each channel, where its last message is that has come."""
        self._queues: dict[ChannelId, deque[tuple[At, int, Message]]] = {
            channel: deque() for channel in self.positions
        }

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def resume(self, channel: ChannelId, position: int, at: At) -> None:
        """Goes on behind a message that was taken on another machine."""
        self.positions[channel], self.at[channel], self._last[channel] = position, at, at

    def put(self, channel: ChannelId, position: int, message: Message) -> None:
        epoch, mark = self._last[channel]
        if isinstance(message, Marker):
            here, after = (epoch, END), (epoch + 1, BEGINNING)
        else:
            here = after = max((epoch, mark), (epoch, _mark(message)))
        self._last[channel] = after
        self._queues[channel].append((here, position, message))

    def take(self) -> Next | None:
        """The next message of all; None if a channel could still bring an earlier one."""
        best: tuple[At, ChannelId] | None = None
        for channel, queue in self._queues.items():
            if queue and (best is None or queue[0][0] < best[0]):
                best = queue[0][0], channel
        if best is None:
            return None
        at, channel = best
        others = {each: self._bound(each) for each in self._queues if each != channel}
        if any(not self._queues[each] and bound <= at for each, bound in others.items()):
            return None
        _, position, message = self._queues[channel].popleft()
        self.positions[channel] = position
        self.at[channel] = (at[0] + 1, BEGINNING) if isinstance(message, Marker) else at
        behind = tuple(each for each, bound in others.items() if bound > at)
        return Next(channel, position, message, at[1], behind)

    def _bound(self, channel: ChannelId) -> At:
        """Nothing comes before this on a channel."""
        queue = self._queues[channel]
        return queue[0][0] if queue else self.at[channel]


def _mark(message: Message) -> Mark:
    if isinstance(message, Heartbeat):
        return just_before(message.t)
    if isinstance(message, Log | Marker):
        raise McepError("an operator that moves takes no logs")
    return message.key
