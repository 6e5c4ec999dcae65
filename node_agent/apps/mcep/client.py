"""A mobile client: sends what its sensors see to the broker of the place, says how far it is, gets results.

Each event goes to the broker in whose area it occurred. Up to which time all has arrived is said to the
broker of the place where the client is, and only after older brokers have acknowledged their part. A focal
object tells its places one after the other, and says nothing of the time after a place before that place
has had its effect. So the interest switches when the object was there, however long messages take.
"""

import math
from collections import deque
from collections.abc import Mapping

from node_agent.apps.mcep.areas import Areas
from node_agent.apps.mcep.delivery import Delivered
from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.messages import Located, Placed, Results, Said, Seen, Sent, UpTo
from node_agent.apps.mcep.model import Event, Value, atomic
from node_agent.apps.mcep.progress import GONE


class Client:
    """``homes``: for each query whose focal object this is, the broker that moves its interest."""

    def __init__(self, name: str, areas: Areas, homes: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.results: list[tuple[str, Delivered]] = []
        self.handovers = 0
        self.refused = 0
        self._areas, self._homes = areas, dict(homes or {})
        self._leaf: str | None = None
        self._asked: tuple[Point, str] | None = None
        """The last place whose broker was looked for, and the broker."""
        self._seq = 0
        self._said = -math.inf
        self._unacknowledged: dict[str, deque[tuple[int, float]]] = {}
        """By broker: number and time of events under way."""
        self._places: dict[str, deque[tuple[Point | None, float]]] = {query: deque() for query in self._homes}
        """By query: places that have not had their effect; the first one is under way."""

    @property
    def told(self) -> float:
        """Up to which time it has said that all has arrived."""
        return self._said

    @property
    def seen(self) -> int:
        return self._seq

    @property
    def unplaced(self) -> int:
        """Places that have not had their effect."""
        return sum(map(len, self._places.values()))

    @property
    def leaf(self) -> str | None:
        return self._leaf

    def see(
        self, type: str, t: float, place: Point, attributes: Mapping[str, Value]
    ) -> tuple[Event, list[Sent]]:
        """A sensor saw something. Times never decrease."""
        event = atomic(type, t, place, self._seq, self.name, attributes)
        self._seq += 1
        broker = self._leaf_of(place)
        waiting = self._unacknowledged.get(broker)
        if waiting is None:
            waiting = self._unacknowledged[broker] = deque()
        waiting.append((event.seq, t))
        return event, [(broker, Seen((event,)))]

    def move(self, place: Point, t: float) -> list[Sent]:
        """The client is at a place now, and has told all that it saw before ``t``."""
        leaf = self._leaf_of(place)
        if self._leaf is not None and leaf != self._leaf:
            self.handovers += 1
        self._leaf = leaf
        return self._tell_place(place, t) + self.tell(t)

    def _leaf_of(self, place: Point) -> str:
        """A client mostly sees something where it is: the same place is asked for twice."""
        if self._asked is None or self._asked[0] != place:
            self._asked = place, self._areas.leaf(place)
        return self._asked[1]

    def leave(self, t: float) -> list[Sent]:
        """It sees nothing more, and its queries end. Call ``tell(GONE)`` until all is acknowledged."""
        return self._tell_place(None, t) + self.tell(GONE)

    def _tell_place(self, place: Point | None, t: float) -> list[Sent]:
        out: list[Sent] = []
        for query, places in self._places.items():
            places.append((place, t))
            if len(places) == 1:
                out.append((self._homes[query], Located(query, place, t)))
        return out

    def acknowledged(self, broker: str, upto: int) -> None:
        """The broker has all of this client's events to it with numbers up to this one."""
        waiting = self._unacknowledged.get(broker)
        while waiting and waiting[0][0] <= upto:
            waiting.popleft()

    def receive(self, sender: str, said: Said) -> list[Sent]:
        match said:
            case Results(query, results) if self._homes.get(query) == sender:
                self.results += [(query, each) for each in results]
            case Placed(query, t) if self._homes.get(query) == sender and self._is_under_way(query, t):
                places = self._places[query]
                places.popleft()
                return [(sender, Located(query, *places[0]))] if places else []
            case _:
                self.refused += 1
        return []

    def _is_under_way(self, query: str, t: float) -> bool:
        places = self._places[query]
        return bool(places) and places[0][1] == t

    def tell(self, t: float) -> list[Sent]:
        """It saw nothing else before ``t``."""
        if self._leaf is None:
            return []
        upto = t
        for broker, waiting in self._unacknowledged.items():
            if waiting and waiting[0][1] < upto and broker != self._leaf:
                upto = waiting[0][1]
        for places in self._places.values():
            if places and places[0][1] < upto:
                upto = places[0][1]
        if not upto > self._said:
            return []
        self._said = upto
        return [(self._leaf, UpTo(upto))]
