"""How many tuples were offered, delivered and lost since the measured time began, counted as the report does.

Offered are the tuples that sources emitted. A tuple owes a delivery to every sink that its stream leads to:
delivered, lost and waiting count these. Lost are those that were dropped, those that were sent ``GRACE_S``
ago or earlier and not received, and those that an agent held that was killed as long ago; with a reliability
other than ``best_effort``, the last two only at the end, since senders keep what they sent. What was filtered
or became part of something new is owed no more. All others wait: held by a replica, or on a connection. A
tuple that arrives after all counts as delivered again.

Only tuples born in the measured time count. At the end of the run the figures are those of the report
(``analytics.tuple_table``); they differ only for tuples that a node reports without having been sent any.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from node_agent.apps.dataflow.belief import ABSORBED, FILTERED
from node_agent.apps.dataflow.model.plan import DeploymentPlan, operator_of
from node_agent.model.intervals import Intervals
from orchestrator.apps.dataflow.live_fates import (
    DELIVERED,
    DROPPED,
    FAILED,
    OPEN,
    SET_ASIDE,
    Holder,
    Hop,
    Life,
    Lives,
)

GRACE_S = 10.0
"""As in ``analytics.tuple_table``: what was sent later may still arrive."""
MOST_PIECES = 16_384
"""Of one stream and sink; beyond them the oldest stay what they are."""
MOST_SPANS = 16_384
MOST_REASONS = 32
LONGEST_REASON = 60
MOST_YOUNG = 4096
LINK_FAILED = "link_failed"
_FATES = {FILTERED: SET_ASIDE, ABSORBED: SET_ASIDE, LINK_FAILED: FAILED}

Counts = Counter[str]


class _Debt:
    """What one stream owes one sink. ``settled``: what was counted of tuples that are not remembered."""

    def __init__(self) -> None:
        self.lives = Lives()
        self.settled: Counts = Counter()


class Totals:
    def __init__(self, plan: DeploymentPlan) -> None:
        query = plan.query
        sinks = query.sinks()
        self._behind = {
            name: tuple(sink for sink in sinks if sink in query.reachable_from([name]))
            for name in query.names()
        }
        makers = {origin: name for name in query.names() for origin in query.makes(name)}
        self._offered = {origin: Intervals() for origin, name in makers.items() if name in query.sources()}
        self._debts = {
            (origin, sink): _Debt() for origin, name in makers.items() for sink in self._behind[name]
        }
        self._kept = query.reliability != "best_effort"
        """Senders keep tuples until they are done, and send them again: they wait there."""
        self._stopped: set[tuple[str, int]] = set()
        self._killed: dict[tuple[str, int], float] = {}
        self._young: deque[tuple[float, str, int, int]] = deque(maxlen=MOST_YOUNG)
        """What was emitted last: the news that the measured time has begun may come after it."""
        self._from, self._until = float("-inf"), float("inf")
        self._ended: float | None = None
        self._last: dict[str, Any] | None = None

    def begin(self, t: float) -> None:
        """Tuples that were emitted before ``t`` do not count any more."""
        self._from = t
        for debt in self._debts.values():
            debt.settled.clear()
            debt.lives.change_all(lambda life: life._replace(inside=False))
        for origin in self._offered:
            self._offered[origin] = Intervals()
        for emitted, origin, first, last in self._young:
            if emitted >= t:
                self._offer(origin, first, last)
                for sink in self._sinks_of(origin):
                    self._change(origin, sink, first, last, lambda life: life._replace(inside=True))

    def finish(self, t: float) -> None:
        """Tuples that are born at ``t`` or later do not count."""
        self._until = t

    def end(self, t: float) -> None:
        """The run's last record was written at ``t``: whoever has not stopped in order by now never will."""
        self._ended = t

    def agent(self, node: str, t: float, boot: int, state: str) -> None:
        if state == "stopped":
            self._stopped.add((node, boot))
        elif state == "killed":
            self._killed.setdefault((node, boot), t)
        elif boot > 1 and (node, boot - 1) not in self._stopped:
            self._killed.setdefault((node, boot - 1), t)

    def emitted(self, by: Holder, replica: str, origin: str, tau: int, many: int) -> None:
        inside, last = self._is_inside(by.t), tau + many - 1
        if inside:
            self._offer(origin, tau, last)
        self._young.append((by.t, origin, tau, last))

        def become(life: Life) -> Life:
            known = life if life.fate == DELIVERED else life._replace(inside=inside)
            return known.seen(by)

        self._each(replica, origin, tau, many, become)

    def sent(self, by: Holder, replica: str, to: str, origin: str, tau: int, many: int) -> None:
        hop = Hop(replica, to, sent=by.t)
        self._each(to, origin, tau, many, lambda life: life.passed(hop).seen(by))

    def received(self, by: Holder, replica: str, sender: str, origin: str, tau: int, many: int) -> None:
        hop = Hop(sender, replica, received=by.t)
        self._each(replica, origin, tau, many, lambda life: life.passed(hop).seen(by))

    def delivered(self, replica: str, origin: str, tau: int, births: Sequence[float]) -> None:
        """``births``: when each tuple was born."""
        first = 0
        for at in range(1, len(births) + 1):
            inside = self._is_inside(births[first])
            if at < len(births) and self._is_inside(births[at]) == inside:
                continue
            self._each(
                replica, origin, tau + first, at - first, Life(DELIVERED, inside=inside).first_to_arrive
            )
            first = at

    def dropped(self, replica: str, origin: str, tau: int, reason: str, downstream: str | None) -> None:
        """``downstream``: as recorded, the operator that will not get the tuple; None if none will."""
        fate = _FATES.get(reason, DROPPED)
        # An operator's full error message may differ for each tuple.
        said = "" if fate == SET_ASIDE else reason.partition(":")[0][:LONGEST_REASON]
        self._each(downstream or replica, origin, tau, 1, lambda life: life.settled(fate, said))

    def changed(self, t: float, switches: int = 0) -> dict[str, Any] | None:
        """Returns the totals at ``t`` if they are others than before."""
        counts: Counts = Counter()
        arrived: Counts = Counter()
        for (origin, _), debt in self._debts.items():
            before = counts["delivered"]
            counts += debt.settled
            for first, last, life in debt.lives.pieces():
                self._count(counts, last - first + 1, life, t)
            arrived[origin] = max(arrived[origin], counts["delivered"] - before)
        dropped = {name[1:]: n for name, n in sorted(counts.items()) if name.startswith(":")}
        offered = 0
        for origin, emitted in self._offered.items():
            many = sum(last - first + 1 for first, last in emitted)
            # While the run goes on, a sink's record may be read before the source's of the same tuple.
            offered += many if self._ended is not None else max(many, arrived[origin])
        delivered, lost = counts["delivered"], counts["lost"]
        found = {
            "offered": offered,
            "delivered": delivered,
            "lost": lost,
            "waiting": counts["waiting"],
            "loss": round(lost / (delivered + lost), 9) if delivered + lost else None,
            "dropped": dropped,
            "switches": switches,
        }
        if found == self._last or (self._last is None and not any(found.values())):
            return None
        self._last = found
        return found

    def _count(self, counts: Counts, many: int, life: Life, t: float) -> None:
        if not life.inside or life.fate == SET_ASIDE:
            return
        if life.fate == DELIVERED:
            counts["delivered"] += many
        elif life.fate != OPEN:
            counts["lost"] += many
            # The colon keeps reasons apart from the other names.
            is_known = f":{life.reason}" in counts or len(counts) < MOST_REASONS
            counts[f":{life.reason}" if is_known else ":other"] += many
        else:
            counts["lost" if self._is_lost(life, t) else "waiting"] += many

    def _is_lost(self, life: Life, t: float) -> bool:
        if self._kept and self._ended is None:
            return False
        now = t if self._ended is None else self._ended
        if (since := life.on_connection_since()) is not None:
            return since < now - GRACE_S
        if life.last is None:
            return False
        holder = (life.last.node, life.last.boot)
        if self._ended is not None:
            return holder not in self._stopped
        return self._killed.get(holder, now) < now - GRACE_S

    def _is_inside(self, t: float) -> bool:
        return self._from <= t < self._until

    def _offer(self, origin: str, first: int, last: int) -> None:
        offered = self._offered.get(origin)
        if offered is not None:
            offered.add(first, last)
            if len(offered) > MOST_SPANS:
                offered.fill(MOST_SPANS // 2)

    def _sinks_of(self, origin: str) -> list[str]:
        return [sink for known, sink in self._debts if known == origin]

    def _each(self, toward: str, origin: str, tau: int, many: int, become: Callable[[Life], Life]) -> None:
        """Changes lives on their way to the sinks behind ``toward``, an operator or one of its replicas."""
        behind = self._behind.get(toward)
        for sink in self._behind.get(operator_of(toward), ()) if behind is None else behind:
            self._change(origin, sink, tau, tau + many - 1, become)

    def _change(self, origin: str, sink: str, first: int, last: int, become: Callable[[Life], Life]) -> None:
        debt = self._debts.get((origin, sink))
        if debt is None:
            return
        debt.lives.change(first, last, become)
        if len(debt.lives) > MOST_PIECES:
            latest = max((t for t, *_ in self._young), default=0.0)
            for many, life in debt.lives.forget(MOST_PIECES // 2):
                self._count(debt.settled, many, life, latest)
