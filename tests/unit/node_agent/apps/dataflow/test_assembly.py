"""Windows and joins against a reference that sees whole streams at once, for thousands of random streams."""

import random
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import Position, StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow, UnitRule
from node_agent.apps.dataflow.windows.assembly import Assembler, assembler_for
from node_agent.apps.dataflow.windows.units import Gaps, Unit

Arrival = tuple[str, StreamTuple]


class Result(NamedTuple):
    """A unit, as far as others can see it; inputs as (input, origin, tau)."""

    tau: int
    prev: int
    born_ns: int
    prev_born_ns: int
    last: bool
    inputs: tuple[tuple[str, str, int], ...]


class Case(NamedTuple):
    rule: UnitRule
    streams: dict[tuple[str, str], list[StreamTuple]]

    def assembler(self, gaps: Gaps | None = None) -> Assembler:
        inputs = tuple(dict.fromkeys(upstream for upstream, _ in self.streams))
        origins = {i: tuple(origin for upstream, origin in self.streams if upstream == i) for i in inputs}
        return assembler_for(OperatorSpec("op", "any", inputs, takes=self.rule), origins, gaps)

    def arrivals(self) -> list[Arrival]:
        return [(upstream, item) for (upstream, _), items in self.streams.items() for item in items]


def stream(origin: str, rng: random.Random, length: int, sparse: bool, until: int = 40) -> list[StreamTuple]:
    """A finite stream with its end; positions have gaps in their numbers if it is sparse."""
    borns = sorted(rng.randrange(until) for _ in range(length))
    items: list[StreamTuple] = []
    tau = prev_born = 0
    for born in borns:
        prev, tau = tau, tau + (rng.randint(1, 3) if sparse else 1)
        payloads = tuple(b"%d" % tau for _ in range(rng.choice((0, 1, 1, 2))))
        items.append(StreamTuple(origin, tau, prev, born, prev_born, payloads))
        prev_born = born
    return [*items, StreamTuple(origin, tau + 1, tau, until, prev_born, last=True)]


def random_case(rng: random.Random) -> Case:
    kind = rng.choice(("count", "time", "tau"))
    size, slide = rng.randint(1, 6), rng.randint(1, 6)
    if kind == "count":
        return Case(CountWindow(size, slide), {("a", "a/0"): stream("a/0", rng, rng.randint(0, 15), False)})
    keys = [("a", "a/0"), ("b", "b/0")]
    if kind == "time":
        keys = rng.choice((keys[:1], keys, [("a", "a/0"), ("a", "c/0"), ("b", "b/0")]))
    rule: UnitRule = TimeWindow(size, slide) if kind == "time" else SameTau()
    sparse = rng.random() < 0.5
    return Case(rule, {key: stream(key[1], rng, rng.randint(0, 12), sparse) for key in keys})


def reference(case: Case) -> list[Result]:
    match case.rule:
        case CountWindow(size, slide):
            return count_reference(case, size, slide)
        case TimeWindow(size, slide):
            return time_reference(case, size, slide)
        case _:
            return tau_reference(case)


def chained(
    units: list[tuple[int, int, tuple[tuple[str, str, int], ...]]], end: tuple[int, int]
) -> list[Result]:
    """Units of (tau, born, inputs), then the end, each with what came before it."""
    results, prev, prev_born = [], 0, 0
    for tau, born, inputs in units:
        results.append(Result(tau, prev, born, prev_born, False, inputs))
        prev, prev_born = tau, born
    return [*results, Result(end[0], prev, end[1], prev_born, True, ())]


def count_reference(case: Case, size: int, slide: int) -> list[Result]:
    ((key, items),) = case.streams.items()
    body, units = items[:-1], []
    for number in range(len(body)):
        window = body[number * slide : number * slide + size]
        if len(window) == size:
            inputs = tuple((*key, item.tau) for item in window)
            units.append((number + 1, window[-1].born_ns, inputs))
    return chained(units, (len(units) + 1, items[-1].born_ns))


def time_reference(case: Case, size: int, slide: int) -> list[Result]:
    streams = case.streams.items()
    body = [(key, item) for key, items in streams for item in sorted(items[:-1], key=lambda i: i.born_ns)]
    skipped = max(0, slide - size)
    units = []
    for number in range(1, 60):
        begin = (number - 1) * slide
        needed = [(key, i) for key, i in body if begin - skipped <= i.born_ns < begin + size]
        if needed:
            inside = sorted(needed, key=lambda member: (member[0][0], member[1].born_ns))
            inputs = tuple((*key, i.tau) for key, i in inside if i.born_ns >= begin)
            units.append((number, max(i.born_ns for _, i in needed), inputs))
    end = max(items[-1].born_ns for items in case.streams.values())
    return chained(units, (units[-1][0] + 1 if units else 1, end))


def tau_reference(case: Case) -> list[Result]:
    end = min(items[-1].tau for items in case.streams.values())
    at = {key: {item.tau: item for item in items} for key, items in case.streams.items()}

    def born(tau: int) -> int:
        """What every stream has reached at ``tau``, the latest of it."""
        return max((i.born_ns for items in at.values() for t, i in items.items() if t <= tau), default=0)

    units = []
    for tau in range(1, end):
        inputs = tuple((*key, tau) for key, items in at.items() if tau in items)
        if inputs:
            units.append((tau, born(tau), inputs))
    return chained(units, (end, born(end)))


def seen(unit: Unit) -> Result:
    inputs = tuple((up, item.origin, item.tau) for up, items in unit.inputs.items() for item in items)
    return Result(unit.tau, unit.prev, unit.born_ns, unit.prev_born_ns, unit.last, inputs)


def results(units: Iterable[Unit]) -> list[Result]:
    return sorted(seen(unit) for unit in units)


def shuffled(case: Case, rng: random.Random) -> list[Arrival]:
    """Out of order, some of it twice."""
    arrivals = case.arrivals()
    arrivals += [arrival for arrival in arrivals if rng.random() < 0.2]
    if rng.random() < 0.5:
        rng.shuffle(arrivals)
    else:
        arrivals.sort(key=lambda arrival: arrival[1].born_ns + rng.randint(0, 6))
    return arrivals


@pytest.mark.parametrize("part", range(10))
def test_units_are_those_of_the_reference(part: int) -> None:
    for seed in range(1000 * part, 1000 * (part + 1)):
        rng = random.Random(seed)
        case = random_case(rng)
        assembler = case.assembler()
        units, released = [], []
        for upstream, item in shuffled(case, rng):
            new = assembler.add(upstream, item)
            assert [unit.tau for unit in new] == sorted(unit.tau for unit in new)
            units += new
            for unit in rng.sample(units, min(2, len(units))):
                assembler.done(unit.origin, unit.tau)
            released += assembler.released()
        assert results(units) == reference(case), seed
        for unit in units:
            assembler.done(unit.origin, unit.tau)
        released += assembler.released()
        everything = {Position(upstream, item.origin, item.tau) for upstream, item in case.arrivals()}
        assert set(released) == everything, seed
        assert all(assembler.held(*key) == 0 for key in case.streams)


def test_another_replica_takes_over_in_mid_stream() -> None:
    for seed in range(3000):
        rng = random.Random(seed)
        case = random_case(rng)
        first, second = case.assembler(), case.assembler()
        done: set[int] = set()
        settled = dict.fromkeys(case.streams, 0)
        arrivals = shuffled(case, rng)
        for upstream, item in arrivals[: rng.randint(0, len(arrivals))]:
            for unit in first.add(upstream, item):
                if rng.random() < 0.7:
                    done.add(unit.tau)
                    first.done(unit.origin, unit.tau)
        released = set(first.released())
        for upstream, origin in case.streams:
            taus = [item.tau for item in case.streams[upstream, origin]]
            gone = [tau for tau in taus if Position(upstream, origin, tau) in released]
            assert gone == taus[: len(gone)], "what is done is the beginning of a stream"
            settled[upstream, origin] = gone[-1] if gone else 0
        again = [(up, i) for up, i in case.arrivals() if i.last or i.tau > settled[up, i.origin]]
        rng.shuffle(again)
        told = list(case.streams) if rng.random() < 0.5 else []
        for key in told:
            second.settled(*key, settled[key])
        units = [unit for upstream, item in again for unit in second.add(upstream, item)]
        for key in case.streams:
            if key not in told:
                second.settled(*key, settled[key])
        for unit in units:
            second.done(unit.origin, unit.tau)
        expected = {result.tau: result for result in reference(case)}
        assert all(seen(unit) == expected[unit.tau] for unit in units), seed
        assert done | {unit.tau for unit in units} == set(expected), seed
        assert {(p.upstream, p.origin, p.tau) for p in second.released()} >= {
            (up, item.origin, item.tau) for up, item in again
        }, seed


def test_what_is_lost_is_given_up_and_nothing_is_guessed() -> None:
    for seed in range(3000):
        rng = random.Random(seed)
        case = random_case(rng)
        assembler = case.assembler(Gaps(horizon=3, held=10))
        arrivals = sorted(case.arrivals(), key=lambda arrival: arrival[1].born_ns)
        arrivals = [a for a in arrivals if a[1].last or rng.random() > 0.15]
        whole: list[Result] = []
        used: set[tuple[str, str, int]] = set()
        wasted: list[StreamTuple] = []
        for upstream, item in arrivals:
            for unit in assembler.add(upstream, item):
                if unit.complete:
                    whole.append(seen(unit))
                    used |= set(whole[-1].inputs)
                    assembler.done(unit.origin, unit.tau)
            assembler.released()
            wasted += assembler.unused()
            assert sum(assembler.held(*key) for key in case.streams) <= 10 + len(case.streams)
        expected = reference(case)
        assert all(result in expected for result in whole), seed
        assert len(set(whole)) == len(whole)
        lost = {(item.origin, item.tau) for item in wasted}
        assert len(lost) == len(wasted) and not lost & {(origin, tau) for _, origin, tau in used}, seed


def test_siblings_hand_each_other_what_they_hold_and_make_every_unit_once() -> None:
    """In best effort, where an item is in one place: units are neither split nor made twice.

    Each stream comes in order, while its replicas change.
    """
    for seed in range(1500):
        rng = random.Random(seed)
        case = random_case(rng)
        here, there = (case.assembler(Gaps(horizon=1000, held=1000)) for _ in range(2))
        made: list[Result] = []
        wasted: list[StreamTuple] = []

        def give(upstream: str, item: StreamTuple, to: Assembler, made: list[Result] = made) -> None:
            for unit in to.add(upstream, item):
                assert unit.complete
                made.append(seen(unit))
                to.done(unit.origin, unit.tau)

        for upstream, item in sorted(case.arrivals(), key=lambda arrival: arrival[1].born_ns):
            if rng.random() < 0.2:
                here, there = there, here
                items, made_there = there.hand_over()
                for upstream_of, each in items:
                    here.made_elsewhere(upstream_of, [each], made_there)
                for upstream_of, each in items:
                    give(upstream_of, each, here)
            give(upstream, item, here)
            for assembler in (here, there):
                assembler.released()
                wasted += assembler.unused()
        expected = [result for result in reference(case) if not result.last]
        whole = sorted(result for result in made if not result.last)
        assert [(r.tau, r.inputs) for r in whole] == [(r.tau, r.inputs) for r in expected], seed
        for result, known in zip(whole, expected, strict=True):  # less may be known of what came before
            assert known.prev <= result.prev < result.tau and known.prev_born_ns <= result.prev_born_ns, seed
        used = {(origin, tau) for result in expected for _, origin, tau in result.inputs}
        assert not used & {(item.origin, item.tau) for item in wasted}, seed


def test_siblings_make_no_unit_twice_though_items_are_lost() -> None:
    """What was lost is overtaken: later windows are made, with items that earlier ones still wait with."""
    for seed in range(500):
        rng = random.Random(seed)
        case = random_case(rng)
        here, there = (case.assembler(Gaps(horizon=1000, held=1000)) for _ in range(2))
        made: list[Result] = []
        for upstream, item in sorted(case.arrivals(), key=lambda arrival: arrival[1].born_ns):
            arrived = [] if rng.random() < 0.1 else [(upstream, item)]
            if rng.random() < 0.1:
                here, there = there, here
                items, made_there = there.hand_over()
                for upstream_of, each in items:
                    here.made_elsewhere(upstream_of, [each], made_there)
                arrived[:0] = items
            for upstream_of, each in arrived:
                for unit in here.add(upstream_of, each):
                    if unit.complete:
                        made.append(seen(unit))
                    here.done(unit.origin, unit.tau)
        whole = [(result.tau, result.inputs) for result in made if not result.last]
        expected = [(result.tau, result.inputs) for result in reference(case)]
        assert len(set(whole)) == len(whole), seed
        assert all(result in expected for result in whole), seed


def test_what_was_handed_over_may_have_been_part_of_the_unit_that_ends_the_output() -> None:
    """One input of a join has ended where another still has something, and the third is late."""
    case = Case(SameTau(), {(name, f"{name}/0"): [] for name in "abc"})
    assembler = case.assembler(Gaps(horizon=2))

    def add(name: str, tau: int, last: bool = False) -> list[Unit]:
        return assembler.add(name, StreamTuple(f"{name}/0", tau, tau - 1, tau, tau - 1, (), last))

    assert not [*add("a", 2), *add("b", 2, last=True)]
    assert [(upstream, item.tau) for upstream, item in assembler.hand_over().items] == [("a", 2), ("b", 2)]
    assert not [*add("a", 3), *add("c", 2), *add("c", 3), *add("c", 4)]


LONG = 10**9


@pytest.mark.parametrize(
    "rule", [CountWindow(10, 1), TimeWindow(10 * LONG, LONG), SameTau()], ids=["count", "time", "tau"]
)
@pytest.mark.parametrize("descending", [False, True])
def test_gaps_in_a_stream_cost_no_more_than_the_items_that_came(
    rule: UnitRule, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leaves every other item out keeps all units open: they are not asked again for every item."""
    inputs = ("a",) if isinstance(rule, CountWindow) else ("a", "b")
    assembler = Case(rule, {(name, f"{name}/0"): [] for name in inputs}).assembler()
    asked = 0
    is_complete = type(assembler)._is_complete  # type: ignore[attr-defined]

    def count(self: Assembler, number: int) -> bool:
        nonlocal asked
        asked += 1
        return bool(is_complete(self, number))

    monkeypatch.setattr(type(assembler), "_is_complete", count)
    taus = range(1, 401)
    for name in inputs:
        for tau in reversed(taus) if descending else taus:
            if name == "b" or tau % 2:
                at = tau * LONG, (tau - 1) * LONG
                assembler.add(name, StreamTuple(f"{name}/0", tau, tau - 1, *at, (b"x",)))
    assert asked <= 20 * len(taus)
