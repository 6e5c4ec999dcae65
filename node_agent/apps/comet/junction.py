"""A junction: matches what arrives, asks for what could complete a match, and knows how complete it is.

*Complete up to t* after a step means: every instance that ends before t and that the streams of this and of
all earlier steps will ever bring has arrived. A match found later has an instance that ends at t or after it,
so all of its instances start after t minus the longest window W, and what it asks for does, too. That tells
what may be forgotten, here and where the pulled streams begin.
"""

import math
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from node_agent.apps.comet.conjuncts import Conjunct, conjuncts, matches_with
from node_agent.apps.comet.events import Instance
from node_agent.apps.comet.grammar import parse
from node_agent.apps.comet.instances import AskedFor, Instances, bounds_for
from node_agent.apps.comet.messages import Bounds
from node_agent.apps.comet.node_plan import JunctionPlan, Stream
from node_agent.apps.comet.outlet import Match

Complete = Callable[[int], float]
"""Until when a stream, by its number, has brought everything."""
Request = tuple[int, Bounds]
"""A stream, and what is asked of it."""


class JunctionState(Struct):
    """``asked``: by step, what was asked for."""

    known: Instances = field(default_factory=Instances)
    asked: dict[int, AskedFor] = field(default_factory=dict)
    complete: float = -math.inf


class Junction:
    """``streams``: by number. Raises PatternError or ConjunctError if the pattern cannot be matched."""

    def __init__(
        self, plan: JunctionPlan, pattern: str, streams: Mapping[int, Stream], state: JunctionState
    ) -> None:
        self.plan = plan
        self.conjunct = conjunct_of(pattern)
        self.state = state
        self._streams = streams
        self._known: list[frozenset[str]] = []
        """By step, the events of all streams before it."""
        events: frozenset[str] = frozenset()
        for step in plan.steps:
            self._known.append(events)
            events = events.union(*(streams[each].events for each in step))
        self.events = tuple(sorted(events))
        self.longest = self.conjunct.longest

    def arrive(self, instance: Instance) -> tuple[list[Request], list[Match]]:
        """Returns what is asked for now, and the new matches of all events of the junction."""
        if len(self.events) == 1:
            return [], [(instance,)]
        if instance.start < self.state.complete - self.longest or not self.state.known.add(instance):
            return [], []
        near = self.state.known.near(self.conjunct, instance, self.events)
        requests: list[Request] = []
        for number, step in enumerate(self.plan.steps):
            known = self._known[number]
            if number and instance.event in known:
                for match in matches_with(self.conjunct, instance, sorted(known), near):
                    requests += self._requests(number, step, match)
        return requests, list(matches_with(self.conjunct, instance, self.events, near))

    def _requests(self, number: int, step: tuple[int, ...], match: Match) -> list[Request]:
        events = sorted(event for each in step for event in self._streams[each].events)
        bounds = {event: bounds_for(self.conjunct, match, event) for event in events}
        if any(low > high for low, high in bounds.values()):
            return []
        asked = self.state.asked.setdefault(number, AskedFor(events[0]))
        if asked.covered(bounds):
            return []
        asked.add(bounds)
        return [(each, {event: bounds[event] for event in self._streams[each].events}) for each in step]

    def after_step(self, number: int, complete: Complete) -> float:
        """Until when the junction is complete after a step."""
        return min(complete(each) for step in self.plan.steps[: number + 1] for each in step)

    def unasked(self, stream: int, complete: Complete) -> float:
        """Nothing that starts earlier will be asked of a pulled stream."""
        number = next(number for number, step in enumerate(self.plan.steps) if stream in step)
        return self.after_step(number - 1, complete) - self.longest

    def forget(self, complete: Complete) -> None:
        """Notes how complete it is, and removes what can be in no new match."""
        self.state.complete = max(self.state.complete, self.after_step(len(self.plan.steps) - 1, complete))
        self.state.known.forget(self.state.complete - self.longest)
        for asked in self.state.asked.values():
            asked.forget(self.state.complete - self.longest)


def conjunct_of(pattern: str) -> Conjunct:
    """Reads the pattern of a task, which has one alternative."""
    (found,) = conjuncts(parse(pattern))
    return found
