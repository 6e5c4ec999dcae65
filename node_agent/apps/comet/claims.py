"""What a neighbour may say: only of streams that come over it, within bounds."""

import math

from node_agent.apps.comet.messages import Also, Ask, Carry, Heard, Received
from node_agent.apps.comet.node_plan import NodePlan

FAR = 4e9
"""Seconds: no moment of a run is further away. With a window it still can be recorded in nanoseconds."""
MOST_NUMBER = 2**53
"""No event occurs so often: a larger number could not be recorded."""


def refusal(plan: NodePlan, said: Received | Heard) -> str | None:
    """Returns one word that says why it cannot be; None if it can."""
    streams = {stream.number: stream for stream in plan.streams}
    coming = {n for n, stream in streams.items() if stream.before(plan.node) == said.neighbour}
    going = {n for n, stream in streams.items() if stream.after(plan.node) == said.neighbour}
    if isinstance(said, Heard):
        if not (said.marks.up.keys() <= coming and said.marks.down.keys() <= going):
            return "stream"
        moments = [*said.marks.down.values()]
        for mark in said.marks.up.values():
            moments += [each for each in (mark.time, mark.seen) if each != -math.inf]
            if mark.asks < 0:
                return "number"
        return None if all(map(_is_moment, moments)) else "time"
    if said.number < 1:
        return "number"
    match said.message:
        case Carry(instance, numbers, _):
            if not _are_streams(numbers, coming):
                return "stream"
            if any(instance.event not in streams[each].events for each in numbers):
                return "event"
            if not 0 <= instance.start <= instance.end <= FAR:
                return "time"
            return None if 0 <= instance.number < MOST_NUMBER else "number"
        case Also(event, _, numbers):
            if not _are_streams(numbers, coming):
                return "stream"
            return None if all(event in streams[each].events for each in numbers) else "event"
        case Ask(stream, number, bounds):
            if stream not in going or not streams[stream].pulled:
                return "stream"
            if bounds.keys() != set(streams[stream].events):
                return "event"
            if number < 0:
                return "number"
            within = all(
                _is_moment(low) and _is_moment(high) and low <= high for low, high in bounds.values()
            )
            return None if within else "time"


def _are_streams(numbers: tuple[int, ...], coming: set[int]) -> bool:
    """Whether these are some of the streams that come this way, each once."""
    return bool(numbers) and coming.issuperset(numbers) and len(set(numbers)) == len(numbers)


def _is_moment(value: float) -> bool:
    return -FAR <= value <= FAR
