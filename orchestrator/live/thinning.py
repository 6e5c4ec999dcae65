"""Leaves out some changes of things that move all the time, where a run is too long to keep them all."""

from collections.abc import Iterable

from orchestrator.runs.timeline import Change

MOVING = frozenset(
    {
        "position",
        "link",
        "signal",
        "queue",
        "rate",
        "carried",
        "kept",
        "served",
        "record",
        "frames",
        "host",
        "radio",
        "clock",
    }
)
"""Channels whose next value says as much as one left out before it."""
_Key = tuple[str, str, str]


class Thinner:
    """Keeps one change of each key within ``period`` seconds, the last of them, and every end.

    >>> thinner = Thinner(1.0)
    >>> kept = [*thinner.thin(changes), *thinner.rest()]
    """

    def __init__(self, period: float, channels: frozenset[str] = MOVING) -> None:
        self._period = period
        self._channels = channels
        self._kept: dict[_Key, float] = {}
        self._waiting: dict[_Key, Change] = {}

    def thin(self, changes: Iterable[Change]) -> list[Change]:
        kept: list[Change] = []
        latest = 0.0
        for change in changes:
            t, app, channel, key, value = change
            latest = max(latest, t)
            if channel not in self._channels:
                kept.append(change)
                continue
            place = app, channel, key
            before = self._kept.get(place)
            if value is not None and before is not None and before <= t < before + self._period:
                self._waiting[place] = change
                continue
            self._waiting.pop(place, None)
            if value is None:
                self._kept.pop(place, None)  # its next value is a beginning
            else:
                self._kept[place] = t
            kept.append(change)
        return kept + self._due(latest)

    def rest(self) -> list[Change]:
        """Returns the last values that were held back."""
        waiting = sorted(self._waiting.values(), key=lambda change: change.t)
        self._waiting = {}
        return waiting

    def _due(self, now: float) -> list[Change]:
        due = [place for place in self._waiting if self._kept[place] + self._period <= now]
        found = [self._waiting.pop(place) for place in due]
        for place, change in zip(due, found, strict=True):
            self._kept[place] = change.t
        return found
