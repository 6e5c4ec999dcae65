"""Which node does what for a query: the brokers' areas, the clients, and where each operator runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from node_agent.apps.mcep.areas import Areas
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.interest import Always, Condition, QualityAware
from node_agent.apps.mcep.model import McepError, Query
from node_agent.apps.mcep.moving.settings import Migration
from node_agent.apps.mcep.prediction import Prediction, check_prediction
from node_agent.apps.mcep.reuse.deployed import Reuse, check_reuse


@dataclass(frozen=True)
class Deployed:
    """A query on brokers. ``hosts``: where each operator runs. ``home``: the broker that moves the interest
    and puts results in order, for the focal object, which is a client. ``prediction``: prepares graphs where
    the object will be. ``asks``: what it asks for; queries with strong completeness and the same word share
    the graphs of their regions. ``migration``: how operators move; None if they do not."""

    query: Query
    hosts: Mapping[str, str]
    home: str
    condition: Condition = field(default_factory=Always)
    prediction: Prediction | None = None
    asks: str = ""
    migration: Migration | None = None

    @property
    def has_graphs(self) -> bool:
        """Whether it has a graph for each region, and not one graph that moves."""
        return self.prediction is not None or bool(self.asks)

    @property
    def name(self) -> str:
        return self.query.name

    def host(self, successor: str) -> str:
        return self.home if successor == CONSUMER else self.hosts[successor]


@dataclass(frozen=True)
class Deployment:
    """``ttl``: for how many seconds brokers keep events. ``reuse``: whose selections are shared."""

    areas: Areas
    clients: tuple[str, ...]
    queries: tuple[Deployed, ...]
    ttl: float
    reuse: Reuse | None = None

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(self.areas.boxes)

    @property
    def groups(self) -> tuple[tuple[Deployed, ...], ...]:
        """Queries that have a graph for each region; those that share them together."""
        found: dict[tuple[str, str], list[Deployed]] = {}
        for each in self.queries:
            if each.has_graphs:
                found.setdefault((each.asks, "" if each.asks else each.name), []).append(each)
        return tuple(map(tuple, found.values()))


def check_deployment(deployment: Deployment) -> None:
    """Raises ``McepError`` if a query would run on a node that is no broker, or follow one that is no
    client."""
    brokers, clients = set(deployment.brokers), set(deployment.clients)
    if both := sorted(brokers & clients):
        raise McepError(f"{both[0]} cannot be a broker and a client")
    for each in deployment.queries:
        if each.query.focal_object not in clients:
            raise McepError(
                f"query {each.name}: {each.query.focal_object} is not a client, so it has no place"
            )
        for what, host in [("its home", each.home), *each.hosts.items()]:
            if host not in brokers:
                raise McepError(f"query {each.name}: {what} cannot be on {host}, which is no broker")
        if isinstance(each.condition, QualityAware) and len(brokers) > 1:
            raise McepError(f"query {each.name}: switching by quality counts events on one broker only")
        if each.has_graphs:
            _check_graphs(each, len(brokers))
        if each.migration is not None:
            _check_migration(each, each.migration, brokers)
            if each.migration.planning is not None and deployment.areas.polygons:
                raise McepError(
                    f"query {each.name}: plans need brokers whose areas are rectangles, and some are polygons"
                )
        missing = sorted(set(each.query.graph.by_name) - set(each.hosts))
        if missing:
            raise McepError(f"query {each.name}: operator {missing[0]} has no broker to run on")
    if deployment.reuse is not None:
        queries = [(each.query, each.has_graphs, each.migration is not None) for each in deployment.queries]
        check_reuse(deployment.reuse, queries, frozenset(brokers))
    for first, *others in deployment.groups:
        for other in others:
            same = (other.home, other.hosts, other.query.graph) == (
                first.home,
                first.hosts,
                first.query.graph,
            )
            if not same:
                raise McepError(
                    f"queries {first.name} and {other.name} both ask for {first.asks}: give them the same "
                    "graph, home and hosts"
                )


def _check_migration(each: Deployed, migration: Migration, brokers: set[str]) -> None:
    policy, operators = each.query.policy, each.query.graph.by_name
    if each.has_graphs:
        raise McepError(
            f"query {each.name}: graphs of regions end after a while, so their operators do not move; "
            "predict and share nothing"
        )
    if policy.suppression:
        raise McepError(
            f"query {each.name}: with suppression operators keep what the last region brought, which does "
            "not move; switch it off"
        )
    if not policy.is_strict:
        raise McepError(
            f"query {each.name}: what operators drop with best effort depends on what came when, so no other "
            "broker could go on; ask for weak completeness"
        )
    for operator in migration.state:
        if operator not in operators:
            raise McepError(f"query {each.name}: it has no operator {operator}")
    for _, operator, to in migration.scheduled:
        if operator not in operators:
            raise McepError(f"query {each.name}: it has no operator {operator}")
        if to not in brokers:
            raise McepError(f"query {each.name}: {operator} cannot move to {to}, which is no broker")


def _check_graphs(each: Deployed, brokers: int) -> None:
    policy = each.query.policy
    if "/" in each.name:
        raise McepError(f"query {each.name}: a query with several graphs needs a name without /")
    if policy.suppression:
        raise McepError(
            f"query {each.name}: suppression is for one graph that moves; switch it off, or predict and "
            "share nothing"
        )
    for operator in each.query.graph.operators:
        if operator.reuse == "contextual":
            raise McepError(
                f"query {each.name}: operator {operator.name} looks at the epoch, but a graph that is "
                "prepared or shared serves several; predict and share nothing"
            )
    if each.asks and policy.completeness != "strong":
        raise McepError(f"query {each.name}: only queries with strong completeness share graphs")
    if each.prediction is not None:
        check_prediction(each.prediction)
        if each.prediction.ahead is None and brokers > 1:
            raise McepError(
                f"query {each.name}: how long history takes is counted on one broker only; say how many "
                "seconds ahead graphs begin"
            )
