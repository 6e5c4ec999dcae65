"""The messages of the transport itself: greetings and keep-alives. Applications define all others."""

from typing import NamedTuple

from msgspec import Struct

from node_agent.model.checked import Whole


class Pair(NamedTuple):
    """The two endpoints of a connection. The application names them; the transport only compares names.

    ``sender`` opens the connection and sends items; ``receiver`` accepts it.
    """

    sender: str
    receiver: str


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """The first frame of a connection. ``version`` is that of the application's codec.

    It does not name the run: the key that tags it belongs to one run only.
    """

    version: int
    sender: str
    receiver: str

    @property
    def pair(self) -> Pair:
        return Pair(self.sender, self.receiver)


class Welcome(Struct, frozen=True, array_like=True, tag="welcome"):
    """Accepts a hello, and says how much the sender may have under way."""

    items: Whole
    bytes: Whole


class Alive(Struct, frozen=True, array_like=True, tag="alive"):
    """Keep-alive, from both ends. ``taken``: how many items of this connection the receiver has taken."""

    taken: Whole = 0
