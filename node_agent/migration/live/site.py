"""What a host has of an operator: its journal and state, input, the operator at work, and the migration."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from node_agent.migration.live.buffer import Buffer
from node_agent.migration.live.copying import Copying
from node_agent.migration.live.execution import Execution
from node_agent.migration.live.journal import NOTHING, Journal, Role
from node_agent.migration.live.messages import (
    Moved,
    Welcome,
)
from node_agent.migration.live.state import Assembler
from node_agent.migration.live.values import DEFAULT_LIMITS, Build, Limits, Savepoint


@dataclass(slots=True)
class Site:
    """One host, for one operator. ``state``: the immutable state, if it is here."""

    name: str
    coordinator: str
    build: Build
    limits: Limits = DEFAULT_LIMITS
    journal: Journal = NOTHING
    state: bytes | None = None
    buffers: dict[str, Buffer] = field(default_factory=dict)
    first_direct: dict[str, int] = field(default_factory=dict)
    """By stream, the first item that came from its upstream and not from the old host."""
    assembler: Assembler | None = None
    work: Execution | None = None
    confirmed: set[str] = field(default_factory=set)
    """Neighbours that take this host for the owner."""
    copying: Copying | None = None
    kept: Savepoint | None = None
    """What the standby could start from; it is needed until it says otherwise."""
    releasing: str = ""
    """Why the standby is being released, which it has not confirmed yet."""
    said: set[str] = field(default_factory=set)
    early: dict[str, Moved | Welcome] = field(default_factory=dict)
    """What neighbours said that already know that this host becomes the owner."""

    @property
    def is_owner(self) -> bool:
        return self.journal.role is Role.OWNER

    def begin_work(self, journal: Journal) -> None:
        assert journal.safe is not None
        self.journal = journal
        self.work = Execution(self.limits, journal.sinks, journal.safe)
        self.buffers = self.new_buffers(journal.streams, journal.safe)
        self.confirmed, self.said, self.copying, self.releasing = set(), set(), None, ""
        if self.state is not None:
            self.work.start(self.build(self.state, journal.safe), journal.safe)

    def forget(self, migration: int, outcome: str) -> None:
        order = self.journal.order
        self.stop_work()
        self.state = self.assembler = None
        partner = "" if order is None else order.target if order.source == self.name else order.source
        self.journal = Journal(last=max(migration, self.journal.last), outcome=outcome, partner=partner)

    def stop_work(self) -> None:
        self.work = self.copying = self.kept = None
        self.buffers, self.first_direct, self.confirmed, self.said = {}, {}, set(), set()
        self.releasing = ""
        self.early = {}

    def new_buffers(self, streams: Sequence[str], safe: Savepoint | None) -> dict[str, Buffer]:
        made = {stream: Buffer(self.limits.items, self.limits.bytes) for stream in streams}
        for stream, buffer in made.items():
            buffer.begin(safe.position(stream) if safe is not None else 0)
        return made

    def fits(self, savepoint: Savepoint) -> bool:
        """Whether a savepoint that came from another host has the form that it must have."""
        known = tuple(name for name, _ in savepoint.inputs)
        positive = savepoint.outputs >= 0 and all(position >= 0 for _, position in savepoint.inputs)
        short = len(savepoint.at) <= self.limits.note
        return sorted(known) == sorted(self.journal.streams) and positive and short

    def is_beside(self, sender: str, migration: int) -> bool:
        """Whether ``sender`` is the other host of the migration under way."""
        order = self.journal.order
        if order is None or order.migration != migration or not order.source:
            return False
        return sender == (order.target if order.source == self.name else order.source)
