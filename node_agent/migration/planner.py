"""Agrees on plans between operators that are neighbours in a graph (Alg. 4.1 and 4.3), without a coordinator.

An operator that finds a better plan reserves its brokers, then asks its neighbours. A neighbour that accepts
holds still: it changes nothing of its own until it hears what became of the plan. So an operator knows what
its neighbours really do when it takes a plan, and each plan lowers the cost of all streams and migrations
together by what it lowers that of its own.

Plans of two neighbours may cross. The operator with the higher name goes on and does not answer; the other
one withdraws its plan, accepts, and plans again. All answers are given at once, so nobody waits in a circle:
whoever waits, waits for an operator with a higher name, or for messages on their way.

Messages may be late and out of order; they must not be lost.
"""

from dataclasses import dataclass, field

from node_agent.migration.create import Created, create_plan
from node_agent.migration.messages import (
    Message,
    PlanAccepted,
    PlanDecided,
    PlanUpdated,
    Reserve,
    ReserveReply,
    Revoke,
    Sent,
)
from node_agent.migration.plan import Plan
from node_agent.migration.policies import Policy, weigh
from node_agent.migration.reservations import spans_at
from node_agent.migration.situation import Operator, Situation, World

WORTH = 1e-6
"""A new plan must be cheaper by this share: sums of floats are not exact, and coordination must end."""


@dataclass(slots=True)
class Candidate:
    """A plan on its way to be followed. ``waits``: for whom, first brokers and then neighbours."""

    plan: Plan
    version: int
    waits: set[str]
    asked: bool = False
    """Whether neighbours know of it."""


@dataclass(slots=True)
class Held:
    """A neighbour's plan that was accepted and not decided yet."""

    version: int
    plan: Plan


@dataclass(slots=True)
class Planner:
    """One operator's.

    ``plan``: what it follows, reserved at its brokers as version 0. ``plans``: what its neighbours follow.
    ``policy``: how it plans if theirs are uncertain; only with the weighted sum is it shown that coordination
    ends and never raises the total cost.

    ```python
    planner = Planner(operator, world, "b1", plan, {"source": plan_of_source})
    for each in planner.plan_anew():
        send(each.to, each.message)
    ```
    """

    operator: Operator
    world: World
    host: str
    plan: Plan
    plans: dict[str, Plan]
    policy: Policy = create_plan
    version: int = 0
    stable: int = 0
    """The version of ``plan``."""
    candidate: Candidate | None = None
    held: dict[str, Held] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    """By neighbour, the latest version that was heard of."""
    refused: set[str] = field(default_factory=set)
    wishes: bool = False
    """Whether to plan once nothing is waited for."""
    taken: int = 0
    """How many plans of its own it has followed."""

    def situation(self) -> Situation:
        return Situation(self.operator, self.host, self.world, self.plans, self.plan, frozenset(self.refused))

    def observe(self, world: World, host: str, operator: Operator | None = None) -> list[Sent]:
        """Takes new estimates and plans with them. What brokers refused may be granted now."""
        self.world, self.host, self.operator = world, host, operator or self.operator
        self.refused.clear()
        return [*self._withdraw(), *self.plan_anew()]

    def plan_anew(self) -> list[Sent]:
        """Looks for a better plan, now or once nothing is waited for."""
        self.wishes = True
        return self._go_on()

    def waits_for(self) -> set[str]:
        """Neighbours whose answer or decision it needs."""
        if self.candidate is not None:
            return set(self.candidate.waits) if self.candidate.asked else set()
        return set(self.held) if self.wishes else set()

    def receive(self, sender: str, message: Message) -> list[Sent]:
        match message:
            case PlanUpdated():
                return self._on_updated(sender, message)
            case PlanAccepted(version):
                return self._on_accepted(sender, version)
            case PlanDecided(version, kept):
                return self._on_decided(sender, version, kept)
            case ReserveReply(version, granted):
                return self._on_reply(sender, version, granted)
            case Reserve() | Revoke():
                return []  # for brokers

    def forget(self, neighbour: str) -> list[Sent]:
        """A neighbour is gone: it is waited for no longer, and its last plan stays as it is."""
        self.held.pop(neighbour, None)
        if self.candidate is not None and self.candidate.asked:
            return self._on_accepted(neighbour, self.candidate.version)
        return self._go_on()

    def _go_on(self) -> list[Sent]:
        if not self.wishes or self.candidate is not None or self.held:
            return []
        self.wishes = False
        found = self.policy(self.situation())
        if not self.is_better(found):
            return []
        self.version += 1
        hosts = found.plan.brokers()
        self.candidate = Candidate(found.plan, self.version, set(hosts))
        return [
            Sent(host, Reserve(self.version, self.operator.need, spans_at(found.plan, host)))
            for host in hosts
        ]

    def is_better(self, found: Created) -> bool:
        """Whether it breaks fewer latency limits than the plan followed now, or as many at a lower cost."""
        broken, cost = weigh(self.plan, self.situation(), found)
        if found.broken != broken:
            return found.broken < broken
        return found.cost < cost - WORTH * max(cost, found.cost)

    def _on_reply(self, broker: str, version: int, granted: bool) -> list[Sent]:
        mine = self.candidate
        if mine is None or mine.version != version or mine.asked:
            return []
        if not granted:
            self.refused.add(broker)
            return [*self._withdraw(), *self.plan_anew()]
        mine.waits.discard(broker)
        if mine.waits:
            return []
        mine.asked = True
        mine.waits = self._asked_ones()
        if not mine.waits:
            return self._keep()
        return self._tell(PlanUpdated(version, mine.plan))

    def _on_updated(self, sender: str, message: PlanUpdated) -> list[Sent]:
        if message.version <= self.latest.get(sender, -1):
            return []  # late: a newer one, or its withdrawal, was here before
        if message.final:
            self.latest[sender] = message.version
            self.plans[sender] = message.plan
            return [*self._withdraw(), *self.plan_anew()]
        mine = self.candidate
        if mine is not None and mine.asked and self.operator.name > sender:
            return []  # it will withdraw when it gets ours
        self.latest[sender] = message.version
        self.held[sender] = Held(message.version, message.plan)
        sent = []
        if mine is not None:
            sent = self._withdraw()
            self.wishes = True
        return [*sent, Sent(sender, PlanAccepted(message.version))]

    def _on_accepted(self, sender: str, version: int) -> list[Sent]:
        mine = self.candidate
        if mine is None or not mine.asked or mine.version != version:
            return []
        mine.waits.discard(sender)
        return [] if mine.waits else self._keep()

    def _on_decided(self, sender: str, version: int, kept: bool) -> list[Sent]:
        unheard = version > self.latest.get(sender, -1)
        self.latest[sender] = max(version, self.latest.get(sender, -1))
        mine = self.candidate
        if unheard and mine is not None and mine.asked and sender > self.operator.name:
            # Its plan crossed ours and comes after its withdrawal: it did not answer ours and never will.
            return [*self._withdraw(), *self.plan_anew()]
        held = self.held.get(sender)
        if held is None or held.version > version:
            return []
        del self.held[sender]
        if kept and held.version == version:
            self.plans[sender] = held.plan
            self.wishes = True
        return self._go_on()

    def _keep(self) -> list[Sent]:
        """Everyone agreed: follows the plan and gives back what the last one had reserved."""
        mine = self.candidate
        assert mine is not None
        old, last = self.plan, self.stable
        self.plan, self.stable, self.candidate = mine.plan, mine.version, None
        self.taken += 1
        return [
            *self._tell(PlanDecided(mine.version, True)),
            *(Sent(host, Revoke(last)) for host in old.brokers()),
            *self._go_on(),
        ]

    def _withdraw(self) -> list[Sent]:
        """Drops the candidate, if there is one."""
        mine = self.candidate
        if mine is None:
            return []
        self.candidate = None
        told = self._tell(PlanDecided(mine.version, False)) if mine.asked else []
        return [*told, *(Sent(host, Revoke(mine.version)) for host in mine.plan.brokers())]

    def _asked_ones(self) -> set[str]:
        """Neighbours that plan themselves."""
        return {each.name for each in self.operator.neighbours if each.plans}

    def _tell(self, message: Message) -> list[Sent]:
        return [Sent(name, message) for name in sorted(self._asked_ones())]
