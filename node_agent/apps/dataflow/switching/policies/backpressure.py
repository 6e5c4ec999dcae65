"""Back-pressure (Frontier): sends where the queue is shorter than the own, and prefers good links."""

from msgspec import Struct

from node_agent.apps.dataflow.model.decision import Situation
from node_agent.apps.dataflow.switching.policy import SwitchingPolicy
from node_agent.apps.dataflow.switching.reason_text import divided
from node_agent.apps.dataflow.switching.route import Choice, Hop
from node_agent.apps.dataflow.switching.weights import inverse


def backpressure(situation: Situation, memory: Struct | None = None) -> Choice:
    """Chooses the greatest (tuples here + 1 − tuples there) · rate, where rate is 1/cost^exponent of the
    link.

    If no difference is positive, the stream waits. Replicas whose last report has expired are not considered;
    as long as no replica has reported, queues count as empty.
    """
    costs = situation.costs()
    usable = [c for c in situation.candidates if c.to in costs]
    reporting = [c for c in usable if c.queue is not None] or usable
    differences = {c.to: situation.queued + 1 - (c.queue or 0) for c in reporting}
    links = {c.to: c.link for c in reporting if c.link is not None and differences[c.to] > 0}
    weights = {to: differences[to] * rate for to, rate in inverse(links, situation.rule.exponent)}
    best = max(weights, key=lambda to: weights[to], default=None)
    return Choice(None if best is None else Hop(best, costs[best]))


def _reason(situation: Situation, choice: Choice) -> str:
    chosen = choice.hop.to if choice.hop else None
    text = (
        f"{chosen} had the greatest (tuples here + 1 − tuples there)/link^{situation.rule.exponent:g}, "
        f"with {situation.queued} here"
    )
    return divided(text, choice)


POLICY = SwitchingPolicy(
    backpressure,
    "where the queue is shorter than here, the more so the better the link (Frontier)",
    queues=True,
    reason=_reason,
)
