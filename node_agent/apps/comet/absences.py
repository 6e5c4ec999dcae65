"""Negation at a sink: a match waits until it is known that nothing occurred that makes it void.

The events that negations watch come to the sink as streams of their own. A stream is known to have brought
everything of an interval if its mark lies behind the end of the interval; a pulled one, if it also answered
the request for it.
"""

import math
from collections.abc import Mapping

from msgspec import Struct, field

from node_agent.apps.comet.conjuncts import Conjunct
from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.instances import Instances
from node_agent.apps.comet.messages import Mark
from node_agent.apps.comet.node_plan import Stream
from node_agent.apps.comet.outlet import Match
from node_agent.apps.comet.reference import matches


class Interval(Struct, frozen=True):
    """In which a stream must be known. ``ask``: the number of the request for it; 0: the stream is pushed."""

    low: float
    high: float
    ask: int = 0


class Candidate(Struct, frozen=True):
    """A match that waits. ``needs``: intervals by the numbers of streams."""

    match: tuple[Instance, ...]
    needs: dict[int, Interval]


class WatchState(Struct):
    """``asked``: by stream, the requests so far; ``numbers``: how many there were.

    ``dropped``: instances that start until then may have been given up.
    """

    seen: Instances = field(default_factory=Instances)
    candidates: list[Candidate] = field(default_factory=list)
    asked: dict[int, list[Interval]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    dropped: float = -math.inf


class Watch:
    """The absences of one task at its sink. ``streams``: of the watched events."""

    def __init__(self, conjunct: Conjunct, streams: tuple[Stream, ...], state: WatchState) -> None:
        self._conjunct = conjunct
        self.streams = streams
        self.state = state
        self.reach = 2 * max(
            [conjunct.longest, *(absence.window + absence.slack for absence in conjunct.absences)]
        )
        """No absence lies further before the end of a match than this."""
        self._final = all(absence.slack == 0 for absence in conjunct.absences)
        """Whether an instance can only make matches void, and none valid again."""

    def take(self, match: Match) -> list[tuple[int, Interval]]:
        """Takes a new match, and returns the requests that it needs, by stream."""
        if self._final and not self.holds(match):
            return []
        needs: dict[int, Interval] = {}
        requests: list[tuple[int, Interval]] = []
        for stream in self.streams:
            places = [
                absence.place(match)
                for absence in self._conjunct.absences
                if stream.events[0] in absence.events
            ]
            wide = Interval(min(low for low, _ in places), max(high for _, high in places))
            if wide.low > wide.high:
                continue
            if stream.pulled:
                wide, is_new = self._asked(stream.number, wide)
                if is_new:
                    requests.append((stream.number, wide))
            needs[stream.number] = wide
        self.state.candidates.append(Candidate(match, needs))
        return requests

    def _asked(self, stream: int, wanted: Interval) -> tuple[Interval, bool]:
        asked = self.state.asked.setdefault(stream, [])
        for other in asked:
            if other.low <= wanted.low and wanted.high <= other.high:
                return Interval(wanted.low, wanted.high, other.ask), False
        number = self.state.numbers.get(stream, 0) + 1
        self.state.numbers[stream] = number
        asked.append(Interval(wanted.low, wanted.high, number))
        return asked[-1], True

    def holds(self, match: Match) -> bool:
        """Whether nothing known makes the match void."""
        by_name = {each.event: [each] for each in match}
        for absence in self._conjunct.absences:
            low, high = absence.place(match)
            for name in absence.events:
                found = by_name.setdefault(name, [])
                found += [each for each in self.state.seen.within(name, low, high) if each not in found]
        assert self._conjunct.pattern is not None
        return frozenset(match) in matches(self._conjunct.pattern, by_name)

    def decided(self, marks: Mapping[int, Mark]) -> list[Match]:
        """Returns the matches that are now known to be detections, and removes what is decided."""
        found: list[Match] = []
        waiting: list[Candidate] = []
        for candidate in self.state.candidates:
            if all(_is_known(need, marks[stream]) for stream, need in candidate.needs.items()):
                certain = all(need.low > self.state.dropped for need in candidate.needs.values())
                if certain and self.holds(candidate.match):
                    found.append(candidate.match)
            else:
                waiting.append(candidate)
        self.state.candidates = waiting
        return found

    def forget(self, complete: float) -> None:
        """``complete``: until when the junction knows its constituents."""
        lows = (need.low for each in self.state.candidates for need in each.needs.values())
        self.state.seen.forget(min([complete - self.reach, *lows]))
        for stream, asked in self.state.asked.items():
            self.state.asked[stream] = [each for each in asked if each.high >= complete - self.reach]

    def shrink(self, most: int) -> list[Instance]:
        """Gives up the oldest instances beyond ``most``; matches that they could make void are not
        detected."""
        given_up: list[Instance] = []
        while len(self.state.seen) > most:
            given_up.append(self.state.seen.drop_oldest())
            self.state.dropped = max(self.state.dropped, given_up[-1].start)
        return given_up

    def earliest(self) -> float:
        """The start of the first match that waits."""
        starts = (each.start for candidate in self.state.candidates for each in candidate.match)
        return min(starts, default=math.inf)


def _is_known(need: Interval, mark: Mark) -> bool:
    return mark.time > need.high or (0 < need.ask <= mark.asks and mark.seen > need.high)
