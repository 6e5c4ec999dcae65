"""Our own policy: foresight, hysteresis that learns, and several replicas at once where the radio allows it.

**Foresight.** When two nodes move apart, the ETX of their link grows faster and faster before it breaks, and
a routing daemon notices the break only seconds later. So the policy compares paths by the cost expected at
the next decisions: the present cost plus what its trend (a moving average of its slope) adds within
``HORIZON_NS``. It does not extrapolate falling costs: a path can be taken once it is better.

**Hysteresis.** A switch must gain a share ``margin`` of the cost of the path in use, or the configured
threshold if that is more. After each switch the costs of both paths are compared for ``TRIAL_NS``, or until
the next switch. If the old path would have been cheaper on average, or the new one was lost before it paid
off, the margin grows; if the switch paid off, it shrinks. So in calm networks the policy comes close to
Algorithm 1 without threshold, in restless ones it stops flapping, and nobody must guess a threshold.

**Several replicas at once.** Replicas whose network paths from here share no node and do not hear each other
carry parts of the stream at the same time, if they cost at most ``SIMILAR`` times as much as the best; at
most ``MOST`` of them, by 1/expected cost².

Memory is bounded: two numbers for each candidate, and the switch on trial.
"""

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import by_cost
from node_agent.apps.dataflow.switching.route import Choice, spread
from node_agent.apps.dataflow.switching.weights import inverse

HORIZON_NS = 4_000_000_000
TREND_NS = 4_000_000_000
"""How far back the average of a slope reaches; a sample weighs by the time that it covers."""
TRIAL_NS = 10_000_000_000
MOST = 3
SIMILAR = 1.5
FIRST_MARGIN, LEAST_MARGIN, MOST_MARGIN = 0.1, 0.02, 0.5
GROWTH, DECAY = 1.6, 0.8


class Trend(Struct, frozen=True):
    """A path's last cost, and how much it grows each second."""

    cost: float
    slope: float = 0.0

    def expected(self) -> float:
        return self.cost + max(0.0, self.slope) * HORIZON_NS / 1e9


class Trial(Struct, frozen=True):
    """The last switch, and what it has saved so far: cost × seconds, negative if the old path was better."""

    old: str
    since_ns: int
    saved: float = 0.0


class Memory(Struct, frozen=True):
    at_ns: int
    trends: dict[str, Trend]
    margin: float = FIRST_MARGIN
    trial: Trial | None = None


def adaptive(situation: Situation, memory: Struct | None = None) -> Choice:
    before = memory if isinstance(memory, Memory) else Memory(situation.now_ns, {})
    costs = situation.costs()
    trends = _trends(costs, before, situation.now_ns)
    margin, trial = _judged(situation, costs, before)
    if not costs:
        return Choice(None, None, Memory(situation.now_ns, trends, margin, trial))
    expected = {to: trends[to].expected() for to in costs}
    best = min(expected, key=lambda to: expected[to])
    current = situation.current
    needed = None
    primary = best
    if current is not None and current in expected:
        needed = max(margin * expected[current], situation.rule.threshold.of(expected[current]))
        if expected[current] - expected[best] <= needed:
            primary = current
        else:
            if trial is not None and trial.saved <= 0:  # left before it paid off
                margin = _grown(margin)
            trial = Trial(current, situation.now_ns)
    hop = spread(_parallel(situation, expected, primary), costs, situation.rule.seed)
    if hop is not None:  # hysteresis is about this path
        hop = replace(hop, to=primary, cost=costs[primary])
    return Choice(hop, needed, Memory(situation.now_ns, trends, margin, trial))


def _trends(costs: dict[str, float], before: Memory, now_ns: int) -> dict[str, Trend]:
    """Returns the trends of paths that exist now; a path that comes back starts anew."""
    passed_ns = now_ns - before.at_ns
    weight = min(1.0, passed_ns / TREND_NS)
    trends = {}
    for to, cost in costs.items():
        last = before.trends.get(to)
        if last is None or passed_ns <= 0:
            trends[to] = Trend(cost, last.slope if last else 0.0)
        else:
            slope = (cost - last.cost) / (passed_ns / 1e9)
            trends[to] = Trend(cost, last.slope + weight * (slope - last.slope))
    return trends


def _judged(situation: Situation, costs: dict[str, float], before: Memory) -> tuple[float, Trial | None]:
    """Returns the margin, and the trial if it goes on."""
    trial, now_ns = before.trial, situation.now_ns
    if trial is None or situation.current is None:
        return before.margin, None
    now, old = costs.get(situation.current, inf), costs.get(trial.old, inf)
    if now == inf:  # the new path is lost: had it paid off until then?
        return (_grown(before.margin) if trial.saved <= 0 else before.margin), None
    if old == inf:  # the old path is lost: the switch paid off
        return _shrunk(before.margin), None
    saved = trial.saved + (old - now) * (now_ns - before.at_ns) / 1e9
    if now_ns - trial.since_ns < TRIAL_NS:
        return before.margin, Trial(trial.old, trial.since_ns, saved)
    return (_shrunk(before.margin) if saved > 0 else _grown(before.margin)), None


def _parallel(situation: Situation, expected: dict[str, float], primary: str) -> list[tuple[str, float]]:
    limit = SIMILAR * expected[primary]
    chosen = [primary]
    for to in sorted(expected, key=lambda to: expected[to]):
        candidate = situation.candidate(to)
        apart = candidate.apart if candidate is not None else ()
        fits = expected[to] <= limit and to not in chosen and all(other in apart for other in chosen)
        if fits and len(chosen) < MOST:
            chosen.append(to)
    return inverse({to: expected[to] for to in chosen}, 2.0)


def _grown(margin: float) -> float:
    return min(MOST_MARGIN, margin * GROWTH)


def _shrunk(margin: float) -> float:
    return max(LEAST_MARGIN, margin * DECAY)


POLICY = SwitchingPolicy(
    adaptive,
    "the way whose trend promises to be cheapest, several at once where the radio allows it",
    reason=lambda situation, choice: by_cost(situation, choice, by_trends=True),
)
