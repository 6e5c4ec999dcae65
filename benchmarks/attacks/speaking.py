"""Speaks the agents' protocol as an attacker does: greetings and frames with whatever keys it has.

The only file of the siege that knows how keys and tags are made.
"""

from typing import Any, NamedTuple

import msgspec

from node_agent.ports import Stream
from node_agent.transport.authentication import (
    TAG_SIZE,
    Credentials,
    Seal,
    Stamp,
    hello_seal,
    session_seals,
)
from node_agent.transport.framing import MAX_GREETING, PRELUDE_SIZE, decode_greeting
from node_agent.transport.messages import PROTOCOL_VERSION, Hello, Pair, Welcome

RUN = "siege"
SECRET = bytes(range(32))
_START = PRELUDE_SIZE + TAG_SIZE
_encode = msgspec.msgpack.Encoder().encode


class Refused(Exception):
    """The other end did not take us for whom we claim to be."""


class Session(NamedTuple):
    """The seals of a connection that stands."""

    sending: Seal
    receiving: Seal


def key_settings(node: str, nodes: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of an AgentConfig that hold the keys of ``node``."""
    return {"key": SECRET}


def credentials(node: str, nodes: tuple[str, ...]) -> Credentials:
    return Credentials(RUN, SECRET)


class Speaker:
    """``node``'s voice: with its own keys of run ``run``, made from ``secret``."""

    def __init__(self, node: str, nodes: tuple[str, ...], run: str = RUN, secret: bytes = SECRET) -> None:
        self.node = node
        self._run = run
        self._key = secret

    def hello(self, to: str, pair: Pair, nonce: bytes) -> tuple[bytes, Hello]:
        """The frame, and what is remembered of it."""
        hello = Hello(PROTOCOL_VERSION, self._run, *pair, nonce)
        return self.hello_of(to, _encode(hello), nonce), hello

    def hello_of(self, to: str, body: bytes, nonce: bytes) -> bytes:
        """Any body under a genuine tag."""
        return frame(body, hello_seal(self._key))

    async def open(self, stream: Stream, to: str, pair: Pair, nonce: bytes) -> Session:
        """Greet as the opener. Raises Refused, or what the stream raises."""
        data, hello = self.hello(to, pair, nonce)
        stream.put(data)
        start = await stream.read_exactly(_START)
        body = await stream.read_exactly(int.from_bytes(start[:PRELUDE_SIZE], "big"))
        welcome = decode_greeting(body)
        if not isinstance(welcome, Welcome):
            raise Refused("it is no welcome")
        session = Session(*session_seals(self._key, hello, welcome.nonce))
        if not session.receiving.genuine(start[:PRELUDE_SIZE], body, start[PRELUDE_SIZE:]):
            raise Refused("the welcome is not for us")
        return session

    async def accept(self, stream: Stream, by: str, nonce: bytes, body: bytes | None = None) -> Session:
        """Greet as the acceptor, with a welcome of any ``body``."""
        start = await stream.read_exactly(_START)
        heard = await stream.read_exactly(int.from_bytes(start[:PRELUDE_SIZE], "big"))
        hello = decode_greeting(heard)
        assert isinstance(hello, Hello)
        opener, acceptor = session_seals(self._key, hello, nonce)
        stream.put(frame(_encode(Welcome(nonce, 32, 65536)) if body is None else body, acceptor))
        return Session(acceptor, opener)

    def datagram(self, to: str, data: bytes) -> bytes:
        return Stamp(Credentials(self._run, self._key)).tag(data) + data


def welcome_body(nonce: bytes) -> Any:
    """As a list, to be changed."""
    return ["welcome", nonce, 32, 65536]


def hello_body(pair: Pair, nonce: bytes) -> Any:
    return ["hello", PROTOCOL_VERSION, RUN, *pair, nonce]


def frame(head: bytes, seal: Seal) -> bytes:
    prelude = len(head).to_bytes(PRELUDE_SIZE, "big")
    return prelude + seal.tag(prelude, head) + head


async def read_frame(stream: Stream) -> bytes:
    """The header of the next frame; its tag is not looked at."""
    start = await stream.read_exactly(_START)
    return await stream.read_exactly(int.from_bytes(start[:PRELUDE_SIZE], "big"))


__all__ = ["MAX_GREETING", "RUN", "SECRET", "Refused", "Session", "Speaker"]
