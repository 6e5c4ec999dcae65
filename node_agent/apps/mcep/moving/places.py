"""Who takes part when operators of a query move, what they are called, and on which broker they are.

Of each operator: a host on every broker, one of which owns it; streams, that is what keeps the input of a
channel; sinks, that is what takes outputs for a successor; and the query's home, which coordinates. A sink
for an operator and the stream from there to it are one joint, which follows the operator that sends.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from node_agent.apps.mcep.channel import ChannelId
from node_agent.apps.mcep.deployment import Deployed
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.moving.operator import stream_name
from node_agent.apps.mcep.wiring import channels
from node_agent.migration.live.claims import Parties

HOME = "the home"
"""What hosts call the coordinator; no broker is named like this, as names of nodes have no spaces."""


def sink_name(successor: str) -> str:
    return f"to {successor}"


class Joint(NamedTuple):
    """Between two operators, or an operator and the consumer."""

    producer: str
    successor: str


class Neighbourhood(NamedTuple):
    """An operator's channels by the names of its streams, and its successors by those of its sinks."""

    streams: Mapping[str, ChannelId]
    sinks: Mapping[str, str]

    def parties(self, brokers: Iterable[str]) -> Parties:
        return Parties(HOME, frozenset(brokers), frozenset(self.streams), frozenset(self.sinks))


def neighbourhoods(deployed: Deployed, servers: Iterable[str]) -> dict[str, Neighbourhood]:
    """By operator."""
    graph, origins = deployed.query.graph, tuple(servers)
    found = {}
    for operator in graph.by_name:
        inputs = {stream_name(each): each for each in channels(deployed.query, operator, origins)}
        outputs = {sink_name(each.successor): each.successor for each in graph.outputs[operator]}
        found[operator] = Neighbourhood(inputs, outputs)
    return found


class Places:
    """Where joints are. ``versions``: how often each has moved."""

    def __init__(self, deployed: Deployed) -> None:
        graph = deployed.query.graph
        self._home = deployed.home
        self._at = {
            Joint(stream.producer, stream.successor): deployed.hosts[stream.producer]
            for stream in graph.streams
            if stream.producer in graph.by_name and stream.successor != CONSUMER
        }
        self.versions = dict.fromkeys(self._at, 0)

    def __contains__(self, joint: object) -> bool:
        return joint in self._at

    def joints(self, producer: str) -> tuple[Joint, ...]:
        """Those that follow an operator."""
        return tuple(each for each in self._at if each.producer == producer)

    def at(self, joint: Joint) -> str:
        return self._home if joint.successor == CONSUMER else self._at[joint]

    def put(self, joint: Joint, broker: str, version: int) -> None:
        if version > self.versions[joint]:
            self._at[joint], self.versions[joint] = broker, version
