"""What brokers and clients say to each other. Between two nodes messages arrive once and in order."""

from typing import NamedTuple

from node_agent.apps.mcep.channel import ChannelId, Message
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.moving.messages import Moves
from node_agent.apps.mcep.reuse.offers import Covered, Offered
from node_agent.apps.mcep.switching import Held, Order


class Seen(NamedTuple):
    """From a client: events of its own, in order."""

    events: tuple[Event, ...]


class UpTo(NamedTuple):
    """From a client to its broker: all its events before ``t`` have arrived."""

    t: float


class Located(NamedTuple):
    """From a focal object to the home of a query: where it is; None: it leaves, and the query ends."""

    query: str
    place: Point | None
    t: float


class Placed(NamedTuple):
    """From the home of a query to its focal object: its place at ``t`` has had its effect."""

    query: str
    t: float


class Known(NamedTuple):
    """From a broker to the others: the latest words of clients."""

    upto: tuple[tuple[str, float], ...]


class Ordered(NamedTuple):
    """From a query's home to a server."""

    query: str
    order: Order


class Answered(NamedTuple):
    """From a server to a query's home."""

    query: str
    answer: Held


class Streamed(NamedTuple):
    """On a channel of a query, to the node of ``successor``."""

    query: str
    successor: str
    channel: ChannelId
    message: Message


class Results(NamedTuple):
    """From a query's home to its focal object."""

    query: str
    results: tuple[Delivered, ...]


_OfRuns = Ordered | Answered | Streamed | Moves | Offered | Covered
Said = Seen | UpTo | Located | Placed | Known | Results | _OfRuns
Sent = tuple[str, Said]
"""To which node, and what."""
