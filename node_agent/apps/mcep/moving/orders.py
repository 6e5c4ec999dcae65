"""The home's part: says which operator moves next, one at a time, and has its joints follow.

While one operator of a query moves its neighbours stand still, so they know each other's brokers when their
turn comes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from node_agent.apps.mcep.moving.messages import Arrived, JointAt, Relocate
from node_agent.apps.mcep.moving.places import HOME, Joint, Neighbourhood, Places
from node_agent.apps.mcep.moving.settings import GIVE_UP_S, LIMITS, Migration, state_of
from node_agent.migration.live.coordinator import Coordinator, CoordinatorJournal, Phase
from node_agent.migration.live.messages import Effect
from node_agent.migration.live.values import Order, card_of

AGAIN = frozenset({"busy"})
"""A migration that ends like this is tried once more, as a broker had not heard yet that the last one was
over."""


@dataclass
class Wanted:
    """Where an operator should go next. ``why``: in words. ``begin_at``, ``deadline``: when copying begins
    and when it should be there."""

    to: str
    why: str
    begin_at: float = 0.0
    deadline: float = float("inf")


@dataclass
class Orders:
    """``begun``: gets the operator, from where to where, and why. ``broadcast``: tells all brokers."""

    settings: Migration
    neighbourhoods: dict[str, Neighbourhood]
    places: Places
    hosts: dict[str, str]
    """By operator, its broker as far as known here."""
    send: Callable[[str, Relocate], None]
    broadcast: Callable[[JointAt], None]
    begun: Callable[[str, Order, str], None]
    ended: Callable[[str, Order, str], None]
    wanted: dict[str, Wanted] = field(default_factory=dict)
    moving: str = ""
    """The operator that moves now."""
    _relocating: set[Joint] = field(default_factory=set)
    _why: Wanted | None = None
    _order: Order | None = None

    def __post_init__(self) -> None:
        self.coordinators = {
            name: Coordinator(
                HOME, CoordinatorJournal(host), state_of(name, self.settings.size(name)), LIMITS
            )
            for name, host in self.hosts.items()
        }
        self._scheduled = sorted(self.settings.scheduled)

    @property
    def is_busy(self) -> bool:
        return bool(self.moving or self._relocating)

    def tick(self, now: float) -> list[Effect]:
        """Orders the next migration, if none is under way."""
        while self._scheduled and self._scheduled[0].at <= now:
            _, operator, to = self._scheduled.pop(0)
            self.wanted[operator] = Wanted(to, "the experiment says so")
        if self.is_busy:
            return []
        for operator, wanted in list(self.wanted.items()):
            if self.hosts[operator] == wanted.to:
                del self.wanted[operator]
            elif wanted.begin_at <= now:
                del self.wanted[operator]
                return self._begin(operator, wanted, now)
        return []

    def _begin(self, operator: str, wanted: Wanted, now: float) -> list[Effect]:
        coordinator = self.coordinators[operator]
        size = self.settings.size(operator)
        bandwidth = self.settings.bandwidth(self.hosts[operator], wanted.to)
        around = self.neighbourhoods[operator]
        order = Order(
            coordinator.next_number,
            self.hosts[operator],
            wanted.to,
            card_of(coordinator.depot),
            tuple(around.streams),
            tuple(around.sinks),
            method=self.settings.method,
            begin_at=now,
            deadline=wanted.deadline,
            bandwidth=bandwidth,
            give_up_at=now + GIVE_UP_S + 10 * size / bandwidth,
        )
        self.moving, self._why, self._order = operator, wanted, order
        self.begun(operator, order, wanted.why)
        return coordinator.migrate(order)

    def look(self, operator: str) -> None:
        """A coordinator got a message: sees whether its migration is over."""
        journal = self.coordinators[operator].journal
        if self.moving != operator or journal.phase is not Phase.IDLE:
            return
        order, why = self._order, self._why
        assert order is not None and why is not None
        self.moving = ""
        self.hosts[operator] = journal.owner
        self.ended(operator, order, journal.outcome)
        if journal.outcome in AGAIN:
            self.wanted.setdefault(operator, why)
        if journal.owner != order.source:
            for joint in self.places.joints(operator):
                self._relocating.add(joint)
                version = self.places.versions[joint] + 1
                self.send(self.places.at(joint), Relocate(*joint, version, journal.owner))

    def arrived(self, sender: str, said: Arrived) -> bool:
        """A joint has come. Returns whether it was awaited from that broker."""
        joint = Joint(said.producer, said.successor)
        if joint not in self._relocating or sender != self.hosts[joint.producer]:
            return False
        if said.version != self.places.versions[joint] + 1:
            return False
        self._relocating.discard(joint)
        self.broadcast(JointAt(*joint, said.version, sender))
        return True
