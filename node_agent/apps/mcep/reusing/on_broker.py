"""What one broker does for reuse: runs operators that offer their selections, and selection managers."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.execution import Sent
from node_agent.apps.mcep.model import McepError, Query
from node_agent.apps.mcep.reuse.deciding import Deciding
from node_agent.apps.mcep.reuse.deployed import Reuse, key_of, split_key
from node_agent.apps.mcep.reuse.offers import Covered, Offered
from node_agent.apps.mcep.reuse.results import Results, Sorter
from node_agent.apps.mcep.reusing.offering import Offering
from node_agent.apps.mcep.site import Site
from node_agent.apps.mcep.wiring import inlets

MOST_SHARES = 200
"""Selections that one message names."""


class Resumed(NamedTuple):
    """What an operator sends, since results for its selections came."""

    query: str
    operator: str
    sent: list[Sent]


class SharedSelections:
    """``managers``: those that run here. ``ready``: up to which time all events have arrived from clients
    that still say something."""

    def __init__(
        self, reuse: Reuse, queries: Iterable[Deployed], site: Site, ready: Callable[[], float]
    ) -> None:
        self._reuse, self._site, self._ready = reuse, site, ready
        by_name = {each.name: each for each in queries}
        hosts: dict[str, str] = {}
        operators = {}
        for key in reuse.manager_of:
            query, operator = split_key(key)
            hosts[key] = by_name[query].hosts[operator]
            operators[key] = by_name[query].query.graph.by_name[operator]
        here = [each for each in reuse.managers if each.broker == site.name]
        self.managers: Mapping[str, Deciding] = {
            each.name: Deciding(each, reuse, operators, hosts) for each in here
        }
        self._sorter = Sorter({key: 0 for key, host in hosts.items() if host == site.name})
        self._offering: dict[str, Offering] = {}
        self._hurried = {
            each.name
            for each in here
            if not any(by_name[split_key(key)[0]].query.policy.is_strict for key in each.operators)
        }
        """Managers of which no query is strict: they wait for nobody who says nothing."""

    @property
    def waiting(self) -> int:
        return sum(each.waiting for each in self.managers.values())

    @property
    def processed(self) -> int:
        return sum(each.work.processed for each in self.managers.values())

    def operator(self, query: Query, name: str) -> Offering | None:
        """An operator of a query, if its selections are shared."""
        key = key_of(query.name, name)
        manager = self._reuse.manager_of.get(key)
        if manager is None:
            return None
        broker, site = manager.broker, self._site

        def offer(said: Offered) -> None:
            site.send(broker, said)

        found = self._offering[key] = Offering(
            key,
            query.graph,
            name,
            inlets(query, name, site.servers),
            offer,
            period=self._reuse.period,
            strict=query.policy.is_strict,
        )
        return found

    def offered(self, said: Offered) -> None:
        """Raises ``McepError`` if the operator cannot say this."""
        manager = self._reuse.manager_of[said.operator]
        if manager.name not in self.managers:
            raise McepError(f"{said.operator} has its manager on {manager.broker}")
        self.managers[manager.name].offered(said)
        self.look()

    def look(self) -> None:
        """Decides what can be decided."""
        for name, each in self.managers.items():
            now = self._ready() if name in self._hurried else self._site.arrived()
            for broker, results in each.look(now):
                for piece in _pieces(results):
                    self._site.send(broker, Covered(name, piece))

    def covered(self, said: Covered) -> list[Resumed]:
        """Raises ``McepError`` for a selection that nobody here has."""
        for key, number in [*(each[:2] for each in said.results.shares), *said.results.empty]:
            if key not in self._offering or number >= self._offering[key].selected:
                raise McepError(f"{key} has not made selection {number}")
        named = [*(each.operator for each in said.results.shares), *(key for key, _ in said.results.empty)]
        for key, number, results in self._sorter.receive(said.results):
            self._offering[key].covered(number, results)
        return [
            Resumed(*split_key(key), self._offering[key].reached(self._sorter.next_of(key)))
            for key in dict.fromkeys(named)
        ]


def _pieces(results: Results) -> list[Results]:
    """A message in parts that are not too large."""
    shares, empty = results.shares, results.empty
    found = [
        Results(results.outputs, shares[n : n + MOST_SHARES], results.used_cells)
        for n in range(0, len(shares), MOST_SHARES)
    ]
    many = 20 * MOST_SHARES
    return found + [Results(empty=empty[n : n + many]) for n in range(0, len(empty), many)]
