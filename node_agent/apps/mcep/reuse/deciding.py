"""A selection manager at work on its broker: takes offers, decides once in a period, correlates, answers.

Periods are of the drives' time, not of a clock. A selection belongs to the period in which it could be known
first, and a period is decided when all operators have told what belongs to it. So which selections are
covered by which does not depend on how long messages take. Only an operator that lags more than ``LATE_S``
behind is not waited for: its selections come into a later period.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Point, Region, bounds, enclosing, middle
from node_agent.apps.mcep.model import AtomicId, Event, McepError, quality
from node_agent.apps.mcep.reuse.deployed import Managed, Reuse, split_key
from node_agent.apps.mcep.reuse.disparity import disparity_of_places
from node_agent.apps.mcep.reuse.lineage import input_of
from node_agent.apps.mcep.reuse.manager import Connected, Process, SelectionManager
from node_agent.apps.mcep.reuse.neighbours import Graph, Neighbourhood, Reach, Shareable, all_of_a_type
from node_agent.apps.mcep.reuse.offers import Offer, Offered
from node_agent.apps.mcep.reuse.results import Key, Sent
from node_agent.apps.mcep.windows import Count, Operator, Selection, holds

LATE_S = 30.0
MOST_WAITING, MOST_EVENTS = 20_000, 50_000
"""Selections and events of one operator that wait for a decision. A broker that tells more says what cannot
be: operators stop long before, since clients are not heard while so much waits."""


class Work(NamedTuple):
    """What a manager has done. ``offered``: selections that were decided; ``processed``: of these, those
    that were correlated. ``comparisons``: of two selections. ``rounds``: decisions. ``waited_s``: from when
    selections could be known to the end of their period, together. ``disparity``: of the ``composed``
    selections that were processed and are made of results, together."""

    offered: int = 0
    processed: int = 0
    comparisons: int = 0
    rounds: int = 0
    waited_s: float = 0.0
    disparity: float = 0.0
    composed: int = 0


@dataclass(slots=True)
class Pair:
    """Selections of ``of`` that got results of ``by``; sums of precision and recall by atomic events."""

    count: int = 0
    precision: float = 0.0
    recall: float = 0.0


class _Told(NamedTuple):
    """A selection that waits for its period."""

    round: int
    known: float
    number: int
    selection: Selection


@dataclass(slots=True)
class _Book:
    """What an operator's broker has told."""

    operator: Operator
    full: Mapping[str, int]
    upto: float = -math.inf
    told: deque[_Told] = field(default_factory=deque)
    events: dict[int, Event] = field(default_factory=dict)
    forgotten: int = 0
    next_event: int = 0
    next_number: int = 0
    since: float = -math.inf
    region: Region | None = None
    """Of the last selection that was decided, or the first that came."""
    undecided: int = 0
    is_connected: bool = False


class Deciding:
    """``hosts``: by key of an operator, its broker."""

    def __init__(
        self, managed: Managed, reuse: Reuse, operators: Mapping[str, Operator], hosts: Mapping[str, str]
    ) -> None:
        self.name, self.work = managed.name, Work()
        self.pairs: dict[tuple[str, str], Pair] = {}
        """By the operator that was processed and the one that got its results."""
        self._reuse, self._hosts = reuse, hosts
        self._manager = SelectionManager(reuse.settings)
        self._here = Neighbourhood()
        self._neighbours: Mapping[str, set[str]] = {}
        self._priorities: Mapping[str, float] = {}
        self._selected = -math.inf
        """When neighbours were chosen last."""
        self._books = {key: _Book(operators[key], _full(operators[key])) for key in managed.operators}
        self._selections: dict[Key, Selection] = {}
        self._decided = -math.inf
        """All periods before this one are decided."""

    @property
    def waiting(self) -> int:
        return sum(len(each.told) + each.undecided for each in self._books.values())

    def offered(self, said: Offered) -> None:
        """Raises ``McepError`` if an operator cannot say this. Call ``look`` afterwards."""
        book = self._books[said.operator]
        _check(book, said)
        book.since, book.upto = max(book.since, said.since), max(book.upto, said.upto)
        for each in said.fresh:
            book.events[book.next_event] = each
            book.next_event += 1
        for offer in said.selections:
            windows = {name: tuple(book.events[each] for each in numbers) for name, numbers in offer.windows}
            known = max(offer.end, book.since)
            selection = Selection(windows, offer.end, said.epoch, said.region)
            number, book.next_number = book.next_number, book.next_number + 1
            book.told.append(_Told(self._round(known), known, number, selection))
        for number in range(book.forgotten, min(said.forget, book.next_event)):
            book.events.pop(number, None)
        book.forgotten = max(book.forgotten, min(said.forget, book.next_event))

    def look(self, now: float) -> list[Sent]:
        """Decides all periods that are over. ``now``: up to when all events have arrived."""
        least = min((each.upto for each in self._books.values()), default=-math.inf)
        horizon = max(least, now - LATE_S if now < math.inf else -math.inf)
        if math.isnan(horizon) or horizon == -math.inf:
            return []
        sent: list[Sent] = []
        while (number := self._next_round(horizon)) is not None:
            sent += self._decide(number)
            self._decided = max(self._decided, number + 1)
        return sent

    def _round(self, t: float) -> int:
        return math.floor(t / self._reuse.period)

    def _next_round(self, horizon: float) -> int | None:
        """The first period with something to decide, if it is over."""
        rounds = [each.told[0].round for each in self._books.values() if each.told]
        if any(each.undecided for each in self._books.values()):
            rounds.append(int(self._decided))
        if not rounds:
            return None
        found = int(max(min(rounds), self._decided))
        return found if (found + 1) * self._reuse.period <= horizon else None

    def _decide(self, number: int) -> list[Sent]:
        end = (number + 1) * self._reuse.period
        for key, book in self._books.items():
            while book.told and book.told[0].round <= number:
                self._fill(key, book, book.told.popleft(), end)
        for key, book in self._books.items():
            if book.is_connected:
                is_over = book.upto == math.inf and not book.told
                self._manager.progress(key, math.inf if is_over else end)
        self._choose_neighbours(end)
        decision = self._manager.cover(self._neighbours, self._priorities)
        sent: list[Sent] = []
        count = 0
        for each in decision.process:
            count += len(each.covered)
            self._count(each)
            sent += self._manager.finished(each.key, self._processed(each))
            for covered in each.covered:
                del self._selections[covered]
                self._books[covered[0]].undecided -= 1
        done = self.work
        self.work = done._replace(
            offered=done.offered + count,
            processed=done.processed + len(decision.process),
            comparisons=done.comparisons + decision.comparisons,
            rounds=done.rounds + 1,
        )
        self._leave()
        return sent + self._manager.heartbeat()

    def _fill(self, key: str, book: _Book, told: _Told, end: float) -> None:
        region = told.selection.region
        assert region is not None, "checked when it came"
        query, _ = split_key(key)
        if not book.is_connected:
            book.is_connected, book.region = True, region
            self._manager.connect(Connected(key, region, (self._hosts[key],)))
            shareable = Shareable(key, self.name, self._reuse.reach)
            self._here.enter(Graph(query, middle(bounds(region)), region, (shareable,)))
            self._selected = -math.inf
        elif region != book.region:
            book.region = region
            self._manager.move(key, region)
            self._here.move(query, middle(bounds(region)), region)
        self._manager.fill(key, told.number, map(input_of, told.selection.events))
        self._manager.close(key, told.number)
        self._selections[key, told.number] = told.selection
        book.undecided += 1
        self.work = self.work._replace(waited_s=self.work.waited_s + max(0.0, end - told.known))

    def _leave(self) -> None:
        """Forgets operators whose query has ended."""
        for key, book in self._books.items():
            if book.is_connected and book.upto == math.inf and not book.told and not book.undecided:
                book.is_connected = False
                book.events.clear()
                self._manager.disconnect(key)
                self._here.leave(split_key(key)[0])
                self._selected = -math.inf

    def _choose_neighbours(self, now: float) -> None:
        """Only for what shares at all; with unlimited reach all are neighbours of all."""
        if now < self._selected + self._reuse.again:
            return
        self._selected = now
        if self._reuse.reach == Reach():
            every = dict.fromkeys((each for each in self._here.neighbours), self.name)
            self._neighbours = self._here.neighbours = all_of_a_type(every)
        else:
            for each in sorted(self._here.graphs):
                self._here.select(each)
            self._neighbours = self._here.neighbours
        if self._reuse.settings.heuristic == "neighbour":
            self._priorities = self._here.priorities()

    def _processed(self, process: Process) -> list[Event]:
        selection = self._selections[process.key]
        self._judge_places(selection)
        key, number = process.key
        step = self._books[key].operator.correlate(selection)
        if not step.outputs:
            return []
        events = selection.events
        place = enclosing(each.place for each in events)
        if place is None:
            place = bounds(selection.region) if selection.region else Point(0.0, 0.0)
        ancestors: frozenset[AtomicId] = frozenset().union(*(each.provenance for each in events))
        return [
            Event(
                selection.end, seq, key, made.type, made.place or place, made.attributes, 0, number, ancestors
            )
            for seq, made in enumerate(step.outputs)
        ]

    def _judge_places(self, selection: Selection) -> None:
        """How badly results fit together that were made for different places. The middle of a result's place
        stands for those of its atomic events, and regions are those that are known here now."""
        makers = {split_key(each.shared.origin[0])[0] for each in selection.events if each.shared is not None}
        regions = [graph.interest for name, graph in self._here.graphs.items() if name in makers]
        if regions:
            places = [middle(each.place) for each in selection.events]
            found = self.work.disparity + disparity_of_places(places, regions)
            self.work = self.work._replace(disparity=found, composed=self.work.composed + 1)

    def _count(self, process: Process) -> None:
        used: frozenset[AtomicId] | None = None
        for each in process.covered:
            if each == process.key:
                continue
            if used is None:
                events = self._selections[process.key].events
                used = frozenset().union(*(event.provenance for event in events))
            wanted = frozenset().union(*(event.wanted for event in self._selections[each].events))
            found = quality(wanted, used)
            pair = self.pairs.setdefault((process.key[0], each[0]), Pair())
            pair.count += 1
            pair.precision += found.precision
            pair.recall += found.recall


def _full(operator: Operator) -> dict[str, int]:
    return {each.name: each.length.events for each in operator.windows if isinstance(each.length, Count)}


def _check(book: _Book, said: Offered) -> None:
    if book.upto == math.inf:
        raise McepError(f"{said.operator} goes on after its query ended")
    if len(book.told) + book.undecided + len(said.selections) > MOST_WAITING:
        raise McepError(f"more than {MOST_WAITING} selections of {said.operator} wait")
    if len(book.events) + len(said.fresh) > MOST_EVENTS:
        raise McepError(f"selections of {said.operator} that wait have more than {MOST_EVENTS} events")
    if said.region is None and said.selections:
        raise McepError(f"{said.operator} selects after its query ended")
    if said.forget > book.next_event + len(said.fresh):
        raise McepError(f"{said.operator} forgets events that it has not told")
    for each in said.selections:
        _check_offer(book, said, each)


def _check_offer(book: _Book, said: Offered, offer: Offer) -> None:
    known = range(book.forgotten, book.next_event + len(said.fresh))
    counts = Counter({name: len(numbers) for name, numbers in offer.windows})
    names = [name for name, _ in offer.windows]
    if names != [each.name for each in book.operator.windows]:
        raise McepError(f"a selection of {said.operator} has other windows than the operator")
    if any(number not in known for _, numbers in offer.windows for number in numbers):
        raise McepError(f"a selection of {said.operator} has events that were not told")
    too_many = any(counts[name] > most for name, most in book.full.items())
    if too_many or not holds(book.operator.when, counts, book.full):
        raise McepError(
            f"a selection of {said.operator} is none: its windows hold too few or too many events"
        )
