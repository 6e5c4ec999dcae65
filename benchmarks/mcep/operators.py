"""Random operators: one of each kind of the thesis (section 3.2.2), with random windows, and random graphs
of them.

All times are multiples of 1/16 s, so sums of them are exact and equal times are common.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from node_agent.apps.mcep.graph import Keep, OperatorGraph, Source, Stream
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.windows import (
    AtLeast,
    Both,
    ByEvents,
    ByTime,
    Consume,
    Count,
    Dependency,
    Either,
    Exactly,
    Full,
    Open,
    Operator,
    Output,
    Partition,
    Predicate,
    RestrictionWindow,
    Selection,
    Span,
    Stay,
    Step,
    ToNewest,
    ToOldest,
    Window,
    filter_operator,
)

Make = Callable[[random.Random, str, list[str]], Operator]


Shift = ByEvents | ByTime | ToNewest | ToOldest | Stay


def value(event: Event) -> int:
    found = event.attributes.get("value", 0)
    assert isinstance(found, int)
    return found


def summing(threshold: int = -1) -> Callable[[Selection], Step]:
    """Gives the sum of values, if it is above a threshold."""

    def correlate(selection: Selection) -> Step:
        total = sum(value(each) for each in selection.events) % 97
        made = (Output("sum", {"value": total, "of": len(selection.events)}),) if total > threshold else ()
        return Step(made)

    return correlate


def sliding(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """The newest events of each stream."""
    windows = tuple(Window(f"w{n}", s, Count(draw.randint(1, 3))) for n, s in enumerate(streams))
    when: Predicate = Both(tuple(Full(each.name) for each in windows))
    if draw.random() < 0.5:
        when = Either(tuple(AtLeast(each.name, 1) for each in windows))
    return Operator(name, windows, _restriction(draw, streams), summing(draw.choice([-1, 20])), when)


def tumbling(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """Consumes what it took, or part of it."""
    shifts: list[Shift] = [ByEvents(1), ToOldest()]
    windows = tuple(
        Window(f"w{n}", s, Count(draw.randint(1, 3)), draw.choice(shifts), "oldest")
        for n, s in enumerate(streams)
    )
    when = Both(tuple(Full(each.name) for each in windows))
    eaten = draw.choice([Consume("all"), Consume("all"), Consume("first"), Consume("last")])
    return Operator(
        name, windows, _restriction(draw, streams), summing(draw.choice([-1, 20])), when, consumption=eaten
    )


def timed(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """What came in the last seconds, by the clock."""
    length = draw.choice([1.0, 2.0, 4.0])
    windows = tuple(Window(f"w{n}", s, Span(draw.choice([0.5, 1.0, length]))) for n, s in enumerate(streams))
    conditions: list[Predicate] = [AtLeast("w0", 1), Exactly("w0", 0)]
    when = draw.choice([*conditions, Either((AtLeast("w0", 2), Exactly("w0", 0)))])
    every = draw.choice([0.5, 1.0, 2.0])
    return Operator(name, windows, RestrictionWindow(length, ByTime(every)), summing(), when)


def sequence(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """One event, or a span, before another."""
    first, second = streams[0], streams[-1]
    shifts: list[Shift] = [ByEvents(1), ByEvents(2), Stay()]
    others: list[Shift] = [ByEvents(1), ToNewest()]
    lengths: list[Count | Span] = [Count(1), Count(2), Span(1.0)]
    begin: Literal["oldest", "newest"] = draw.choice(["oldest", "newest"])
    windows = [
        Window("a", first, draw.choice(lengths), draw.choice(shifts), begin),
        Window("b", second, Count(1), draw.choice(others), "oldest"),
    ]
    windows += [Window(f"w{n}", s, Count(1)) for n, s in enumerate(streams[1:-1])]
    dependency = Dependency(
        "a", draw.choice(["start", "end"]), draw.choice(["<", "<="]), "b", draw.choice(["start", "end"])
    )
    if draw.random() < 0.5:
        dependency = Dependency(
            "b", draw.choice(["start", "end"]), draw.choice([">", ">="]), "a", draw.choice(["start", "end"])
        )
    return Operator(
        name,
        tuple(windows),
        _restriction(draw, streams, slow=True),
        summing(draw.choice([30, 60])),
        Both((AtLeast("a", 1), AtLeast("b", 1))),
        (dependency,),
        consumption=draw.choice([Consume(), Consume("all")]),
    )


def iteration(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """Takes events until one is small, and names what it consumes."""
    limit = draw.choice([10, 30])

    def ends(events: tuple[Event, ...]) -> bool:
        return value(events[-1]) < limit

    def correlate(selection: Selection) -> Step:
        taken = selection.windows["w0"]
        total = sum(value(each) for each in taken) % 97
        return Step(
            (Output("run", {"value": total, "of": len(taken)}),),
            frozenset(each.id for each in taken[:-1]),
            taken[0].t,
            finished=total > 80,
        )

    windows = (
        Window("w0", streams[0], Open(), ByEvents(1), "oldest"),
        *(Window(f"w{n}", s, Count(1)) for n, s in enumerate(streams[1:], 1)),
    )
    return Operator(
        name,
        windows,
        _restriction(draw, streams, slow=True),
        correlate,
        AtLeast("w0", 2),
        consumption=Consume("named"),
        ends=ends,
    )


def backwards(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """Looks from the newest event into the past."""
    shift = draw.choice([ByEvents(-1), ByEvents(-2)])
    windows = tuple(Window(f"w{n}", s, Count(2), shift) for n, s in enumerate(streams))
    return Operator(name, windows, _restriction(draw, streams, slow=True), summing(60), Full("w0"))


def back_in_time(draw: random.Random, name: str, streams: list[str]) -> Operator:
    windows = tuple(Window(f"w{n}", s, Span(0.5), ByTime(-0.5)) for n, s in enumerate(streams))
    forward = tuple(Window(f"f{n}", s, Span(0.5), ByTime(0.5), "oldest") for n, s in enumerate(streams))
    return Operator(
        name, windows + forward, _restriction(draw, streams, slow=True), summing(60), AtLeast("w0", 1)
    )


def filtering(draw: random.Random, name: str, streams: list[str]) -> Operator:
    limit = draw.choice([20, 50])
    return filter_operator(
        name, streams[0], lambda event: value(event) < limit, "low", draw.choice([0.0, 1.0])
    )


def contextual(draw: random.Random, name: str, streams: list[str]) -> Operator:
    """Says the number of the epoch; its results hold for that one only."""

    def correlate(selection: Selection) -> Step:
        return Step((Output("context", {"value": selection.epoch}),))

    windows = tuple(Window(f"w{n}", s, Count(1)) for n, s in enumerate(streams))
    return Operator(
        name, windows, _restriction(draw, streams), correlate, AtLeast("w0", 1), reuse="contextual"
    )


KINDS: tuple[Make, ...] = (
    sliding, sliding, tumbling, tumbling, timed, sequence, sequence, iteration, backwards, back_in_time,
    filtering, filtering, contextual,
)  # fmt: skip


MANY = (sequence, backwards, back_in_time)
"""Kinds that can give many results for each event: at most one of them in a graph, or there are too
many."""


def _restriction(draw: random.Random, streams: list[str], *, slow: bool = False) -> RestrictionWindow:
    length = draw.choice([0.5, 1.0, 2.0, 4.0])
    shifts: list[ByEvents | ByTime] = [ByEvents(1), ByEvents(1), ByEvents(2), ByTime(1.0)]
    if slow:
        shifts = [ByEvents(3), ByEvents(5), ByTime(length)]
    shift = draw.choice(shifts)
    only = draw.choice(streams) if draw.random() < 0.2 and isinstance(shift, ByEvents) else None
    return RestrictionWindow(length, shift, only)


def random_graph(draw: random.Random, steady: bool) -> OperatorGraph:
    """``steady``: of operators whose results do not depend on where their input began, once it is long
    enough."""
    sources = [Source(f"s{n}", f"type{n}") for n in range(draw.randint(1, 3))]
    names = [each.name for each in sources]
    operators: list[Operator] = []
    streams: list[Stream] = []
    many = False
    for number in range(draw.randint(1, 5)):
        name = f"o{number}"
        free = [each for each in names if not any(stream.producer == each for stream in streams)]
        taken = draw.sample(names, min(len(names), draw.randint(1, 3)))
        if free and not set(free) & set(taken):
            taken[0] = draw.choice(free)
        make = draw.choice([filtering, sliding]) if steady else draw.choice(KINDS)
        if make in MANY and many:
            make = sliding
        many = many or make in MANY
        if make is filtering:
            taken = taken[:1]
        operator = make(draw, name, taken)
        if steady and make is sliding:
            operator = replace(operator, restriction=RestrictionWindow(operator.restriction.length))
        operators.append(_partitioned(draw, operator, operators))
        for producer in taken:
            only = (Keep("value", draw.choice(["<", ">="]), 40),) if draw.random() < 0.15 else ()
            streams.append(Stream(producer, name, only))
        names.append(name)
    produced = {stream.producer for stream in streams}
    used = [each for each in sources if each.name in produced]
    for operator in operators:
        if operator.name not in produced or draw.random() < 0.4:
            streams.append(Stream(operator.name))
    return OperatorGraph(tuple(used), tuple(operators), tuple(streams))


def _partitioned(draw: random.Random, operator: Operator, before: list[Operator]) -> Operator:
    if operator.reuse == "local" or draw.random() > 0.2:
        return operator
    local = {each.name for each in before if each.reuse == "local"}
    simple = all(stream in local or stream.startswith("s") for stream in operator.streams)
    kinds = [Partition("attribute", "kind")]
    if simple:
        kinds += [Partition("source"), Partition("region", cell=200.0)]
    return replace(operator, partition=draw.choice(kinds))
