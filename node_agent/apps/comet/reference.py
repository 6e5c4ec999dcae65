"""What a pattern means: the detections that an omniscient observer sees, who knows every primitive event.

Simple and slow, in order to be right: whatever plans and agents do is held against it. The rules:

- An instance of an event name matches alone.
- ``or``: the matches of all parts.
- ``and``: each combination of one match for every part that is not negated, if the latest end minus the
  earliest start of all constituents is at most the window. Every combination counts, not only the first.
- ``seq``: as ``and``, and the latest end of a part is at most the earliest start of the next part that is not
  negated.
- No instance is used twice in one match.
- ``!x``, a part of an ``and`` or ``seq``: a match of the other parts is void if there is a match of x,
  without instances that it uses itself, that would fit: with x added in its place the window and the order of
  that operator would still hold. So ``seq(a, !b, c; w)`` refuses a b between a and c, and ``and(a, !b; w)`` a
  b less than the window away from a.
- A detection is the set of its constituents. Two ways to match the same set are one detection.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from node_agent.apps.comet.events import Detection, Instance, detection_of
from node_agent.apps.comet.patterns import And, Event, Not, Or, Pattern, Seq

Match = frozenset[Instance]


def detections(pattern: Pattern, instances: Iterable[Instance]) -> tuple[Detection, ...]:
    """Returns all of them in order of their times."""
    by_name: dict[str, list[Instance]] = {}
    for instance in set(instances):
        by_name.setdefault(instance.event, []).append(instance)
    found = {detection_of(match) for match in matches(pattern, by_name)}
    return tuple(sorted(found))


def matches(pattern: Pattern, by_name: dict[str, list[Instance]]) -> set[Match]:
    match pattern:
        case Event(name):
            return {frozenset([instance]) for instance in by_name.get(name, ())}
        case Or(parts):
            return {found for part in parts for found in matches(part, by_name)}
        case Not():
            raise ValueError("a negation has no matches of its own")
        case And() | Seq():
            return set(_combined(pattern, by_name))


def _combined(pattern: And | Seq, by_name: dict[str, list[Instance]]) -> Iterator[Match]:
    places = [place for place, part in enumerate(pattern.parts) if not isinstance(part, Not)]
    found = {place: matches(pattern.parts[place], by_name) for place in places}
    negated = [
        (place, matches(part.part, by_name))
        for place, part in enumerate(pattern.parts)
        if isinstance(part, Not)
    ]
    for chosen in _choices(pattern, places, found, {}):
        whole = frozenset[Instance]().union(*chosen.values())
        blocked = any(
            not (match & whole) and _fits(pattern, {**chosen, place: match})
            for place, candidates in negated
            for match in candidates
        )
        if not blocked:
            yield whole


def _choices(
    pattern: And | Seq, places: Sequence[int], found: dict[int, set[Match]], chosen: dict[int, Match]
) -> Iterator[dict[int, Match]]:
    """Yields each way to choose a match for every place, given those that are chosen already."""
    if len(chosen) == len(places):
        yield chosen
        return
    place = places[len(chosen)]
    for match in found[place]:
        extended = {**chosen, place: match}
        if not any(match & other for other in chosen.values()) and _fits(pattern, extended):
            yield from _choices(pattern, places, found, extended)


def _fits(pattern: And | Seq, chosen: dict[int, Match]) -> bool:
    spans = [
        (min(each.start for each in match), max(each.end for each in match))
        for _, match in sorted(chosen.items())
    ]
    if max(end for _, end in spans) - min(start for start, _ in spans) > pattern.window:
        return False
    if isinstance(pattern, And):
        return True
    return all(before[1] <= after[0] for before, after in pairwise(spans))
