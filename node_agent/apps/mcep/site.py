"""A broker as its parts see it: its name, the other brokers, its storage, and how to send."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from node_agent.apps.mcep.execution import Execution
from node_agent.apps.mcep.geometry import Box, Region
from node_agent.apps.mcep.messages import Said
from node_agent.apps.mcep.model import Query
from node_agent.apps.mcep.moving.messages import Happened
from node_agent.apps.mcep.storage import Storage
from node_agent.migration.reservations import Reservations


class Operators(Protocol):
    def operator(self, query: Query, name: str) -> Execution | None:
        """An operator that runs in another way than alone; None: it runs alone."""
        ...


@dataclass
class Site:
    """``arrived``: up to which time all events are there. ``refused``: how many
    messages came from somebody without the right to send them, or at the wrong time."""

    name: str
    servers: tuple[str, ...]
    storage: Storage
    send: Callable[[str, Said], None]
    arrived: Callable[[], float]
    now: Callable[[], float] = lambda: 0.0
    """About which time it is, as clients say."""
    happened: Callable[[Happened], None] = lambda told: None
    """Gets what is worth reporting."""
    boxes: Mapping[str, Box] = field(default_factory=dict)
    """The areas of brokers, or boxes around them."""
    rooms: Reservations = field(default_factory=Reservations)
    """What operators have reserved here."""
    refused: int = 0
    sharing: Operators | None = None

    def count(self, types: Iterable[str], regions: Iterable[Region], since: float, before: float) -> int:
        """Events of these types in this broker's area that lie inside all of these regions."""
        inside = tuple(regions)
        return sum(self.storage.count(each, inside, since, before) for each in types)
