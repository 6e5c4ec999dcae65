"""What became of tuples that no sink was given, by the records of a run.

A tuple is followed from replica to replica: somebody dropped it and said why, or its last known holder
crashed with it. A result that was never made is followed to its inputs: one of them was lost, or no replica
that lived ever had them all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from node_agent.dataflow.replica import operator_of
from node_agent.model.plan import DeploymentPlan
from node_agent.model.units import CountWindow, SameTau, TimeWindow

Tuple = tuple[str, int]
"""Stream and position."""
Record = Mapping[str, Any]
Edge = tuple[str, str]
"""Upstream and downstream operator."""
NO_LOSSES = ("absorbed", "filtered")


class Held(NamedTuple):
    """By which replica, since when, in which boot of its node."""

    replica: str
    since_ns: int
    boot: int


class Accounts:
    def __init__(self, plan: DeploymentPlan, records: Iterable[Record]) -> None:
        self._plan = plan
        self._query = plan.query
        self._node = {replica.id: replica.node for replica in plan.replicas}
        self._emitted: dict[Tuple, list[Held]] = defaultdict(list)
        self._received: dict[tuple[str, str, Tuple], list[Held]] = defaultdict(list)
        self._sent: dict[tuple[str, Tuple], list[tuple[str, int]]] = defaultdict(list)
        self._dropped: dict[tuple[str, Tuple], list[str | None]] = defaultdict(list)
        self._drops: dict[Tuple, str] = {}
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
                key = (record["replica"], operator_of(record["sender"]), item)
                self._received[key].append(Held(record["replica"], at, boot))
            case "tuple_sent":
                self._sent[record["replica"], item].append((record["to"], at))
            case "tuple_dropped" if record["reason"] not in NO_LOSSES:
                self._dropped[record["replica"], item].append(record["downstream"])
                self._drops[item] = record["reason"]

    def explains(self, operator: str, item: Tuple) -> bool:
        """Whether the records tell why ``operator`` was never given ``item``."""
        origins = self._query.origins()
        inputs = [up for up in self._query.upstream(operator) if item[0] in origins[up]]
        return all(self._explains_input((up, operator), item) for up in inputs)

    def _explains_input(self, edge: Edge, item: Tuple) -> bool:
        """Why ``item`` never came over that edge."""
        if holders := self._emitted.get(item):
            return all(self._explains_from(holder, edge, item) for holder in holders)
        return item[0] in self._query.names() and self._explains_unit(item)

    def altered(self, item: Tuple) -> bool:
        """Whether something was dropped that ``item`` was to be made of, or it itself."""
        if item in self._drops:
            return True
        if item[0] not in self._query.names():
            return False
        return any(self.altered(member) for _, member in self._members(item))

    def _explains_from(self, holder: Held, edge: Edge, item: Tuple) -> bool:
        """``holder`` had the item, and it is lost on all ways that lead over ``edge`` from there."""
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
        for replica in self._plan.of(operator):
            boots = [
                {held.boot for held in self._received.get((replica.id, *member), ())} for member in members
            ]
            whole = [boot for boot in set.intersection(*boots) if not self._crashed(replica.id, boot)]
            late = any(None in self._dropped.get((replica.id, member), ()) for _, member in members)
            if whole and not late and not self._waits_for_an_end(item):
                return False
        return all(
            any((replica.id, up, item) in self._received for replica in self._plan.of(operator))
            or self._explains_input((up, operator), item)
            for up, item in members
        )

    def _members(self, item: Tuple) -> list[tuple[str, Tuple]]:
        """The inputs that the result ``item`` is made of, and what shows that there are no more."""
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
        """Positions of a source's stream that were captured then, and the first one after."""
        times = sorted(
            (tau, held[0].since_ns) for (name, tau), held in self._emitted.items() if name == origin
        )
        inside = [tau for tau, at in times if begin_ns <= at < end_ns]
        return inside + [tau for tau, at in times if at >= end_ns][:1]

    def _waits_for_an_end(self, item: Tuple) -> bool:
        """The last windows are complete only when streams are known to have ended, which is not recorded."""
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
