"""Operators of one query that plan where to be, as one broker sees them.

An operator's planner sits on the broker where the operator was deployed, and stays there. Brokers tell
planners how much their streams carry, the home tells where the focal object is expected. What a planner
wants done it asks of the home, which moves one operator at a time.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.geometry import Box, Point, bounds
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.moving.messages import Agreed, Hosted, Rates, Said, Visited, Wish
from node_agent.apps.mcep.moving.mobile import Mobile, leaves_of
from node_agent.apps.mcep.moving.settings import Distances, Migration, Planning
from node_agent.migration.baselines import greedy_host
from node_agent.migration.costs import costs
from node_agent.migration.create import Created, create_plan
from node_agent.migration.live.following import next_move
from node_agent.migration.messages import Message, PlanUpdated, Reserve, Revoke, Sent
from node_agent.migration.plan import Expected, Plan, Steps, certain_plan, even_steps
from node_agent.migration.planner import Planner
from node_agent.migration.policies import Policy, k_shortest, naive
from node_agent.migration.reservations import Reservations
from node_agent.migration.restrictions import Route, local_limits
from node_agent.migration.situation import Neighbour, Operator, Situation, World

RATES_S = 2.0
"""Seconds between two reports of rates."""
SPREAD = 0.5
"""How far costs may be off for the policy k shortest."""
BEGINNING = -1e6
SOON_S = 0.25
MOST_ROUNDS = 10
"""Plans that an operator looks for until estimates change. That coordination ends by itself is shown for the
weighted sum only."""


def policy_of(planning: Planning) -> Policy:
    match planning.policy:
        case "naive":
            return naive()
        case "k_shortest":
            return k_shortest(planning.paths, SPREAD)
        case _:
            return create_plan


def flow(source: str, operator: str) -> str:
    """What a source's stream to an operator is called among rates."""
    return f"{source}>{operator}"


@dataclass
class Seat:
    """An operator's planner, and what is known beside its plan."""

    planner: Planner
    fresh: bool = False
    """Whether something changed that it has not planned with."""
    wished: tuple[str, float] = ("", 0.0)
    rounds: int = 0
    arrived: float = -math.inf
    """When the last move was due, which may have ended before."""

    def hosted(self, host: str) -> None:
        if host == self.wished[0] and self.wished[1] < math.inf:
            self.arrived = self.wished[1]
        self.wished = ("", 0.0)

    def limited(self, policy: Policy) -> Policy:
        """The same for so many rounds; then nothing is better than what it has."""

        def plan(situation: Situation) -> Created:
            self.rounds += 1
            if self.rounds <= MOST_ROUNDS:
                return policy(situation)
            return create_plan(situation)._replace(broken=math.inf, cost=math.inf)

        return plan


@dataclass
class Planners:
    """``boxes``: the areas of brokers. ``send``: to a broker, also to this one."""

    deployed: Deployed
    me: str
    boxes: dict[str, Box]
    send: Callable[[str, Said], None]
    rooms: Reservations
    messages: int = 0
    """Sent to agree on plans."""
    _rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """By operator or flow and by broker, bytes a second."""
    _bytes: dict[str, int] = field(default_factory=dict)
    _measured_at: float = 0.0
    _looked_at: float = 0.0
    _seats: dict[str, Seat] = field(default_factory=dict)
    _sources: dict[str, tuple[Plan, float, int]] = field(default_factory=dict)
    """At the home, by flow: the plan, when it was made, and its version."""

    def __post_init__(self) -> None:
        migration = self.deployed.migration
        assert migration is not None
        self._settings: Migration = migration
        self._graph = self.deployed.query.graph
        self._network = (migration.distances or Distances.even(tuple(self.boxes))).network
        self.hosts = dict(self.deployed.hosts)
        places = [*self.deployed.hosts.values(), self.deployed.home]
        self.nodes = tuple(dict.fromkeys(places))
        """Brokers where somebody plans."""
        self._limits = self._local_limits()
        self._mobile: Mobile | None = None
        if migration.planning is not None and self.me == self.deployed.home:
            region = bounds(self.deployed.query.interest(Point(0.0, 0.0)))
            half = max(region.x1 - region.x0, region.y1 - region.y0) / 2
            self._mobile = Mobile(migration.planning, leaves_of(self.boxes), half)
        for operator, host in self.deployed.hosts.items():
            if host == self.me and migration.planning is not None:
                self.rooms.reserve(self._title(operator), Reserve(0, 1.0, ((BEGINNING, math.inf),)))

    @property
    def plans(self) -> int:
        return sum(seat.planner.taken for seat in self._seats.values())

    @property
    def wants_visits(self) -> bool:
        planning = self._settings.planning
        return planning is not None and planning.mobiles == "learned"

    def count(self, name: str, size: int) -> None:
        """A stream that begins here carried so many bytes."""
        self._bytes[name] = self._bytes.get(name, 0) + size

    def located(self, place: Point, t: float) -> None:
        """The focal object was there."""
        if self._mobile is not None:
            self._mobile.located(place, t)

    def visited(self, client: str, t: float) -> None:
        """A client came into the area of this broker."""
        if self.wants_visits:
            self.send(self.deployed.home, Visited(client, t))

    def receive(self, sender: str, said: Agreed | Rates | Hosted | Visited, now: float) -> None:
        match said:
            case Agreed(operator, name, message):
                self._agreed(operator, name or sender, message, sender, now)
            case Rates(values):
                for name, rate in values:
                    self._rates.setdefault(name, {})[sender] = rate
            case Hosted(operator, host):
                self.hosts[operator] = host
                if operator in self._seats:
                    self._seats[operator].hosted(host)
            case Visited(client, t):
                if self._mobile is not None:
                    self._mobile.visited(client, sender, t, now)

    def _agreed(self, operator: str, name: str, message: Message, sender: str, now: float) -> None:
        title = self._title(operator)
        match message:
            case Reserve():
                self._say(sender, Agreed(operator, "", self.rooms.reserve(title, message)))
            case Revoke():
                self.rooms.revoke(title, message)
            case PlanUpdated(_, plan, True):
                seat = self._seat(operator, now)
                seat.planner.plans[name], seat.fresh = plan, True
            case _:
                self._send_all(operator, self._seat(operator, now).planner.receive(name, message))

    def _title(self, operator: str) -> str:
        return f"{self.deployed.name}/{operator}"

    def tick(self, now: float) -> None:
        if now == -math.inf:
            return
        self._measure(now)
        if self._settings.planning is not None:
            self._plan_sources(self._settings.planning, now)
            for operator, seat in self._seats.items():
                if seat.fresh:
                    seat.fresh = False
                    self._plan(operator, seat, now)
                self._follow(operator, seat, now)
        elif self._settings.greedy is not None and now - self._looked_at >= self._settings.greedy:
            self._looked_at = now
            for operator, home in self.deployed.hosts.items():
                if home == self.me:
                    self._look(operator, now)

    def _measure(self, now: float) -> None:
        elapsed = now - self._measured_at
        if elapsed < RATES_S:
            return
        values = tuple((name, size / elapsed) for name, size in sorted(self._bytes.items()))
        self._measured_at = now
        self._bytes = dict.fromkeys(self._bytes, 0)
        if values:
            for node in self.nodes:
                self.send(node, Rates(values))

    def _rate(self, name: str) -> float:
        return sum(self._rates.get(name, {}).values())

    def _plan_sources(self, planning: Planning, now: float) -> None:
        mobile = self._mobile
        if mobile is None or not mobile.seen:
            return
        for stream in self._graph.streams:
            source, operator = stream.producer, stream.successor
            if source in self._graph.by_name or operator == CONSUMER:
                continue
            name = flow(source, operator)
            known = self._sources.get(name)
            if known is not None:
                plan, made, version = known
                due = now - made >= planning.refresh or (
                    mobile.is_off(plan, now) and now - made >= planning.step
                )
                if not due:
                    continue
            else:
                version = 0
            rate = self._rate(name)
            if not rate and known is None:
                continue
            steps = even_steps(now, planning.step, planning.steps)
            plan = mobile.plan(self.deployed.query.focal_object, steps, rate)
            self._sources[name] = plan, now, version + 1
            said = Agreed(operator, source, PlanUpdated(version + 1, plan, True))
            self._say(self.deployed.hosts[operator], said)

    def _seat(self, operator: str, now: float) -> Seat:
        """Made when it is first needed: everybody stays where they are."""
        seat = self._seats.get(operator)
        planning = self._settings.planning
        if seat is None and planning is not None:
            steps = even_steps(max(0.0, now), planning.step, planning.steps)
            host = self.hosts[operator]
            described = self._described(operator)
            plans = {each.name: self._staying(each.name, operator, steps) for each in described.neighbours}
            stay = certain_plan(steps, [host] * len(steps.times), described.rate)
            planner = Planner(described, self._world(steps, host), host, stay, plans)
            seat = self._seats[operator] = Seat(planner)
            planner.policy = seat.limited(policy_of(planning))
        assert seat is not None, "claims let nobody plan without planning"
        return seat

    def _staying(self, name: str, operator: str, steps: Steps) -> Plan:
        host = self.deployed.home if name == CONSUMER else self.hosts.get(name, self.deployed.home)
        rate = self._rate(name if name in self._graph.by_name else flow(name, operator))
        return certain_plan(steps, [host] * len(steps.times), rate)

    def _plan(self, operator: str, seat: Seat, now: float) -> None:
        planning, planner = self._settings.planning, seat.planner
        assert planning is not None
        seat.rounds = 0
        host = self.hosts[operator]
        for each in planner.operator.neighbours:
            if each.plans and each.upstream:
                planner.plans[each.name] = _at_rate(planner.plans[each.name], self._rate(each.name))
        steps = even_steps(now, planning.step, planning.steps)
        world = self._world(steps, host)
        self._send_all(operator, planner.observe(world, host, self._described(operator)))

    def _world(self, steps: Steps, host: str) -> World:
        planning = self._settings.planning
        targets = self._network.brokers
        if planning is not None and planning.reach is not None:
            targets = tuple(each for each in targets if self._distance(each, host) <= planning.reach)
        return World(steps, self._network, targets)

    def _distance(self, one: str, other: str) -> float:
        a, b = self.boxes[one], self.boxes[other]
        return math.hypot(a.x0 + a.x1 - b.x0 - b.x1, a.y0 + a.y1 - b.y0 - b.y1) / 2

    def _described(self, operator: str) -> Operator:
        graph, length = self._graph, self._graph.by_name[operator].restriction.length
        neighbours, incoming = [], 0.0
        for stream in graph.inputs[operator]:
            name = stream.producer
            plans = name in graph.by_name
            incoming += self._rate(name if plans else flow(name, operator))
            limit = self._limits.get((name, operator), math.inf)
            neighbours.append(Neighbour(name, True, limit, plans))
        for stream in graph.outputs[operator]:
            name = stream.successor
            limit = self._limits.get((operator, name), math.inf)
            neighbours.append(Neighbour(name, False, limit, name != CONSUMER))
        windows = tuple((stream.producer, length) for stream in graph.inputs[operator])
        state = self._settings.size(operator) + incoming * length
        return Operator(operator, state, self._rate(operator), tuple(neighbours), windows)

    def _local_limits(self) -> dict[tuple[str, str], float]:
        limit = self._settings.limit
        if limit is None:
            return {}

        def onward(name: str) -> list[tuple[str, ...]]:
            if name == CONSUMER:
                return [(CONSUMER,)]
            return [(name, *rest) for each in self._graph.outputs[name] for rest in onward(each.successor)]

        routes = [Route(path, limit) for source in self._graph.sources for path in onward(source.name)]
        return local_limits(routes, {})

    def _send_all(self, operator: str, sent: Iterable[Sent]) -> None:
        for to, message in ((each.to, each.message) for each in sent):
            if isinstance(message, Reserve | Revoke):
                self._say(to, Agreed(operator, operator, message))
            else:
                self._say(self.deployed.hosts[to], Agreed(to, operator, message))

    def _say(self, to: str, said: Agreed) -> None:
        self.messages += 1
        self.send(to, said)

    def _follow(self, operator: str, seat: Seat, now: float) -> None:
        host, plan = self.hosts[operator], seat.planner.plan
        if plan.certain:
            move = next_move(plan, host, max(now, seat.arrived))
            if move is None or move.begin_at > now + SOON_S:
                return
            target, deadline = move.target, move.deadline
            why = f"by its plan it is there from {deadline:.1f} s on"
        else:
            target, deadline = self._cheapest(operator, plan, now), math.inf
            why = "of the places in its plan it is the cheapest now"
        if target != host and seat.wished != (target, deadline):
            seat.wished = target, deadline
            self.send(self.deployed.home, Wish(operator, target, now, deadline, why))

    def _cheapest(self, operator: str, plan: Plan, now: float) -> str:
        situation = self._now(operator, now)
        placing = dict(zip(situation.targets(), costs(situation).placing[0], strict=True))
        host = self.hosts[operator]
        return min(plan.hosts_during(now), key=lambda each: (placing[each], each != host, each))

    def _look(self, operator: str, now: float) -> None:
        target = greedy_host(self._now(operator, now))
        if target != self.hosts[operator]:
            said = Wish(operator, target, now, math.inf, "it is the cheapest place now")
            self.send(self.deployed.home, said)

    def _now(self, operator: str, now: float) -> Situation:
        """What streams carry now, and from where."""
        steps = Steps((now,), now + 1)
        plans = {}
        described = self._described(operator)
        for each in described.neighbours:
            if each.plans or each.name == CONSUMER:
                plans[each.name] = self._staying(each.name, operator, steps)
                continue
            rates = self._rates.get(flow(each.name, operator), {}) or {self.deployed.home: 0.0}
            plans[each.name] = Plan(steps, ((Expected(tuple(rates), tuple(rates.values())),),))
        return Situation(described, self.hosts[operator], self._world(steps, self.hosts[operator]), plans)


def _at_rate(plan: Plan, rate: float) -> Plan:
    """The same with another rate: that of an operator is measured."""
    stages = tuple(
        tuple(replace(each, rates=(rate,) * len(each.hosts)) for each in stage) for stage in plan.stages
    )
    return replace(plan, stages=stages)
