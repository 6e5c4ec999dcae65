"""What a node may say to another: a client about itself, a broker about its own streams, a home about its
queries."""

from collections.abc import Iterable, Mapping
from functools import partial

from node_agent.apps.mcep.channel import Heartbeat, Marker, Message
from node_agent.apps.mcep.config import types_of
from node_agent.apps.mcep.deployment import Deployed, Deployment
from node_agent.apps.mcep.geometry import Point, bounds
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
from node_agent.apps.mcep.model import FAR_S, Event, Value
from node_agent.apps.mcep.moving.claims import MovesClaims
from node_agent.apps.mcep.moving.messages import Moves
from node_agent.apps.mcep.progress import GONE
from node_agent.apps.mcep.switching import Switch

FAR_M = 1e8
FAR_VALUE = 1e12
"""No number of an event is larger, so operators can add some of them up."""
MOST_ATTRIBUTES, MOST_TEXT = 32, 4000
"""Of an event: attributes, and characters of them together. Brokers keep events for a while."""


class Claims:
    """What ``receiver`` believes."""

    def __init__(self, receiver: str, deployment: Deployment) -> None:
        self._receiver = receiver
        self._brokers, self._clients = frozenset(deployment.brokers), frozenset(deployment.clients)
        self._queries = {each.name: each for each in deployment.queries}
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
            if not own or event.epoch or event.born:
                return "event"
            if event.type not in self._types:
                return "type"
            if not (0 <= event.t <= FAR_S and _is_near(event.place)):
                return "place"
            if not _are_bounded(event.attributes):
                return "attributes"
        return None

    def _of_query(
        self, sender: str, said: Located | Ordered | Answered | Streamed, query: Deployed
    ) -> str | None:
        match said:
            case Located(_, place, t):
                if sender != query.query.focal_object or self._receiver != query.home:
                    return "sender"
                return None if 0 <= t <= FAR_S and (place is None or _is_near(place)) else "place"
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
            if source is not None and (message.type != source.type or not _is_near(message.place)):
                return "event"
            if not _are_bounded(message.attributes):
                return "attributes"
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
    box = None if region is None else bounds(region)
    far = box is not None and max(abs(box.x0), abs(box.y0), abs(box.x1), abs(box.y1)) > 2 * FAR_M
    return None if named and marker.epoch >= 1 and -FAR_S <= marker.t <= FAR_S and not far else "marker"


def _is_near(place: object) -> bool:
    return isinstance(place, Point) and abs(place.x) <= FAR_M and abs(place.y) <= FAR_M


def _is_word(t: float) -> bool:
    return t <= FAR_S or t == GONE


def _are_bounded(attributes: Mapping[str, Value]) -> bool:
    sizes = (len(name) + (len(value) if isinstance(value, str) else 8) for name, value in attributes.items())
    numbers = (value for value in attributes.values() if not isinstance(value, str))
    return (
        len(attributes) <= MOST_ATTRIBUTES
        and sum(sizes) <= MOST_TEXT
        and all(-FAR_VALUE <= each <= FAR_VALUE for each in numbers)
    )
