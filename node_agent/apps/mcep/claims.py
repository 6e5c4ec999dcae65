"""What a node may say to another: a client about itself, a broker about its own streams, a home about its
queries."""

from collections.abc import Iterable
from functools import partial

from node_agent.apps.mcep.bounded import are_bounded, is_near, is_near_region
from node_agent.apps.mcep.channel import Heartbeat, Marker, Message
from node_agent.apps.mcep.config import types_of
from node_agent.apps.mcep.deployment import Deployed, Deployment
from node_agent.apps.mcep.graph import CONSUMER
from node_agent.apps.mcep.messages import (
    Answered,
    Known,
    Located,
    Ordered,
    Placed,
    Results,
    Said,
    Seen,
    Streamed,
    UpTo,
)
from node_agent.apps.mcep.model import FAR_S, Event
from node_agent.apps.mcep.moving.claims import MovesClaims
from node_agent.apps.mcep.moving.messages import Moves
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.reuse.offers import Covered, Offered
from node_agent.apps.mcep.reusing.claims import ReuseClaims
from node_agent.apps.mcep.switching import Switch


class Claims:
    """What ``receiver`` believes."""

    def __init__(self, receiver: str, deployment: Deployment) -> None:
        self._receiver = receiver
        self._brokers, self._clients = frozenset(deployment.brokers), frozenset(deployment.clients)
        self._queries = {each.name: each for each in deployment.queries}
        self._reused = ReuseClaims(receiver, deployment)
        self._types = types_of(deployment)
        self._streams = {
            each.name: frozenset((one.producer, one.successor) for one in each.query.graph.streams)
            for each in deployment.queries
        }
        self._moves = {
            each.name: MovesClaims(receiver, each, deployment, partial(self._mistold, each))
            for each in deployment.queries
            if each.migration is not None
        }

    def may_connect(self, node: str) -> bool:
        if self._receiver in self._brokers:
            return node in self._brokers or node in self._clients
        return any(
            each.home == node and each.query.focal_object == self._receiver for each in self._queries.values()
        )

    def refusal(self, sender: str, said: Said) -> str | None:
        """Returns one word that says why it cannot be; None if it can."""
        if self._receiver in self._brokers:
            return self._to_broker(sender, said)
        query = self._queries.get(said.query) if isinstance(said, Placed | Results) else None
        if query is None:
            return "message"
        is_home = query.home == sender and query.query.focal_object == self._receiver
        return None if is_home else "sender"

    def _to_broker(self, sender: str, said: Said) -> str | None:
        match said:
            case Seen(events):
                return "sender" if sender not in self._clients else self._unseen(sender, events)
            case UpTo(t):
                if sender not in self._clients:
                    return "sender"
                return None if _is_word(t) else "time"
            case Known(upto):
                if sender not in self._brokers:
                    return "sender"
                if not all(client in self._clients for client, _ in upto):
                    return "client"
                return None if all(_is_word(t) for _, t in upto) else "time"
            case Offered() | Covered():
                return self._reused.refusal(sender, said)
            case Moves(name, moves):
                claims = self._moves.get(name)
                return "query" if claims is None else claims.refusal(sender, moves)
            case Located() | Ordered() | Answered() | Streamed():
                query = self._queries.get(query_of_run(said.query))
                return "query" if query is None else self._of_query(sender, said, query)
            case _:
                return "message"

    def _unseen(self, sender: str, events: Iterable[Event]) -> str | None:
        for event in events:
            own = event.source == sender and event.provenance == {(sender, event.seq)}
            if not own or event.epoch or event.born or event.shared is not None:
                return "event"
            if event.type not in self._types:
                return "type"
            if not (0 <= event.t <= FAR_S and is_near(event.place)):
                return "place"
            if not are_bounded(event.attributes):
                return "attributes"
        return None

    def _of_query(
        self, sender: str, said: Located | Ordered | Answered | Streamed, query: Deployed
    ) -> str | None:
        match said:
            case Located(_, place, t):
                if sender != query.query.focal_object or self._receiver != query.home:
                    return "sender"
                return None if 0 <= t <= FAR_S and (place is None or is_near(place)) else "place"
            case Ordered(_, order):
                if sender != query.home:
                    return "sender"
                return _misorders(order.marker, query) if isinstance(order, Switch) else None
            case Answered(_, answer):
                if self._receiver != query.home or sender not in self._brokers:
                    return "sender"
                return None if answer.position <= FAR_S else "time"
            case Streamed(_, successor, channel, message):
                stream = (channel.producer, successor)
                if query.migration is not None and successor != CONSUMER:
                    return "stream"
                if stream not in self._streams[query.name] or query.host(successor) != self._receiver:
                    return "stream"
                operator = channel.producer in query.query.graph.by_name
                host = query.hosts[channel.producer] if operator else channel.origin
                if sender != host or bool(channel.origin) == operator or sender not in self._brokers:
                    return "sender"
                return self._mistold(query, message, channel.producer)

    def _mistold(self, query: Deployed, message: Message, producer: str) -> str | None:
        if isinstance(message, Marker):
            return _misorders(message, query)
        if isinstance(message, Event):
            source = next((each for each in query.query.graph.sources if each.name == producer), None)
            if source is not None and (message.type != source.type or not is_near(message.place)):
                return "event"
            if not are_bounded(message.attributes):
                return "attributes"
            if message.shared is not None and not self._reused.may_be_shared:
                return "event"
            return None if -FAR_S <= message.t <= FAR_S else "time"
        if isinstance(message, Heartbeat):
            return None if message.t <= FAR_S else "time"
        return None


def query_of_run(name: str) -> str:
    """The query that a run is named after: runs of its graphs are ``near/1``, ``near/2`` and so on."""
    return name.partition("/")[0]


def _misorders(marker: Marker, query: Deployed) -> str | None:
    graph = query.query.graph
    named = marker.points.keys() == set(graph.order) and marker.touched <= graph.below[CONSUMER]
    region = marker.region
    far = region is not None and not is_near_region(region)
    return None if named and marker.epoch >= 1 and -FAR_S <= marker.t <= FAR_S and not far else "marker"


def _is_word(t: float) -> bool:
    return t <= FAR_S or t == GONE
