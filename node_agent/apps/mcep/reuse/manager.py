"""The selection manager of some operators of one type (thesis, section 5.3.1), as a state machine.

Its three tasks. *Selection*: operators' selections are filled and closed. *Covering*: ``cover``, called
about once a second, decides which of them are processed and for whom. *Streaming*: ``finished`` sends the
results of a processed selection to the brokers of all it covers. It never correlates: it says what to.

    manager = SelectionManager(Settings(Rules(Quality(0.6, 0.6))))
    manager.connect(Connected("q1/mean", region, ("b2",)))
    manager.fill("q1/mean", 0, [Input(event)])
    manager.close("q1/mean", 0)
    for each in manager.cover(neighbours, priorities).process:
        sent = manager.finished(each.key, correlate(each.inputs))
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.model import Event, McepError
from node_agent.apps.mcep.reuse.annotating import Recent, candidate
from node_agent.apps.mcep.reuse.batches import ALONE, Batch, Batching, Timed, counterparts, split
from node_agent.apps.mcep.reuse.cells import CellSize
from node_agent.apps.mcep.reuse.covering import HEURISTICS, Neighbours
from node_agent.apps.mcep.reuse.judging import Judge, Rules
from node_agent.apps.mcep.reuse.results import Input, Key, Results, Sent, Share
from node_agent.apps.mcep.reuse.similarity import Candidate, by_atoms, by_cells


@dataclass(frozen=True, slots=True)
class Settings:
    """``heuristic``: ``similarity`` (MSH), ``neighbour`` (MNH) or ``none``. ``early``: selections are
    decided before they are complete; only if each is alone in its batch. ``recent_s``: how long an
    operator's events count as recent. ``cell``: of the grid, if the estimate needs one."""

    rules: Rules = field(default_factory=Rules)
    heuristic: str = "neighbour"
    batching: Batching = ALONE
    early: bool = False
    recent_s: float = 5.0
    cell: CellSize | None = None

    def __post_init__(self) -> None:
        if self.heuristic not in HEURISTICS:
            raise McepError(f"heuristics are {', '.join(HEURISTICS)}, not {self.heuristic}")
        if self.early and self.batching != ALONE:
            raise McepError("selections are decided early only if each is alone in its batch")
        if self.rules.estimate is by_cells and self.cell is None:
            raise McepError("to estimate by a grid, say how large its cells are")


@dataclass(frozen=True, slots=True)
class Connected:
    """An operator, the region it processes, and the brokers that need its results."""

    operator: str
    region: Region
    destinations: tuple[str, ...]


class Process(NamedTuple):
    """Correlate this selection, and tell ``finished``."""

    key: Key
    inputs: tuple[Input, ...]
    covered: tuple[Key, ...]


class Decision(NamedTuple):
    """``process``: what is complete and to be correlated now. ``groups``: all decisions of this time.
    ``comparisons``: estimates that they took."""

    process: tuple[Process, ...]
    groups: tuple[tuple[Key, tuple[Key, ...]], ...]
    comparisons: int


@dataclass(slots=True)
class _Record:
    """``covered``: selections it stands for; empty once it is covered. ``by``: which one covers it."""

    region: Region
    inputs: list[Input] = field(default_factory=list)
    missing: int = 0
    closed: bool = False
    covered: tuple[Key, ...] = ()
    by: Key | None = None
    ordered: bool = False
    """Whether it was handed out to be correlated."""

    @property
    def is_decided(self) -> bool:
        return self.by is not None


class SelectionManager:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._operators: dict[str, Connected] = {}
        self._records: dict[Key, _Record] = {}
        self._candidates: dict[Key, Candidate] = {}
        self._known_to: dict[str, float] = {}
        self._recent: dict[str, Recent] = {}
        self._settled_early: set[Key] = set()
        self._empty: dict[str, list[Key]] = {}

    def connect(self, operator: Connected) -> None:
        if operator.operator in self._operators:
            raise McepError(f"operator {operator.operator} is connected already")
        self._operators[operator.operator] = operator
        self._recent[operator.operator] = Recent(self.settings.recent_s)

    def move(self, operator: str, region: Region) -> None:
        """The interest of an operator switched: selections that open from now on are of this region."""
        self._operators[operator] = replace(self._operators[operator], region=region)

    def disconnect(self, operator: str) -> None:
        """Forgets an operator. What it was to process for others and did not is decided again."""
        del self._operators[operator], self._recent[operator]
        self._known_to.pop(operator, None)
        for key in [each for each in self._records if each[0] == operator]:
            record = self._records.pop(key)
            self._candidates.pop(key, None)
            for other in record.covered:
                if other != key and other in self._records:
                    released = self._records[other]
                    released.by, released.covered = None, ()
            if record.by is not None and record.by in self._records:
                coverer = self._records[record.by]
                coverer.covered = tuple(each for each in coverer.covered if each != key)
        self._settled_early = {each for each in self._settled_early if each[0] != operator}

    def fill(self, operator: str, number: int, inputs: Iterable[Input], missing: int = 0) -> None:
        """Adds events to a selection, which opens with the first call. ``missing``: how many atomic events
        it still waits for."""
        key = operator, number
        if key in self._settled_early:
            return
        if key not in self._records:
            self._records[key] = _Record(self._operators[operator].region)
        record = self._records[key]
        if record.closed:
            raise McepError(f"selection {number} of {operator} is closed")
        self._candidates.pop(key, None)
        first = len(record.inputs)
        record.inputs.extend(inputs)
        self._recent[operator].add(record.inputs[first:])
        record.missing = missing

    def close(self, operator: str, number: int) -> list[Process]:
        """A selection is complete. Returns it if it was decided before that it is processed."""
        key = operator, number
        if key in self._settled_early:
            self._settled_early.discard(key)
            return []
        record = self._records[key]
        record.closed, record.missing = True, 0
        self._candidates.pop(key, None)
        return self._order(key) if record.by == key else []

    def progress(self, operator: str, t: float) -> None:
        """No selection of this operator that ends before ``t`` will be closed any more."""
        self._known_to[operator] = max(t, self._known_to.get(operator, t))

    def cover(self, neighbours: Neighbours, priority: Mapping[str, float] | None = None) -> Decision:
        """Decides about all selections that are not decided and complete, or with ``early`` about all.

        A selection that is not complete and would be processed for itself alone is left for the next time.
        """
        batches = self._batches()
        judge = Judge(self.settings.rules)
        groups = HEURISTICS[self.settings.heuristic](batches, neighbours, judge, priority or {})
        decided: list[tuple[Key, tuple[Key, ...]]] = [(each, (each,)) for each in self._without_input()]
        for group in groups:
            covered: dict[Key, list[Key]] = {_key(each): [_key(each)] for each in group.by.selections}
            for other in group.covered:
                if other is not group.by:
                    for used, wanted in counterparts(group.by, other):
                        covered[_key(used)].append(_key(wanted))
            decided += [(by, tuple(keys)) for by, keys in covered.items()]
        process: list[Process] = []
        kept = []
        for by, keys in decided:
            if len(keys) == 1 and not self._records[by].closed:
                continue
            kept.append((by, keys))
            self._records[by].covered = keys
            for each in keys:
                self._records[each].by = by
            if self._records[by].closed:
                process += self._order(by)
        return Decision(tuple(process), tuple(kept), judge.comparisons)

    def finished(self, key: Key, outputs: Sequence[Event]) -> list[Sent]:
        """A selection was correlated. Returns its results for each broker that needs them."""
        record = self._records.get(key)
        if record is None:
            return []  # its operator left meanwhile; others whom it covered are decided again
        if not record.ordered:
            raise McepError(f"selection {key[1]} of {key[0]} was not to be processed")
        by_broker: dict[str, list[Share]] = {}
        used_cells = self._candidate(key).used_cells if record.inputs else {}
        for each in record.covered:
            share = self._share(each, key)
            for broker in self._operators[each[0]].destinations:
                by_broker.setdefault(broker, []).append(share)
        for each in record.covered:
            if not self._records.pop(each).closed:
                self._settled_early.add(each)
            self._candidates.pop(each, None)
        if not outputs:
            for broker, shares in by_broker.items():
                self._empty.setdefault(broker, []).extend(share[:2] for share in shares)
            return []
        return [
            (broker, Results(tuple(outputs), tuple(shares), used_cells, self._take_empty(broker)))
            for broker, shares in by_broker.items()
        ]

    def heartbeat(self) -> list[Sent]:
        """Which selections gave nothing, for brokers that got no results lately."""
        return [(broker, Results(empty=self._take_empty(broker))) for broker in list(self._empty)]

    def undecided(self) -> int:
        return sum(not each.is_decided for each in self._records.values())

    def _take_empty(self, broker: str) -> tuple[Key, ...]:
        return tuple(self._empty.pop(broker, ()))

    def _order(self, key: Key) -> list[Process]:
        record = self._records[key]
        if record.ordered:
            return []
        record.ordered = True
        return [Process(key, tuple(record.inputs), record.covered)]

    def _share(self, key: Key, by: Key) -> Share:
        """With exact ids where they differ from those of the results."""
        if not self._records[key].inputs:
            return Share(*key)
        wanted, used = self._candidate(key), self._candidate(by)
        similarity = by_atoms(wanted, used).quality.precision
        atoms = None if wanted.wanted == used.used else wanted.wanted
        return Share(*key, similarity, atoms, wanted.wanted_cells or None)

    def _without_input(self) -> list[Key]:
        """Selections that are complete without an event. What comes of them holds for their own region only,
        so they are not shared."""
        return [
            key
            for key, each in sorted(self._records.items())
            if each.closed and not each.inputs and not each.is_decided
        ]

    def _batches(self) -> list[Batch]:
        found: dict[str, list[Candidate]] = {}
        batching = self.settings.batching
        for key in sorted(self._records):
            record = self._records[key]
            if record.is_decided or not record.inputs or not (record.closed or self.settings.early):
                continue
            each = self._candidate(key)
            if isinstance(batching, Timed):
                over = (batching.span_of(each.end) + 1) * batching.seconds
                if self._known_to.get(key[0], -math.inf) < over:
                    continue
            found.setdefault(key[0], []).append(each)
        return [batch for each in found.values() for batch in split(each, batching)]

    def _candidate(self, key: Key) -> Candidate:
        known = self._candidates.get(key)
        if known is None:
            record, given = self._records[key], self.settings
            recent = self._recent[key[0]]
            known = self._candidates[key] = candidate(
                key, record.inputs, record.missing, record.region, recent, given.rules, given.cell
            )
        return known


def _key(candidate: Candidate) -> Key:
    return candidate.operator, candidate.number
