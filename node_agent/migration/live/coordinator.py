"""Orders migrations of one operator, one after the other, and says who goes on if one of both hosts is gone.

It takes no part in a migration that goes well: hosts finish it also while the coordinator is dead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from node_agent.migration.live.messages import (
    Appoint,
    Appointed,
    Effect,
    Expect,
    Expecting,
    Fetch,
    Finished,
    Here,
    Keep,
    Message,
    Migrate,
    Note,
    Refused,
    Sent,
)
from node_agent.migration.live.state import serve
from node_agent.migration.live.values import DEFAULT_LIMITS, Limits, Name, Order, Word
from node_agent.model.checked import Whole


class Phase(StrEnum):
    """``asked``: the target. ``ordered``: by the owner. ``appointed``: one of both, as the other is gone.
    ``accepted``: it goes on, and neighbours are told. If it was released meanwhile, nothing has changed."""

    IDLE = "idle"
    ASKED = "asked"
    ORDERED = "ordered"
    APPOINTED = "appointed"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class CoordinatorJournal:
    """``winner``: who was appointed. ``owner``: of the operator, when no migration is under way. ``ended``:
    the last order, which hosts may finish after all if one of them was only taken for gone.
    """

    owner: Name
    phase: Phase = Phase.IDLE
    order: Order | None = None
    winner: Word = ""
    last: Whole = 0
    outcome: Word = ""
    ended: Order | None = None


@dataclass(slots=True)
class Coordinator:
    """``depot``: the operator's immutable state as it was deployed, for a host whose other host is gone."""

    name: str
    journal: CoordinatorJournal
    depot: bytes
    limits: Limits = DEFAULT_LIMITS

    @property
    def next_number(self) -> int:
        return self.journal.last + 1

    def migrate(self, order: Order) -> list[Effect]:
        """Begins a migration from the present owner; ``order`` has the next number."""
        journal = self.journal
        if journal.phase is not Phase.IDLE or order.migration != self.next_number:
            return []
        self.journal = replace(journal, phase=Phase.ASKED, order=order, winner="")
        return [Keep(self.journal), *self._say()]

    def restart(self) -> list[Effect]:
        return self._say()

    def gone(self, host: str) -> list[Effect]:
        """``host`` will not come back, or is taken for gone: the other host of the migration is appointed."""
        journal, order = self.journal, self.journal.order
        if order is None or host not in (order.source, order.target):
            return []
        if journal.phase is Phase.ASKED:
            return self._ended("abandoned", order.source)
        if journal.phase is not Phase.ORDERED:
            return []
        winner = order.target if host == order.source else order.source
        self.journal = replace(journal, phase=Phase.APPOINTED, winner=winner)
        return [Keep(self.journal), *self._say()]

    def receive(self, sender: str, message: Message) -> list[Effect]:
        journal, order = self.journal, self.journal.order
        if order is None:
            return self._finished_after_all(sender, message)
        if sender not in (order.source, order.target):
            return []
        match message:
            case Expecting(migration) if (migration, sender) == (order.migration, order.target):
                if journal.phase is Phase.ASKED:
                    self.journal = replace(journal, phase=Phase.ORDERED)
                    return [Keep(self.journal), *self._say()]
            case Refused(migration, reason) if migration == order.migration:
                return self._refused(order, sender, reason)
            case Appointed(term) if (sender, term) == (journal.winner, self._term(order)):
                if journal.phase is Phase.APPOINTED:
                    self.journal = replace(journal, phase=Phase.ACCEPTED)
                    return [Keep(self.journal), *self._say()]
            case Finished(migration, outcome) if migration == order.migration:
                return self._finished(order, sender, outcome)
            case Fetch(migration) if migration == order.migration and sender == journal.winner:
                return serve(sender, self.depot, order.card, message, self.limits.window)
            case Here():
                return self._say(sender)
        return []

    def _refused(self, order: Order, sender: str, reason: str) -> list[Effect]:
        match self.journal.phase:
            case Phase.ASKED if sender == order.target:
                return self._ended(reason, order.source)
            case Phase.ORDERED if sender == order.source:
                return self._ended(reason, order.source)
            case Phase.APPOINTED if sender == self.journal.winner:
                return self._ended(reason, order.source)
        return []

    def _finished(self, order: Order, sender: str, outcome: str) -> list[Effect]:
        moved = outcome == "moved"
        if self.journal.winner and sender != self.journal.winner:
            return []
        return self._ended(outcome, order.target if moved else order.source)

    def _finished_after_all(self, sender: str, message: Message) -> list[Effect]:
        order = self.journal.ended
        if order is None or sender not in (order.source, order.target):
            return []
        if message != Finished(order.migration, "moved") or self.journal.owner != order.source:
            return []
        return self._end(order, "moved", order.target)

    def _ended(self, outcome: str, owner: str) -> list[Effect]:
        order = self.journal.order
        assert order is not None
        return self._end(order, outcome, owner)

    def _end(self, order: Order, outcome: str, owner: str) -> list[Effect]:
        last = max(order.migration, self.journal.last)
        self.journal = CoordinatorJournal(owner, last=last, outcome=outcome, ended=order)
        return [Keep(self.journal), Note("finished", order.migration, outcome)]

    def _term(self, order: Order) -> int:
        """The term in which the winner is the owner."""
        return order.term + (self.journal.winner == order.source)

    def _say(self, to: str | None = None) -> list[Effect]:
        """What the hosts must know at this phase; again, if they or the coordinator have started again."""
        journal, order = self.journal, self.journal.order
        said: Sequence[Sent] = ()
        if order is not None:
            match journal.phase:
                case Phase.ASKED:
                    said = [Sent(order.target, Expect(order))]
                case Phase.ORDERED:
                    said = [Sent(order.source, Migrate(order))]
                case Phase.APPOINTED:
                    said = [Sent(journal.winner, Appoint(self._term(order), journal.winner))]
                case Phase.ACCEPTED:
                    appoint = Appoint(self._term(order), journal.winner)
                    said = [Sent(each, appoint) for each in order.neighbours]
        return [each for each in said if to is None or each.to == to]
