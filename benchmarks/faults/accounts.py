"""Explains, from the records of a run, what became of tuples that no sink got.

It follows a tuple from replica to replica: one dropped it and recorded why, or its last known holder crashed
with it. A result that was never made is followed to its inputs: one of them must be lost. A tuple that a
replica hands over belongs to the other replica from then on; so, where replicas hand over, inputs at
different replicas in the end do not explain a loss.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from node_agent.apps.dataflow.model.plan import DeploymentPlan, operator_of
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow
from node_agent.apps.dataflow.switching.known_costs import is_shared

Tuple = tuple[str, int]
"""Stream and position."""
Record = Mapping[str, Any]
Edge = tuple[str, str]
"""Upstream and downstream operator."""
NO_LOSSES = ("absorbed", "filtered")


class Held(NamedTuple):
    """The replica that held it, since when, and in which boot of its node."""

    replica: str
    since_ns: int
    boot: int


class Accounts:
    """``policy``: the policy that chose routes."""

    def __init__(self, plan: DeploymentPlan, records: Iterable[Record], policy: str) -> None:
        self._plan = plan
        self._query = plan.query
        self._policy = policy
        self._node = {replica.id: replica.node for replica in plan.replicas}
        self._emitted: dict[Tuple, list[Held]] = defaultdict(list)
        self._received: dict[tuple[str, str, Tuple], list[Held]] = defaultdict(list)
        self._sent: dict[tuple[str, Tuple], list[tuple[str, int]]] = defaultdict(list)
        self._dropped: dict[tuple[str, Tuple], list[str | None]] = defaultdict(list)
        self._drops: dict[Tuple, str] = {}
        self._has: Counter[tuple[str, int, Tuple]] = Counter()
        self._passed: dict[tuple[str, str, Tuple], list[Held]] = defaultdict(list)
        self._arrivals: dict[tuple[str, str, Tuple], list[int]] = defaultdict(list)
        self._broke: Counter[tuple[str, Tuple]] = Counter()
        self._begun: dict[tuple[str, int], int] = {}
        self._ended: set[tuple[str, int]] = set()
        self._anything_broke = False
        for record in records:
            self._enter(record)

    def _enter(self, record: Record) -> None:
        kind, boot, at = record["kind"], record["boot"], record["t_ns"]
        item = (record["origin"], record["tau"]) if kind.startswith("tuple_") else ("", 0)
        match kind:
            case "agent_start":
                self._begun[record["node"], boot] = at
            case "agent_stop":
                self._ended.add((record["node"], boot))
            case "link_lost":
                self._anything_broke = True
            case "tuple_emitted":
                self._emitted[item].append(Held(record["replica"], at, boot))
            case "tuple_received":
                self._enter_received(record, item)
            case "tuple_sent":
                self._enter_sent(record, item)
            case "tuple_dropped" if record["reason"] not in NO_LOSSES:
                self._enter_dropped(record, item)

    def _enter_received(self, record: Record, item: Tuple) -> None:
        replica, sender, boot = record["replica"], record["sender"], record["boot"]
        self._has[replica, boot, item] += 1
        if operator_of(sender) == operator_of(replica):
            self._arrivals[sender, replica, item].append(record["t_ns"])
        else:
            key = (replica, operator_of(sender), item)
            self._received[key].append(Held(replica, record["t_ns"], boot))

    def _enter_sent(self, record: Record, item: Tuple) -> None:
        replica, to, at = record["replica"], record["to"], record["t_ns"]
        if operator_of(to) == operator_of(replica):
            self._has[replica, record["boot"], item] -= 1
            self._passed[replica, to, item].append(Held(replica, at, record["boot"]))
        else:
            self._sent[replica, item].append((to, at))

    def _enter_dropped(self, record: Record, item: Tuple) -> None:
        replica, reason = record["replica"], record["reason"]
        self._dropped[replica, item].append(record["downstream"])
        self._drops[item] = reason
        if reason == "link_failed":  # it had been sent
            self._broke[replica, item] += 1
        elif reason == "incomplete_window":  # recorded once, though it may have come over several inputs
            self._has[replica, record["boot"], item] = 0
        else:
            self._has[replica, record["boot"], item] -= 1

    def explains(self, operator: str, item: Tuple) -> bool:
        """Says whether the records explain why ``operator`` never got ``item``."""
        origins = self._query.origins()
        inputs = [up for up in self._query.upstream(operator) if item[0] in origins[up]]
        return all(self._explains_input((up, operator), item) for up in inputs)

    def _explains_input(self, edge: Edge, item: Tuple) -> bool:
        """Says whether they explain why ``item`` never came over that edge."""
        if holders := self._emitted.get(item):
            return all(self._explains_from(holder, edge, item) for holder in holders)
        return item[0] in self._query.names() and self._explains_unit(item)

    def altered(self, item: Tuple) -> bool:
        """Says whether ``item``, or one of its inputs, was dropped."""
        if item in self._drops:
            return True
        if item[0] not in self._query.names():
            return False
        return any(self.altered(member) for _, member in self._members(item))

    def _explains_from(self, holder: Held, edge: Edge, item: Tuple) -> bool:
        """Says whether the item, which ``holder`` had, is lost on all ways over ``edge`` from there."""
        replica = holder.replica
        here = operator_of(replica)
        if here == edge[1]:
            return self._crashed(replica, holder.boot)
        for downstream in self._query.downstream(here):
            if (here, downstream) != edge and edge[0] not in self._query.reachable_from([downstream]):
                continue
            sends = [(to, at) for to, at in self._sent[replica, item] if operator_of(to) == downstream]
            drops = self._dropped[replica, item]
            if downstream in drops or None in drops or self._crashed(replica, holder.boot):
                continue
            if not sends or not all(self._explains_send((here, to), at, edge, item) for to, at in sends):
                return False
        return True

    def _explains_send(self, way: tuple[str, str], at: int, edge: Edge, item: Tuple) -> bool:
        upstream, to = way
        if holders := self._received.get((to, upstream, item)):
            return all(self._explains_from(holder, edge, item) for holder in holders)
        return self._crashed_after(to, at)

    def _explains_unit(self, item: Tuple) -> bool:
        operator, members = item[0], self._members(item)
        if not members:
            return False
        needed = Counter(member for _, member in members)
        left = {
            replica.id: {member: self._left_with(replica.id, member) for member in needed}
            for replica in self._plan.of(operator)
        }
        if any(all(has[member] >= needed[member] for member in needed) for has in left.values()):
            return self._waits_for_an_end(item)
        if is_shared(self._query, operator, self._policy) and all(
            sum(has[member] for has in left.values()) >= needed[member] for member in needed
        ):
            return False  # all inputs are there, and do not come together
        return all(self._explains_passing(operator, member) for member in needed) and all(
            any((replica.id, up, item) in self._received for replica in self._plan.of(operator))
            or self._explains_input((up, operator), item)
            for up, item in members
        )

    def _left_with(self, replica: str, item: Tuple) -> int:
        """Counts how often the replica has the item in the end: once for each input that it came over."""
        node = self._node[replica]
        return sum(self._has[replica, boot, item] for other, boot in self._ended if other == node)

    def _explains_passing(self, operator: str, item: Tuple) -> bool:
        """Says whether what was handed over arrived, or was on a connection that broke, or one end
        crashed.
        """
        replicas = [replica.id for replica in self._plan.of(operator)]
        return all(
            sum(self._vanished(replica, to, item) for to in replicas) <= self._broke[replica, item]
            for replica in replicas
        )

    def _vanished(self, replica: str, to: str, item: Tuple) -> int:
        """Counts items that were handed over and did not arrive, though both replicas lived."""
        vanished, arrivals = 0, sorted(self._arrivals.get((replica, to, item), ()))
        for sent in sorted(self._passed.get((replica, to, item), ()), reverse=True):
            if arrivals and arrivals[-1] >= sent.since_ns:
                arrivals.pop()
            elif not (self._crashed(replica, sent.boot) or self._crashed_after(to, sent.since_ns)):
                vanished += 1
        return vanished

    def _members(self, item: Tuple) -> list[tuple[str, Tuple]]:
        """Returns the inputs of the result ``item``, and what shows that there are no more."""
        operator, number = item
        takes, origins = self._query.operator(operator).takes, self._query.origins()
        streams = [(up, origin) for up in self._query.upstream(operator) for origin in origins[up]]
        match takes:
            case SameTau():
                return [(up, (origin, number)) for up, origin in streams]
            case CountWindow(size, slide):
                first = (number - 1) * slide + 1
                return [(up, (origin, tau)) for up, origin in streams for tau in range(first, first + size)]
            case TimeWindow(size_ns, slide_ns):
                begin = (number - 1) * slide_ns
                return [
                    (up, (origin, tau))
                    for up, origin in streams
                    for tau in self._within(origin, begin, begin + size_ns)
                ]
        return []

    def _within(self, origin: str, begin_ns: int, end_ns: int) -> list[int]:
        """Returns positions of a source's stream that were captured then, and the first one after."""
        times = sorted(
            (tau, held[0].since_ns) for (name, tau), held in self._emitted.items() if name == origin
        )
        inside = [tau for tau, at in times if begin_ns <= at < end_ns]
        return inside + [tau for tau, at in times if at >= end_ns][:1]

    def _waits_for_an_end(self, item: Tuple) -> bool:
        """Says whether it is a last window: these complete only when streams are known to have ended, which
        is not recorded.
        """
        operator = item[0]
        takes = self._query.operator(operator).takes
        if not isinstance(takes, TimeWindow) or not self._anything_broke:
            return False
        end_ns = (item[1] - 1) * takes.slide_ns + takes.size_ns
        last: dict[str, int] = {}
        for (origin, _), held in self._emitted.items():
            last[origin] = max(last.get(origin, 0), held[0].since_ns)
        origins = self._query.origins()
        return any(last.get(o, 0) < end_ns for up in self._query.upstream(operator) for o in origins[up])

    def _crashed(self, replica: str, boot: int) -> bool:
        return (self._node[replica], boot) not in self._ended

    def _crashed_after(self, replica: str, at: int) -> bool:
        node = self._node[replica]
        boots = [boot for other, boot in self._begun if other == node]
        return any(
            self._crashed(replica, boot) and self._begun.get((node, boot + 1), inf) > at for boot in boots
        )
