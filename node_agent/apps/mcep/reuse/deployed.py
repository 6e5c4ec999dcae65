"""Which operators of which queries share, by which selection managers, and where these run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from node_agent.apps.mcep.model import McepError, Query
from node_agent.apps.mcep.reuse.checks import sharing_problem
from node_agent.apps.mcep.reuse.manager import Settings
from node_agent.apps.mcep.reuse.neighbours import Reach


def key_of(query: str, operator: str) -> str:
    """The name of an operator among those of all queries."""
    return f"{query}/{operator}"


def split_key(key: str) -> tuple[str, str]:
    """The query and the operator's name in it."""
    query, _, operator = key.rpartition("/")
    return query, operator


@dataclass(frozen=True)
class Managed:
    """A selection manager: the broker on which it runs, and its operators, by key. They are of one type."""

    name: str
    broker: str
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Reuse:
    """``period``: seconds from one decision to the next. ``again``: seconds after which neighbours are chosen
    anew."""

    settings: Settings
    managers: tuple[Managed, ...]
    period: float = 1.0
    reach: Reach = field(default_factory=Reach)
    again: float = 2.0

    @cached_property
    def manager_of(self) -> dict[str, Managed]:
        """By key of an operator."""
        return {key: each for each in self.managers for key in each.operators}


def check_reuse(reuse: Reuse, queries: Iterable[tuple[Query, bool, bool]], brokers: frozenset[str]) -> None:
    """Raises ``McepError``. ``queries``: each with whether it has a graph for each region, and whether its
    operators move."""
    named = {each[0].name: each for each in queries}
    every = [key for each in reuse.managers for key in each.operators]
    if not reuse.period > 0 or not reuse.again > 0:
        raise McepError("the period of decisions and of choosing neighbours are above 0 s")
    names = [each.name for each in reuse.managers]
    for kind, found in (("selection manager", names), ("operator", every)):
        if twice := sorted({each for each in found if found.count(each) > 1}):
            raise McepError(f"{kind} {twice[0]} is there twice")
    for manager in reuse.managers:
        if manager.broker not in brokers:
            raise McepError(f"selection manager {manager.name}: {manager.broker} is no broker")
        if len({split_key(key)[0] for key in manager.operators}) < len(manager.operators):
            raise McepError(f"selection manager {manager.name}: it has two operators of one query")
        for key in manager.operators:
            name, operator = split_key(key)
            if name not in named or operator not in named[name][0].graph.by_name:
                raise McepError(f"selection manager {manager.name}: there is no operator {key}")
    for name in dict.fromkeys(split_key(key)[0] for key in every):
        query = named[name][0]
        problem = query_problem(*named[name])
        if problem is None:
            shared = [split_key(key)[1] for key in every if split_key(key)[0] == name]
            operators = (query.graph.by_name[each] for each in shared)
            problem = next(filter(None, map(sharing_problem, operators)), None)
        if problem is not None:
            raise McepError(f"query {name}: {problem}")


def query_problem(query: Query, has_graphs: bool, moves: bool) -> str | None:
    """Why the selections of a query cannot be shared; None if they can."""
    if query.policy.completeness == "strong":
        return "it asks for strong completeness, which results of other regions cannot give"
    if query.policy.suppression:
        return "suppression finds its own old results; results of other queries take their place"
    if has_graphs:
        return "it prepares graphs, and only graphs that move share selections"
    if moves:
        return "its operators move between brokers, and their selection managers do not follow"
    return None
