"""Random graphs of operators that agree on plans, with messages that are late and overtake each other.

``coordinate`` delivers messages in random order and looks after each of them whether the total cost rose, a
broker gave more than it has, or operators wait in a circle. Costs are computed here, without the code under
test.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from node_agent.migration.create import create_plan
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
from node_agent.migration.plan import Plan, certain_plan, chain, even_steps
from node_agent.migration.planner import Planner
from node_agent.migration.reservations import Reservations, spans_at
from node_agent.migration.situation import Neighbour, Network, Operator, World, network

MOST_MESSAGES = 20_000
"""A coordination that needs more has not ended."""


@dataclass
class Outcome:
    """What went wrong, and how much happened."""

    raised: int = 0
    """Plans that did not lower (limits broken, cost)."""
    dearer: int = 0
    """Plans that cost more, to break fewer latency limits."""
    circles: int = 0
    overfull: int = 0
    unfinished: int = 0
    """Operators that still wait, or could do better, when no message is left."""
    disputed: int = 0
    """Plans that were withdrawn for a neighbour with a lower name."""
    messages: int = 0
    plans: int = 0
    crossings: int = 0
    refusals: int = 0
    before: float = 0.0
    after: float = 0.0

    @property
    def wrong(self) -> int:
        return self.raised + self.circles + self.overfull + self.unfinished + self.disputed


@dataclass(frozen=True)
class Letter:
    sender: str
    to: str
    message: Message


@dataclass
class Crowd:
    """Operators with their planners, brokers with their room, and messages on their way."""

    planners: dict[str, Planner]
    brokers: dict[str, Reservations]
    streams: list[tuple[str, str, float]]
    """Who sends to whom, and the limit of its latency."""
    mobiles: dict[str, Plan]
    letters: list[Letter] = field(default_factory=list)

    def post(self, sender: str, sent: list[Sent]) -> None:
        self.letters += [Letter(sender, each.to, each.message) for each in sent]


def crowd(seed: int, kind: type[Planner] = Planner) -> Crowd:
    """2 to 7 operators, 1 to 3 sources, a consumer, 3 to 6 brokers, 4 to 8 steps. Graphs have circles if one
    takes streams for edges without direction. In half of them brokers have little room, in a third streams
    have limits, in a third sources are uncertain."""
    made = random.Random(seed)
    names = [f"o{n}" for n in range(made.randint(2, 7))]
    made.shuffle(names)
    sources = [f"s{n}" for n in range(made.randint(1, 3))]
    limited, scarce, vague = made.random() < 0.33, made.random() < 0.5, made.random() < 0.33
    edges = list(_edges(made, names, sources))
    streams = [(a, b, made.uniform(0.2, 0.9) if limited and made.random() < 0.6 else inf) for a, b in edges]
    net = _network(made)
    steps = even_steps(0.0, 1.0, made.randint(4, 8))
    mobiles: dict[str, Plan] = {}
    for name in (*sources, "consumer"):
        hosts = [made.choice(net.brokers) for _ in range(2)]
        change = made.randint(1, len(steps.times) - 1)
        where = [hosts[k >= change] for k in range(len(steps.times))]
        rate = 0.0 if name == "consumer" else made.uniform(0.1, 3.0)
        if vague:
            start = {where[0]: 0.5, made.choice(net.brokers): 0.5}
            start = {each: 1 / len(start) for each in start}
            joints = [{(a, b): start[a] * 0.5 for a in start for b in start} for _ in where[1:]]
            mobiles[name] = chain(steps, start, joints, rate)
        else:
            mobiles[name] = certain_plan(steps, where, rate)
    at = {name: made.choice(net.brokers) for name in names}
    rates = {name: made.uniform(0.1, 3.0) for name in names}
    stay = {name: certain_plan(steps, [at[name]] * len(steps.times), rates[name]) for name in names}
    known = {**mobiles, **stay}
    planners: dict[str, Planner] = {}
    for name in names:
        neighbours = tuple(
            Neighbour(a if b == name else b, b == name, limit, (a if b == name else b) in stay)
            for a, b, limit in streams
            if name in (a, b)
        )
        operator = Operator(name, made.choice([0.0, 0.3, 1.0, 3.0]), rates[name], neighbours)
        plans = {each.name: known[each.name] for each in neighbours}
        planners[name] = kind(operator, World(steps, net, net.brokers), at[name], stay[name], plans)
    brokers = {}
    for broker in net.brokers:
        here = [name for name in names if at[name] == broker]
        brokers[broker] = Reservations(max(len(here), made.choice([0, 1, 2])) if scarce else inf)
        for name in here:
            brokers[broker].reserve(name, Reserve(0, 1.0, spans_at(stay[name], broker)))
    return Crowd(planners, brokers, streams, mobiles)


def _edges(made: random.Random, names: list[str], sources: list[str]) -> Iterator[tuple[str, str]]:
    sending = set()
    for n, name in enumerate(names):
        before = [*names[:n], *made.sample(sources, 1)]
        for each in sorted(made.sample(before, min(len(before), made.randint(1, 3)))):
            sending.add(each)
            yield each, name
    for name in names:
        if name not in sending:
            yield name, "consumer"


def _network(made: random.Random) -> Network:
    names = tuple(f"b{n}" for n in range(made.randint(3, 6)))
    spots = {name: made.choice([0.0, 0.25, made.random(), made.random()]) for name in names}
    widths = {(a, b): made.choice([0.5, 1.0, inf]) for a in names for b in names}
    return network(names, lambda a, b: abs(spots[a] - spots[b]), lambda a, b: widths[a, b])


def total(given: Crowd) -> tuple[int, float]:
    """Limits broken over all streams and steps, and the cost of all streams and migrations, by the plans that
    operators follow now."""
    plans = {**given.mobiles, **{name: each.plan for name, each in given.planners.items()}}
    likely = {name: plan.likely() for name, plan in plans.items()}
    any_planner = next(iter(given.planners.values()))
    net, seconds = any_planner.world.network, any_planner.world.steps.seconds()
    broken, cost = 0, 0.0
    for a, b, limit in given.streams:
        for k, length in enumerate(seconds):
            delay = sum(p * q * net.between(x.host, y.host) for p, x in likely[a][k] for q, y in likely[b][k])
            rate = likely[a][k][0][1].rates[0]
            broken += delay > limit + 1e-9
            cost += rate * delay * length
    for each in given.planners.values():
        hosts = (each.host, *each.plan.hosts())
        cost += sum(each.operator.state * net.between(x, y) for x, y in pairwise(hosts))
    return broken, cost


def coordinate(seed: int, kind: type[Planner] = Planner) -> Outcome:
    """Lets all operators plan, and delivers messages until none is left."""
    made = random.Random(-seed - 1)
    given = crowd(seed, kind)
    outcome = Outcome()
    now = total(given)
    outcome.before = now[1]
    waiting = sorted(given.planners)
    made.shuffle(waiting)
    patience = made.choice([0.0, 0.5, 0.95])
    while (given.letters or waiting) and outcome.messages < MOST_MESSAGES:
        if waiting and (not given.letters or made.random() < 0.5):
            name = waiting.pop()
            given.post(name, given.planners[name].plan_anew())
            continue
        # Some runs prefer the newest message, so that the oldest are very late.
        newest = made.random() < patience
        letter = given.letters.pop(-1 if newest else made.randrange(len(given.letters)))
        outcome.messages += 1
        if letter.to in given.brokers:
            _at_broker(given, letter)
            outcome.overfull += _is_overfull(given.brokers[letter.to])
            continue
        planner = given.planners[letter.to]
        asked, taken = planner.candidate is not None and planner.candidate.asked, planner.taken
        given.post(letter.to, planner.receive(letter.sender, letter.message))
        if isinstance(letter.message, ReserveReply):
            outcome.refusals += not letter.message.granted
        if isinstance(letter.message, PlanUpdated) and asked and letter.sender in planner.held:
            outcome.crossings += 1
            outcome.disputed += letter.sender < letter.to
        if planner.taken > taken:
            outcome.plans += 1
            was, now = now, total(given)
            cheaper = now[1] < was[1] * (1 - 1e-9)
            outcome.raised += not (now[0] < was[0] or (now[0] == was[0] and cheaper))
            outcome.dearer += now[0] < was[0] and not cheaper
        outcome.circles += _has_circle(given)
    outcome.after = now[1]
    outcome.unfinished = len(given.letters) + sum(map(_is_unfinished, given.planners.values()))
    outcome.unfinished += sum(_is_stale(given, name) for name in given.brokers)
    return outcome


def _at_broker(given: Crowd, letter: Letter) -> None:
    broker = given.brokers[letter.to]
    match letter.message:
        case Reserve():
            reply = broker.reserve(letter.sender, letter.message)
            given.post(letter.to, [Sent(letter.sender, reply)])
        case Revoke():
            broker.revoke(letter.sender, letter.message)


def _is_overfull(broker: Reservations) -> bool:
    begins = [s[0] for vs in broker.granted.values() for each in vs.values() for s in each.spans]
    return any(broker.used(t) > broker.room + 1e-9 for t in begins)


def _is_unfinished(planner: Planner) -> bool:
    """Waits for something, or has a better plan than the one it follows."""
    if planner.candidate is not None or planner.held or planner.wishes:
        return True
    return planner.is_better(create_plan(planner.situation()))


def _is_stale(given: Crowd, name: str) -> bool:
    """Whether a broker holds room for a plan that nobody follows, or none for one that somebody does."""
    held = {(who, version) for who, each in given.brokers[name].granted.items() for version in each}
    wanted = {(who, each.stable) for who, each in given.planners.items() if name in set(each.plan.hosts())}
    return held != wanted


def _has_circle(given: Crowd) -> bool:
    """Whether operators wait for each other in a circle, with no message on its way that ends a wait."""
    on_their_way = {(each.sender, each.to, type(each.message)) for each in given.letters}
    edges: dict[str, set[str]] = {}
    for name, planner in given.planners.items():
        for other in planner.waits_for():
            asking = planner.candidate is not None
            coming: set[tuple[str, str, type[Message]]] = set()
            coming.add((other, name, PlanAccepted if asking else PlanDecided))
            if asking:
                coming.add((name, other, PlanUpdated))
            if asking and other > name:
                coming.add((other, name, PlanUpdated))  # ours is withdrawn when it comes
            if not coming & on_their_way:
                edges.setdefault(name, set()).add(other)
    while edges:
        free = [name for name, others in edges.items() if not others & edges.keys()]
        if not free:
            return True
        for name in free:
            del edges[name]
    return False
