"""Merges channels into one sequence of events for each epoch (thesis, section 3.2.3).

An event passes once no channel can still bring an earlier one. Each channel's last event or heartbeat is
its watermark; a marker says that nothing more of this epoch comes. Best effort gives up channels that bring
nothing for a while, as long as another one does; what they bring too late is dropped.
"""

import math
from collections.abc import Mapping

from node_agent.apps.mcep.channel import ChannelId, Inlet, Marker, Message
from node_agent.apps.mcep.model import BEGINNING, END, Event, Mark
from node_agent.apps.mcep.standing import GateStanding


class Gate:
    """``strict``: an epoch ends when all its events have passed; else as soon as one channel brings a
    marker."""

    def __init__(self, inlets: Mapping[ChannelId, Inlet], *, strict: bool = True) -> None:
        self.inlets = dict(inlets)
        self.epoch = 0
        self.repeated = 0
        """Events that were left out: one with the same time, number and source had passed."""
        self._passed: tuple[str, Mark] = "", BEGINNING
        """Producer and key of the last one."""
        self._strict = strict
        self._looks = 0
        self._heard = dict.fromkeys(self.inlets, 0)
        """At which look each channel brought something last."""
        self._given_up: set[ChannelId] = set()
        self._awaited = list(self.inlets.values())
        """All others."""
        self._floor: Mark = BEGINNING
        """What a channel that was given up brings from before it comes too late."""

    def receive(self, channel: ChannelId, message: Message) -> None:
        self._heard[channel] = self._looks
        if channel in self._given_up:
            self._floor = max(self._floor, self.known_to())
            self._give_up(self._given_up - {channel})
        self.inlets[channel].receive(message)

    def look(self, patience: int) -> bool:
        """Call it every now and then: gives up channels that brought nothing for more than ``patience``
        looks. Returns whether more can pass now."""
        if self._strict:
            return False
        self._looks += 1
        silent = {each for each, at in self._heard.items() if at < self._looks - patience}
        if silent <= self._given_up or len(silent) == len(self.inlets):
            return False
        self._give_up(silent)
        return True

    def _give_up(self, channels: set[ChannelId]) -> None:
        self._given_up = channels
        self._awaited = [each for channel, each in self.inlets.items() if channel not in channels]

    def promise(self, channel: ChannelId, mark: Mark) -> None:
        """The channel brings nothing more of this epoch at ``mark`` or before it."""
        self.inlets[channel].promise(mark)

    @property
    def rests(self) -> bool:
        """Whether nothing waits here."""
        return not any(each.waiting or each.marker for each in self.inlets.values())

    def standing(self) -> GateStanding:
        """Ask while it ``rests``."""
        inlets = {channel: (each.epoch, each.mark) for channel, each in self.inlets.items()}
        return GateStanding(self.epoch, self._passed, inlets)

    def resume(self, standing: GateStanding) -> None:
        self.epoch, self._passed = standing.epoch, standing.passed
        for channel, (epoch, mark) in standing.inlets.items():
            self.inlets[channel].epoch, self.inlets[channel].mark = epoch, mark

    @property
    def waiting(self) -> int:
        return sum(inlet.waiting for inlet in self.inlets.values())

    def take(self) -> tuple[ChannelId, Event] | None:
        """The next event of this epoch, if it is known to be the next. A sensor that gives two brokers
        different events with the same time and number is heard once: no order holds between them."""
        while (found := self._next()) is not None:
            if found[1].key < self._floor:
                self.inlets[found[0]].dropped += 1
                continue
            passed = found[0].producer, found[1].key
            if passed != self._passed:
                self._passed = passed
                return found
            self.repeated += 1
        return None

    def _next(self) -> tuple[ChannelId, Event] | None:
        best: tuple[Mark, ChannelId] | None = None
        for channel, inlet in self.inlets.items():
            if inlet.events:
                key = inlet.events[0].key
                if best is None or key < best[0]:
                    best = (key, channel)
        if best is None:
            return None
        key, channel = best
        if any(not each.events and each.mark < key for each in self._awaited):
            return None
        return channel, self.inlets[channel].events.popleft()

    def take_any(self) -> tuple[ChannelId, Event] | None:
        """The next event of any channel, for a consumer that wants no order in time."""
        for channel, inlet in self.inlets.items():
            if inlet.events:
                return channel, inlet.events.popleft()
        return None

    def known_to(self) -> Mark:
        """All events of this epoch before this mark have passed, once ``take`` gives none."""
        return min((each.events[0].key if each.events else each.mark for each in self._awaited), default=END)

    def limit(self) -> float:
        """Events of this epoch are before this time, as far as is known."""
        ending = self._ending()
        return math.inf if ending is None else ending.t

    def ended(self) -> Marker | None:
        """The marker that ends this epoch, if nothing of it is to come. Ask when ``take`` gives none."""
        if self._strict and any(each.marker is None for each in self.inlets.values()):
            return None
        return self._ending()

    def begin(self, marker: Marker, *, again: bool = True) -> None:
        """Goes on to the next epoch. In best effort, drops what is left of this one, also what still
        comes."""
        self.epoch = marker.epoch
        self._passed, self._floor = ("", BEGINNING), BEGINNING
        for channel, inlet in self.inlets.items():
            if self._strict:
                inlet.begin(marker, marker.points.get(channel.producer, marker.t), again=again)
            else:
                inlet.jump(marker)

    def _ending(self) -> Marker | None:
        """The next marker, if a channel brought it; in best effort the last one that came."""
        if self._strict:
            return next((each.marker for each in self.inlets.values() if each.marker), None)
        return max((m for each in self.inlets.values() for m in each.coming()), key=_epoch, default=None)


def _epoch(marker: Marker) -> int:
    return marker.epoch
