"""Roles of a migration that pass messages to each other at once, in order."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from node_agent.migration.live.coordinator import Coordinator, CoordinatorJournal
from node_agent.migration.live.host import Host
from node_agent.migration.live.messages import Deliver, Effect, Keep, Message, Note, Sent, Store
from node_agent.migration.live.neighbours import Downstream, Upstream
from node_agent.migration.live.values import Item, Limits, Order, Savepoint, card_of

STATE = bytes(range(200)) * 5
LIMITS = Limits(grain=1)


M = TypeVar("M")


class Tagger:
    """Puts each item out with a tag from its state. A selection is open from an item ``(`` to ``)``."""

    def __init__(self, state: bytes, at: Savepoint) -> None:
        self._tag = b"%d:" % len(state)
        self._boundary = at
        self._made = at.outputs
        self.at_boundary = True

    def boundary(self) -> Savepoint:
        return self._boundary

    def push(self, stream: str, item: Item) -> Sequence[bytes] | None:
        self._made += 1
        self.at_boundary = item.payload == b")" or (self.at_boundary and item.payload != b"(")
        if self.at_boundary:
            self._boundary = Savepoint(((stream, item.position),), self._made)
        return [self._tag + item.payload]


class Exchange:
    """``h0`` runs the operator, ``h1`` may; ``c`` coordinates; one stream and one sink."""

    def __init__(self, limits: Limits = LIMITS, state: bytes = STATE, build: type = Tagger) -> None:
        self.now = 0.0
        self.limits = limits
        self.build = build
        self.hosts = {name: Host(name, "c", build, limits) for name in ("h0", "h1")}
        self.hosts["h0"].state = state
        self.coordinator = Coordinator("c", CoordinatorJournal("h0"), state, limits)
        self.stream, self.sink = Upstream("s", "h0", "c", limits), Downstream("d", "h0", "c")
        self.sent: list[tuple[str, str, Message]] = []
        self.held: Callable[[str, str, Message], bool] = lambda sender, to, message: False
        self.dead: set[str] = set()
        self.journals: dict[str, object] = {}
        self.delivered: list[bytes] = []
        self.notes: list[tuple[str, str]] = []
        self.card = card_of(state, 100)
        self._queue: deque[tuple[str, str, Message]] = deque()
        self._waiting: list[tuple[str, str, Message]] = []
        self.do("h0", self.hosts["h0"].own(self.card, ["s"], ["d"]))

    def emit(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.do("s", self.stream.emit(payload))

    def order(self, **changes: object) -> Order:
        order = Order(self.coordinator.next_number, "h0", "h1", self.card, ("s",), ("d",))
        return replace(order, **changes)  # type: ignore[arg-type]

    def migrate(self, **changes: object) -> None:
        self.do("c", self.coordinator.migrate(self.order(**changes)))

    def tick(self, now: float) -> None:
        self.now = now
        for name, host in self.hosts.items():
            if name not in self.dead:
                self.do(name, host.tick(now))

    def say(self, sender: str, to: str, message: Message) -> None:
        self._queue.append((sender, to, message))
        self._pump()

    def let_go(self) -> None:
        """Delivers what was held."""
        self.held = lambda sender, to, message: False
        self._queue.extend(self._waiting)
        self._waiting = []
        self._pump()

    def restart(self, name: str) -> None:
        old = self.hosts[name]
        state = old.state if old.journal.stored else None
        self.hosts[name] = Host(name, "c", self.build, self.limits, old.journal, state)
        self.dead.discard(name)
        self.do(name, self.hosts[name].restart(self.now))

    def do(self, name: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Sent(to, message):
                    self.sent.append((name, to, message))
                    if self.held(name, to, message):
                        self._waiting.append((name, to, message))
                    else:
                        self._queue.append((name, to, message))
                case Deliver(_, payloads):
                    self.delivered += payloads
                case Note(what, _, detail):
                    self.notes.append((what, detail))
                case Keep() | Store():
                    self.journals[name] = effect
        self._pump()

    def of(self, kind: type[M]) -> list[M]:
        """Returns all messages of a kind that were sent."""
        return [message for _, _, message in self.sent if isinstance(message, kind)]

    @property
    def owners(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.is_owner and name not in self.dead]

    def _pump(self) -> None:
        while self._queue:
            sender, to, message = self._queue.popleft()
            if to in self.dead or to == "stranger":
                continue
            if to in self.hosts:
                self.do(to, self.hosts[to].receive(sender, message, self.now))
            elif to == "c":
                self.do(to, self.coordinator.receive(sender, message))
            else:
                self.do(to, (self.stream if to == "s" else self.sink).receive(sender, message))
