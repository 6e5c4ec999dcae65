"""A broker's side of migration: it grants room to operators for spans of time, or refuses.

It answers at once and never waits, so reservations cannot deadlock. Messages may come in any order.
"""

from dataclasses import dataclass, field
from math import inf

from node_agent.migration.messages import Reserve, ReserveReply, Revoke
from node_agent.migration.plan import Plan

Span = tuple[float, float]
MOST_VERSIONS = 64
"""That one operator may have reserved at a time: it needs that of its plan and that of a better one, and of
others what it gives back is on its way."""


def spans_at(plan: Plan, broker: str) -> tuple[Span, ...]:
    """When a plan may need a broker: from the first byte of state that is copied there. After the end of the
    plan the operator stays at its last host."""
    times = (*plan.steps.times[1:], inf)
    found: list[Span] = []
    for k, (stage, end) in enumerate(zip(plan.stages, times, strict=True)):
        here = [each for each in stage if broker in each.hosts]
        if not here:
            continue
        copied = [each.copy_at for each in here if each.copy_at is not None]
        begin = min([plan.steps.times[k], *copied])
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return tuple(found)


@dataclass
class Reservations:
    """``room``: how much all operators together may need at a time."""

    room: float = inf
    granted: dict[str, dict[int, Reserve]] = field(default_factory=dict)
    revoked: dict[str, int] = field(default_factory=dict)
    """By operator, the latest version that was given back: earlier ones that come late are refused."""

    def reserve(self, operator: str, asked: Reserve) -> ReserveReply:
        if asked.version <= self.revoked.get(operator, -1):
            return ReserveReply(asked.version, False)
        mine = self.granted.setdefault(operator, {})
        if asked.version not in mine and len(mine) >= MOST_VERSIONS:
            return ReserveReply(asked.version, False)
        mine[asked.version] = asked
        if self._fits(asked.spans):
            return ReserveReply(asked.version, True)
        del mine[asked.version]
        return ReserveReply(asked.version, False)

    def revoke(self, operator: str, given: Revoke) -> None:
        self.revoked[operator] = max(given.version, self.revoked.get(operator, -1))
        self.granted.get(operator, {}).pop(given.version, None)

    def used(self, t: float) -> float:
        """What is reserved at a time. Of one operator, the version that needs most counts: it runs once."""
        return sum(
            max((each.need for each in versions.values() if _holds(each.spans, t)), default=0.0)
            for versions in self.granted.values()
        )

    def _fits(self, spans: tuple[Span, ...]) -> bool:
        """Use only grows where a span begins."""
        begins = {
            span[0] for versions in self.granted.values() for each in versions.values() for span in each.spans
        }
        return all(self.used(t) <= self.room + 1e-9 for t in begins if _holds(spans, t))


def _holds(spans: tuple[Span, ...], t: float) -> bool:
    return any(begin <= t < end for begin, end in spans)
