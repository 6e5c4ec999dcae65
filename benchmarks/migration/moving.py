"""How operators of the simulation move: greedily, or by plans that they make and agree on."""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from benchmarks.migration.simulation import Mover, Simulation, neighbours, operator_of
from node_agent.migration.baselines import greedy_host, stop_and_copy_seconds
from node_agent.migration.create import create_plan
from node_agent.migration.messages import PlanUpdated, Reserve, Revoke, Sent
from node_agent.migration.plan import Expected, Plan, Steps, certain_plan, even_steps
from node_agent.migration.planner import Planner
from node_agent.migration.policies import Policy, k_shortest, naive
from node_agent.migration.reservations import Reservations, spans_at
from node_agent.migration.sequences import decompose
from node_agent.migration.situation import Situation, World

MOST_MESSAGES = 5_000
"""Of one coordination."""


@dataclass(frozen=True)
class Planning:
    """``step``: seconds between steps; ``horizon``: seconds that a plan covers; ``refresh``: seconds after
    which mobiles plan anew at the latest; ``reach``: metres within which brokers are considered.
    ``policy``: of all operators, ``first``: of D1 if it has another one; ``ws``, ``naive`` or ``k=`` and a
    number."""

    step: int = 4
    horizon: int = 200
    refresh: int = 40
    reach: float = inf
    policy: str = "ws"
    first: str = ""


SPREAD = 0.5
"""How far costs may be off for the policy k shortest."""


def policy_of(name: str) -> Policy:
    if name == "naive":
        return naive(4, 6)
    if name.startswith("k="):
        return k_shortest(int(name[2:]), SPREAD)
    return create_plan


class Greedy(Mover):
    """Each few seconds every operator moves to where it is cheapest now."""

    def __init__(self, simulation: Simulation, period: int) -> None:
        super().__init__(simulation)
        self.period = period
        self.busy: dict[str, float] = {}

    def second(self, t: int) -> None:
        given = self.simulation
        if t % self.period:
            return
        for name, part in given.parts.items():
            if self.busy.get(name, 0.0) > t:
                continue
            target = greedy_host(self._situation(name, t))
            if target == given.hosts[name]:
                continue
            seconds = stop_and_copy_seconds(part.state, given.net, given.hosts[name], target)
            given.copy(name, part.state, target)
            given.hosts[name] = target
            given.found.migrations += 1
            given.found.stopped_s += seconds
            self.busy[name] = t + seconds

    def _situation(self, name: str, t: int) -> Situation:
        given, steps = self.simulation, Steps((float(t),), float(t + 1))
        plans = {}
        for each in neighbours(given.scene, name):
            ends = given.measured.get(each.name) or given.ends(each.name)
            expected = Expected(tuple(leaf for leaf, _ in ends), tuple(rate for _, rate in ends))
            plans[each.name] = Plan(steps, ((expected,),))
        world = World(steps, given.net, given.net.brokers)
        return Situation(operator_of(given.scene, name), given.hosts[name], world, plans)


@dataclass
class Following:
    """What an operator does of its plan. ``sequence``: what it follows of an uncertain plan, if it has much
    state; ``taken``: of which plan."""

    sequence: Plan | None = None
    taken: int = -1
    target: str = ""
    copied: float = 0.0
    spent: float = 0.0


class Planned(Mover):
    """Operators follow plans that they make and agree on."""

    def __init__(self, simulation: Simulation, planning: Planning) -> None:
        super().__init__(simulation)
        self.planning = planning
        self.random = random.Random(f"draws {simulation.scene.seed}")
        self.brokers = {name: Reservations() for name in simulation.net.brokers}
        self.planners: dict[str, Planner] = {}
        self.plans: dict[str, Plan] = {}
        self.made: dict[str, int] = {}
        self.following = {name: Following() for name in simulation.parts}

    def second(self, t: int) -> None:
        if t % self.planning.step == 0:
            if not self.planners:
                self._begin(t)
            for name in self.simulation.parts:
                self._arrive(name, t, last=False)
            self._plan(t)
        for name in self.simulation.parts:
            self._arrive(name, t, last=True)
            self._copy(name, t)

    def _steps(self, t: int) -> Steps:
        return even_steps(float(t), float(self.planning.step), self.planning.horizon // self.planning.step)

    def _world(self, name: str, t: int) -> World:
        given = self.simulation
        near = given.scene.tree.near(given.hosts[name], self.planning.reach)
        return World(self._steps(t), given.net, near)

    def _begin(self, t: int) -> None:
        scene, steps = self.simulation.scene, self._steps(t)
        stay = {
            each.name: certain_plan(steps, [scene.hosts[each.name]] * len(steps.times), each.rate)
            for each in scene.parts
        }
        self.plans = {each.name: each.plan(t, steps) for each in scene.mobiles()}
        self.made = dict.fromkeys(self.plans, t - self.planning.refresh)
        for name, plan in stay.items():
            operator = operator_of(scene, name)
            known = {each.name: (self.plans | stay)[each.name] for each in operator.neighbours}
            world, host = self._world(name, t), scene.hosts[name]
            planner = Planner(operator, world, host, plan, known)
            first = self.planning.first if name == "D1" else ""
            planner.policy = policy_of(first or self.planning.policy)
            self.planners[name] = planner
            self.brokers[host].reserve(name, Reserve(0, 1.0, spans_at(plan, host)))

    def _plan(self, t: int) -> None:
        scene = self.simulation.scene
        news: list[tuple[str, Sent]] = []
        changed = set()
        for each in scene.mobiles():
            due = t - self.made[each.name] >= self.planning.refresh
            if not due and not each.is_off(self.plans[each.name], t):
                continue
            self.plans[each.name], self.made[each.name] = each.plan(t, self._steps(t)), t
            for name, planner in self.planners.items():
                if any(other.name == each.name for other in planner.operator.neighbours):
                    planner.plans[each.name] = self.plans[each.name]
                    self.simulation.found.messages += 1
                    changed.add(name)
        if not changed:
            return
        self.simulation.found.coordinations += 1
        for name, planner in self.planners.items():
            planner.world, planner.host = self._world(name, t), self.simulation.hosts[name]
        for name in sorted(changed):
            planner = self.planners[name]
            news += [(name, each) for each in planner.observe(planner.world, planner.host)]
        self._deliver(news)

    def _deliver(self, news: Sequence[tuple[str, Sent]]) -> None:
        waiting = deque(news)
        count = 0
        while waiting:
            sender, sent = waiting.popleft()
            count += 1
            if count > MOST_MESSAGES:
                raise RuntimeError("operators do not agree on plans")
            if sent.to in self.planners:
                answers = self.planners[sent.to].receive(sender, sent.message)
                waiting.extend((sent.to, each) for each in answers)
            elif isinstance(sent.message, Reserve):
                reply = self.brokers[sent.to].reserve(sender, sent.message)
                waiting.append((sent.to, Sent(sender, reply)))
            elif isinstance(sent.message, Revoke):
                self.brokers[sent.to].revoke(sender, sent.message)
            elif isinstance(sent.message, PlanUpdated):
                raise RuntimeError(f"{sent.to} does not plan")
        self.simulation.found.messages += count

    def _next(self, name: str, t: int) -> tuple[str, float, float]:
        """Where to go next, when to be there, and when to begin copying; the host itself if nowhere."""
        given, planner, mine = self.simulation, self.planners[name], self.following[name]
        host, plan = given.hosts[name], planner.plan
        if not plan.certain:
            if given.parts[name].state <= self._small(name):
                return self._best_now(name, plan, t), t, t
            if mine.taken != planner.taken:
                options = decompose(plan, 8)
                (drawn,) = self.random.choices(options, [each.chance for each in options])
                mine.sequence, mine.taken = drawn.plan, planner.taken
            plan = mine.sequence or plan
        times = plan.steps.times
        here = plan.steps.index(t)
        for k in range(here, len(times)):
            expected = plan.stages[k][0]
            if expected.host != host:
                copy_at = expected.copy_at if expected.copy_at is not None else times[k]
                return expected.host, times[k], copy_at
        return host, inf, inf

    def _small(self, name: str) -> float:
        """State that costs less to move than a step of its input."""
        given = self.simulation
        inputs = [rate for a, b in given.scene.streams() if b == name for _, rate in given.ends(a)]
        return sum(inputs) * self.planning.step

    def _best_now(self, name: str, plan: Plan, t: int) -> str:
        host = self.simulation.hosts[name]
        return min(
            plan.hosts_during(t), key=lambda each: (self.simulation.flow(name, each), each != host, each)
        )

    def _arrive(self, name: str, t: int, *, last: bool) -> None:
        given, mine = self.simulation, self.following[name]
        while True:
            target, due, _ = self._next(name, t)
            host, state = given.hosts[name], given.parts[name].state
            if target == host or due > t:
                return
            if state and (mine.target != target or mine.copied < state):
                given.found.late_s += last
                return
            given.hosts[name] = target
            given.found.migrations += 1
            self.following[name] = mine = replace(mine, target="", copied=0.0, spent=0.0)

    def _copy(self, name: str, t: int) -> None:
        given, mine = self.simulation, self.following[name]
        host, state = given.hosts[name], given.parts[name].state
        target, _, copy_at = self._next(name, t)
        if target != mine.target and mine.target:
            given.found.wasted += mine.spent
            mine.target, mine.copied, mine.spent = "", 0.0, 0.0
        if target == host or not state or copy_at > t:
            return
        mine.target = target
        bandwidth = given.net.bandwidth[given.net.number[host]][given.net.number[target]]
        amount = min(state - mine.copied, bandwidth)
        mine.spent += given.copy(name, amount, target)
        mine.copied += amount
