"""A host's part in moving an operator (Alg. 4.4): the old host, the new one, and either after a crash.

The owner runs the operator. Beside it, during a migration, the other host is its standby: it keeps a
savepoint from which it could go on, and the owner lets upstreams forget only what neither needs. So whichever
dies, the other one has all it needs. The old host decides on the hand-over by one entry in its journal; a
host that is gone is replaced only by the coordinator's word, in a higher term.

    host = Host("b1", "planner", build)
    for effect in host.receive(sender, message, now):
        ...  # carried out in order; ``Keep`` and ``Store`` before what follows them
"""

from collections.abc import Sequence
from dataclasses import replace

from node_agent.migration.live.journal import Journal, Role
from node_agent.migration.live.messages import (
    Ack,
    Appoint,
    Appointed,
    Begins,
    Chunk,
    Effect,
    Expect,
    Finished,
    Here,
    Items,
    Keep,
    Message,
    Migrate,
    Moved,
    Note,
    Offer,
    Refused,
    Release,
    Released,
    Sent,
    Start,
    StreamsTo,
    Superseded,
    Welcome,
)
from node_agent.migration.live.new_host import (
    expect,
    from_source,
    on_expect,
    progress,
    take_items,
)
from node_agent.migration.live.old_host import (
    from_target,
    hand_over_messages,
    on_migrate,
    tick,
)
from node_agent.migration.live.owner import (
    confirmed_by,
    go_on,
    hail,
    leave,
    start_or_fetch,
    try_to_settle,
)
from node_agent.migration.live.site import Site
from node_agent.migration.live.values import Card, Order, Savepoint

NOTHING_KEPT = Savepoint(())
"""The other host may still need everything, as far as this one knows."""


class Host(Site):
    """One host, for one operator."""

    __slots__ = ()

    def own(self, card: Card, streams: Sequence[str], sinks: Sequence[str]) -> list[Effect]:
        """Runs the operator from its beginning, as its first owner."""
        begin = Savepoint(tuple((stream, 0) for stream in streams))
        journal = Journal(Role.OWNER, 1, begin, None, True, card, tuple(streams), tuple(sinks))
        self.begin_work(journal)
        return [Keep(journal), *hail(self)]

    def restart(self, now: float) -> list[Effect]:
        """Goes on from ``journal`` and ``state`` after a crash; all else is lost."""
        journal, order = self.journal, self.journal.order
        effects: list[Effect] = [Sent(self.coordinator, Here(order.migration if order else 0))]
        if journal.role is Role.OWNER:
            self.begin_work(journal)
            if order is not None and order.source:
                self.kept = NOTHING_KEPT
            effects += start_or_fetch(self)
            effects += hail(self)
            if order is not None and order.source == self.name:
                effects += self.tick(now)
            elif order is not None and order.source:
                effects.append(Sent(order.source, Here(order.migration)))
        elif order is None and journal.partner:
            effects.append(Sent(journal.partner, Released(journal.last)))  # it may not have heard
        elif order is not None and order.source == self.name:
            assert journal.safe is not None
            effects += hand_over_messages(self, order, journal.safe, ())
        elif order is not None:
            expect(self, order)
            effects.append(Sent(order.source, Here(order.migration)))
        return effects

    def receive(self, sender: str, message: Message, now: float) -> list[Effect]:
        if sender == self.coordinator:
            match message:
                case Expect(order):
                    return on_expect(self, order)
                case Migrate(order):
                    return on_migrate(self, order, now)
                case Appoint(term, host) if host == self.name:
                    return self._on_appoint(term)
        effects = self._from_neighbour(sender, message)
        if effects is None:
            effects = self._from_other_host(sender, message)
        return [*effects, *self.tick(now)]

    def _on_appoint(self, term: int) -> list[Effect]:
        """The other host is gone."""
        journal, order = self.journal, self.journal.order
        if order is None and term // 2 <= journal.last:
            return [Sent(self.coordinator, Finished(journal.last, journal.outcome))]
        if term < journal.term:
            return []
        if term == journal.term and self.is_owner and order is not None:
            return self._go_on_alone(order)
        if order is None or journal.safe is None:
            return [Sent(self.coordinator, Refused(term // 2, "nothing_to_start_from"))]
        was_owner = self.is_owner
        self.copying, self.kept, self.releasing = None, None, ""
        self.journal = replace(journal, role=Role.OWNER, term=term, order=replace(order, source=""))
        what = "took_over" if order.target == self.name else "took_back"
        effects: list[Effect] = [Keep(self.journal), Sent(self.coordinator, Appointed(term))]
        effects.append(Note(what, order.migration, "appointed"))
        self.confirmed.clear()
        if was_owner:
            assert self.work is not None
            self.work.paused = False
            self.work.following.clear()
            return [*effects, *self.work.run(self.buffers), *hail(self)]
        held = self.buffers
        self.begin_work(self.journal)
        self.buffers = held or self.buffers
        return [*effects, *start_or_fetch(self, self.coordinator), *hail(self)]

    def _go_on_alone(self, order: Order) -> list[Effect]:
        """The other host is gone after it has handed over."""
        self.journal = replace(self.journal, order=replace(order, source=""))
        self.kept, self.releasing = None, ""
        fetch = self.assembler.ask(self.coordinator) if self.assembler is not None else []
        accepted = Sent(self.coordinator, Appointed(self.journal.term))
        return [Keep(self.journal), accepted, *fetch, *try_to_settle(self)]

    def _from_neighbour(self, sender: str, message: Message) -> list[Effect] | None:
        """Returns None if the message is none of a neighbour's."""
        journal = self.journal
        match message:
            case Items(items) if sender in self.buffers:
                return take_items(self, sender, items)
            case Begins(first) if sender in self.buffers:
                self.first_direct[sender] = first
                return progress(self)
            case StreamsTo(host, first) if self.copying is not None and journal.order is not None:
                if host == journal.order.target and sender in journal.streams:
                    self.copying.ends[sender] = first - 1
                return []
            case Moved() if sender in journal.streams:
                return confirmed_by(self, sender, message)
            case Welcome() if sender in journal.sinks:
                return confirmed_by(self, sender, message)
            case Ack(upto) if sender in journal.sinks:
                if not self.is_owner or self.work is None:
                    return []
                self.work.acknowledged(sender, min(upto, self.work.made))
                return go_on(self)
            case Superseded(term, owner) if sender in (*journal.streams, *journal.sinks):
                if self.is_owner and term > journal.term and owner != self.name:
                    return leave(self, "superseded")
                return []
            case Items() | Begins() | StreamsTo() | Moved() | Welcome() | Ack() | Superseded():
                return []
        return None

    def _from_other_host(self, sender: str, message: Message) -> list[Effect]:
        journal, order = self.journal, self.journal.order
        migration = getattr(message, "migration", 0)
        match message:
            case Start() | Here() if self.is_owner and migration and not self.is_beside(sender, migration):
                return [Sent(sender, Release(migration))]
            case Release() if migration <= journal.last or (order is None and not self.is_owner):
                return [Sent(sender, Released(migration))]
            case Offer() if order is None or order.migration != migration:
                return [Sent(sender, Refused(migration, "not_expected"))]
        if order is None or migration != order.migration:
            return []
        if sender == order.target and order.source == self.name:
            return from_target(self, order, message)
        if sender == order.source or (isinstance(message, Chunk) and sender == self.coordinator):
            return from_source(self, sender, order, message)
        return []

    def go_on(self, now: float) -> list[Effect]:
        """Asks an operator again that had not taken an item yet."""
        return [*go_on(self), *self.tick(now)]

    def tick(self, now: float) -> list[Effect]:
        """Does what is due: begins to copy, notes a missed deadline, gives up."""
        return tick(self, now)
