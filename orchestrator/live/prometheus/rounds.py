"""Turns the records of one node into samples: feeds tallies, and samples them after each round of records.

A node writes a round of records, such as the lengths of all its queues, once a sample period. A node that
writes more does not get more: each tally is sampled as a whole at most once a second, and a round that comes
earlier gives only the gauges that its own records state.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, Protocol, get_type_hints

from node_agent.agent.metrics import AGENT_METRIC_KINDS
from node_agent.apps.records import record_format
from node_agent.apps.registry import APPLICATIONS
from node_agent.telemetry.belief import OLD_APP
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.metrics import MetricKind, MetricKinds, Sample, Tally
from node_agent.telemetry.records import AGENT, AGENT_RECORDS
from orchestrator.live.facts import RunFacts
from orchestrator.live.prometheus.checking import MOST_SERIES

PERIOD_NS = 1_000_000_000
EARLY_NS = 500_000_000
"""So much earlier a round may come, as timers do; in the long run there is still one a second."""


class Output(Protocol):
    """Takes the samples of one node."""

    def true_ns(self, t_ns: int) -> int | None:
        """Returns a time of the node's clock corrected; None if it is impossible in this run."""
        ...

    def add(self, samples: Iterable[Sample], true_ns: int) -> None: ...

    def refuse(self, number: int) -> None:
        """Counts samples that have an impossible time."""
        ...


class Boots:
    """Feeds the records of one node to tallies: new ones for each start of its agent."""

    def __init__(self, facts: RunFacts, output: Output) -> None:
        self._kinds = {name: app.kind for name, app in facts.apps.items() if app.kind in APPLICATIONS}
        self._output = output
        self._owners = record_format().owners
        self._boot = 0
        self._last_ns = 0
        self._tallies: dict[tuple[str, bool], _Rounds | None] = {}

    def take(self, record: Any) -> None:
        if record.boot != self._boot:
            self.end()
            self._boot = record.boot
        is_agents = self._owners.get(record.kind) == AGENT
        key = (record.app if is_agents else record.app or OLD_APP, is_agents)
        if key not in self._tallies:
            self._tallies[key] = self._rounds(*key)
        if (rounds := self._tallies[key]) is not None:
            rounds.take(record)
        self._last_ns = max(self._last_ns, record.t_ns)

    def end(self) -> None:
        """The agent has ended: its last values are the last that can be known."""
        for rounds in self._tallies.values():
            if rounds is not None:
                rounds.end(self._last_ns)
        self._tallies.clear()
        self._last_ns = 0

    def _rounds(self, app: str, is_agents: bool) -> "_Rounds | None":
        if is_agents:
            return _Rounds(app, AGENT_METRIC_KINDS, self._output)
        kinds = APPLICATIONS[self._kinds[app]].metrics if app in self._kinds else None
        return None if kinds is None else _Rounds(app, kinds, self._output)


_OF_AGENT = tuple(map(tag_of, AGENT_RECORDS.events))


class _Rounds:
    """Samples one tally after each round of its ticks: records of these kinds that follow one another, none
    about the same as another.
    """

    def __init__(self, app: str, kinds: MetricKinds, output: Output) -> None:
        self._app = app
        self._kinds = kinds
        self._tally = kinds.tally()
        self._ticks = frozenset(kinds.ticks or _OF_AGENT)
        self._gauges = {each.name for each in kinds.metrics if each.kind is MetricKind.GAUGE}
        self._output = output
        self._round: dict[Hashable, Any] = {}
        self._round_ns = 0
        self._due_ns = 0

    def take(self, record: Any) -> None:
        kind, t_ns = record.kind, record.t_ns
        if kind in self._ticks:
            about = _names(kind)(record)
            if about in self._round or len(self._round) >= MOST_SERIES:
                self._sample()
            self._round[about] = record
            self._round_ns = t_ns
        elif self._round:
            self._sample()
        self._tally.take(kind, record, t_ns)

    def end(self, t_ns: int) -> None:
        """A gauge has no value after the end; counters and histograms have their last one."""
        if self._round:
            self._sample()
        if t_ns > self._round_ns and (true_ns := self._output.true_ns(t_ns)) is not None:
            lasting = (each for each in self._named(self._tally) if each.name not in self._gauges)
            self._output.add(lasting, true_ns)

    def _sample(self) -> None:
        true_ns = self._output.true_ns(self._round_ns)
        if true_ns is None:
            self._output.refuse(len(self._round))
        elif true_ns >= self._due_ns - EARLY_NS:
            self._due_ns = max(self._due_ns, true_ns) + PERIOD_NS
            self._output.add(self._named(self._tally), true_ns)
        elif self._kinds.ticks:
            self._output.add(self._stated(), true_ns)
        self._round.clear()

    def _stated(self) -> Iterator[Sample]:
        """Yields the gauges that the records of this round state, in a time that grows with these alone."""
        tally = self._kinds.tally()
        for record in self._round.values():
            tally.take(record.kind, record, record.t_ns)
        return (each for each in self._named(tally) if each.name in self._gauges)

    def _named(self, tally: Tally) -> Iterator[Sample]:
        for sample in tally.samples():
            yield Sample(sample.name, sample.labels, sample.value, self._app, sample.counts)


@cache
def _names(kind: str) -> Callable[[Any], Hashable]:
    """Returns a function that gets the texts of a record of this kind: what it is about."""
    (event,) = (each for each in record_format().events if tag_of(each) == kind)
    texts = [name for name, hint in get_type_hints(event).items() if hint is str]
    return attrgetter("kind", *texts)
