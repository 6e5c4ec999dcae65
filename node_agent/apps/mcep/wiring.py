"""Builds the state machines of a query, wherever they are to run: which inlets each has, and what they
keep."""

from collections.abc import Iterable

from node_agent.apps.mcep.channel import ChannelId, Inlet
from node_agent.apps.mcep.delivery import Delivery
from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.graph import CONSUMER, Source
from node_agent.apps.mcep.model import Query
from node_agent.apps.mcep.range_query import RangeQuery
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.suppression import omits


def channels(query: Query, successor: str, servers: Iterable[str]) -> list[ChannelId]:
    """On which channels a successor gets its input: from each operator one, of each source one from every
    server."""
    origins = tuple(servers)
    return [
        ChannelId(stream.producer, origin)
        for stream in query.graph.inputs[successor]
        for origin in (("",) if stream.producer in query.graph.by_name else origins)
    ]


def inlets(
    query: Query, successor: str, servers: Iterable[str], *, partial: bool = False
) -> dict[ChannelId, Inlet]:
    """``partial``: whether switches may leave some sources untouched, so that all keep their last
    events."""
    graph = query.graph
    passes_on = successor != CONSUMER and omits(graph, successor) == "region"  # it keeps nothing itself
    suppresses = query.policy.suppression and not passes_on
    found = {}
    for channel in channels(query, successor, servers):
        look_back = query.history + graph.additional_time(channel.producer)
        found[channel] = Inlet(
            graph.below[channel.producer],
            omits(graph, channel.producer) if suppresses else "nothing",
            look_back if suppresses or partial else None,
        )
    return found


def execution(query: Query, name: str, servers: Iterable[str], *, partial: bool = False) -> Execution:
    return Execution(
        query.graph,
        name,
        inlets(query, name, servers, partial=partial),
        strict=query.policy.is_strict,
        suppression=query.history if query.policy.suppression else None,
    )


def delivery(query: Query, servers: Iterable[str], *, partial: bool = False) -> Delivery:
    found = inlets(query, CONSUMER, servers, partial=partial)
    return Delivery(found, query.history, query.policy)


def range_query(query: Query, source: Source, storage: Storage) -> RangeQuery:
    policy = query.policy
    look_back = query.history + query.graph.additional_time(source.name)
    return RangeQuery(source, storage, look_back, strict=policy.is_strict, suppression=policy.suppression)
