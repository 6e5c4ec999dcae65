"""What a selection manager sends to brokers, and how these put it in order (thesis, streaming task).

A message has the results of one processed selection, once for a broker however many operators there get
them, and says for which selections of which operators. It also names selections that gave nothing, so that
nobody waits for them. ``Sorter`` hands out each operator's selections in the order of their numbers, however
messages are delayed, repeated or mixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from node_agent.apps.mcep.model import AtomicId, Event, McepError
from node_agent.apps.mcep.reuse.cells import Cells

Key = tuple[str, int]
"""An operator, and the number of one of its selections."""
Atoms = frozenset[AtomicId]


@dataclass(frozen=True, slots=True)
class Input:
    """An event with what it depends on. ``event.provenance`` and ``used_cells``: as it was made.
    ``wanted`` and ``wanted_cells``: as it would have been made without reuse; None: the same.
    ``similarity``: precision of the one for the other."""

    event: Event
    wanted: Atoms | None = None
    similarity: float = 1.0
    used_cells: Cells = field(default_factory=dict)
    wanted_cells: Cells | None = None


class Share(NamedTuple):
    """A selection that gets results, with what it would have depended on without reuse."""

    operator: str
    number: int
    similarity: float = 1.0
    wanted: Atoms | None = None
    wanted_cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """``outputs``: of one processed selection, for all of ``shares``. ``empty``: selections without
    results."""

    outputs: tuple[Event, ...] = ()
    shares: tuple[Share, ...] = ()
    used_cells: Cells = field(default_factory=dict)
    empty: tuple[Key, ...] = ()


Sent = tuple[str, Results]
"""To a broker."""
Ordered = tuple[str, int, tuple[Input, ...]]
"""An operator, the number of its selection, and the results."""


class Sorter:
    """The results of several operators, on the broker that needs them. ``ahead``: how many later selections
    of an operator may wait for an earlier one."""

    def __init__(self, first: Mapping[str, int], ahead: int = 10_000) -> None:
        self._next = dict(first)
        self._waiting: dict[str, dict[int, tuple[Input, ...]]] = {name: {} for name in first}
        self._ahead = ahead

    def receive(self, message: Results) -> list[Ordered]:
        """Takes a message. Returns selections whose turn it is, those without results left out.

        Raises ``McepError`` for an operator that is not known here or a number that is too far ahead.
        """
        touched: dict[str, None] = {}
        for share in message.shares:
            inputs = tuple(
                Input(each, share.wanted, share.similarity, message.used_cells, share.wanted_cells)
                for each in message.outputs
            )
            self._put((share.operator, share.number), inputs)
            touched[share.operator] = None
        for operator, number in message.empty:
            self._put((operator, number), ())
            touched[operator] = None
        return [each for operator in touched for each in self._take(operator)]

    def next_of(self, operator: str) -> int:
        """All selections before this one have been handed out."""
        return self._next[operator]

    def waits_for(self) -> dict[str, int]:
        """By operator, the number for which others wait."""
        return {name: self._next[name] for name, waiting in self._waiting.items() if waiting}

    def _put(self, key: Key, inputs: tuple[Input, ...]) -> None:
        operator, number = key
        if operator not in self._next:
            raise McepError(f"nobody here waits for results of {operator}")
        if number >= self._next[operator] + self._ahead:
            raise McepError(f"selection {number} of {operator} is too far ahead of {self._next[operator]}")
        if number >= self._next[operator]:
            self._waiting[operator].setdefault(number, inputs)

    def _take(self, operator: str) -> list[Ordered]:
        found: list[Ordered] = []
        waiting = self._waiting[operator]
        while (number := self._next[operator]) in waiting:
            inputs = waiting.pop(number)
            self._next[operator] = number + 1
            if inputs:
                found.append((operator, number, inputs))
        return found
