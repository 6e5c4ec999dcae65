"""Speaks the agents' protocol as an attacker: greetings and frames with whatever keys it has.

It is the only file of the siege that knows how keys and tags are made.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from node_agent.apps.dataflow.wire.messages import PROTOCOL_VERSION
from node_agent.apps.dataflow.wire.notices import VERSION
from node_agent.ports import Stream
from node_agent.transport.authentication import (
    ID_SIZE,
    NONCE_SIZE,
    TAG_SIZE,
    Credentials,
    DatagramSeal,
    DirectedKey,
    Seal,
    hello_seal,
    session_seals,
)
from node_agent.transport.errors import FrameError
from node_agent.transport.framing import PRELUDE_SIZE
from node_agent.transport.greeting import PROOF_SIZE, hello_frame, read_hello, read_welcome
from node_agent.transport.keys import app_keys, keys_of
from node_agent.transport.messages import Hello, Pair, Welcome

RUN = "siege"
APP = "query"
SECRET = bytes(range(32))
EPOCH = b"epoch of"
"""The epoch of the attacker."""
_encode = msgspec.msgpack.Encoder().encode


class Refused(Exception):
    """The other end did not accept our identity."""


class Session(NamedTuple):
    """The seals of an open connection."""

    sending: Seal
    receiving: Seal


def key_settings(node: str, nodes: tuple[str, ...], secret: bytes = SECRET) -> dict[str, Any]:
    """Returns the arguments of an AgentConfig that hold the keys of ``node``."""
    return {"keys": keys_of(secret, RUN, node, nodes)}


def directed_key(node: str, to: str, nodes: tuple[str, ...]) -> DirectedKey:
    return Credentials(RUN, node, app_keys(keys_of(SECRET, RUN, node, nodes), APP)).to(to, "connection")


class Speaker:
    """Speaks as ``node``, with its own keys of run ``run``, made from ``secret``."""

    def __init__(self, node: str, nodes: tuple[str, ...], run: str = RUN, secret: bytes = SECRET) -> None:
        self.node = node
        self._keys = keys_of(secret, run, node, nodes)
        self._own = Credentials(run, node, app_keys(self._keys, APP))

    def hello(self, to: str, pair: Pair, nonce: bytes) -> bytes:
        return hello_frame(self._own.to(to, "connection"), Hello(PROTOCOL_VERSION, *pair), nonce)

    def hello_of(self, to: str, body: bytes, nonce: bytes) -> bytes:
        """Returns any body under a genuine tag."""
        key = self._own.to(to, "connection")
        return greeting(key.id, body, nonce, hello_seal(key))

    async def open(self, stream: Stream, to: str, pair: Pair, nonce: bytes) -> Session:
        """Greets as the opener. Raises Refused, or what the stream raises."""
        hello = self.hello(to, pair, nonce)
        stream.put(hello)
        try:
            welcomed = await read_welcome(stream, self._own.to(to, "connection"), hello)
        except FrameError as error:
            raise Refused(str(error)) from error
        return Session(welcomed.sending, welcomed.receiving)

    async def accept(self, stream: Stream, nonce: bytes, body: bytes | None = None) -> Session:
        """Greets as the acceptor, with a welcome of any ``body``. Raises like ``open``."""
        try:
            introduced = await read_hello(stream, self._own.incoming("connection"))
        except FrameError as error:
            raise Refused(str(error)) from error
        opener, acceptor = session_seals(introduced.key, introduced.frame, nonce)
        said = _encode(Welcome(32, 65536)) if body is None else body
        stream.put(greeting(introduced.key.id, said, nonce, acceptor))
        return Session(acceptor, opener)

    def datagram(self, to: str, data: bytes) -> bytes:
        key = self._own.to(to, "datagram")
        return key.id + DatagramSeal(key).tag(data) + data

    def keys_by(self, hosts: Mapping[str, str]) -> dict[str, bytes]:
        """Returns the keys of this node, by the others' addresses."""
        return {hosts[node]: key for node, key in self._keys.items() if node in hosts}

    def epoch_in(self, datagram: bytes) -> bytes:
        """Returns the epoch of the node that sent the datagram; empty if it is not such a datagram."""
        if datagram[:ID_SIZE] not in self._own.incoming("datagram"):
            return b""
        packet = msgspec.msgpack.decode(datagram[ID_SIZE + TAG_SIZE :])
        return bytes(packet[1])


def welcome_body() -> Any:
    """Returns the body as a list, which can be changed."""
    return ["welcome", 32, 65536]


def hello_body(pair: Pair) -> Any:
    return ["hello", PROTOCOL_VERSION, *pair]


def notice_packet(to_epoch: bytes, notices: list[Any]) -> Any:
    return [VERSION, EPOCH, to_epoch, notices]


def greeting(key_id: bytes, body: bytes, nonce: bytes, seal: Seal) -> bytes:
    """Builds a greeting of any length and for any key: length, the key's name, nonce, tag, body."""
    head = (len(body) & 0xFFFF).to_bytes(2, "big") + key_id + nonce
    return head + seal.tag(head, body) + body


def frame(head: bytes, seal: Seal) -> bytes:
    prelude = len(head).to_bytes(PRELUDE_SIZE, "big")
    return prelude + seal.tag(prelude, head) + head


__all__ = ["ID_SIZE", "NONCE_SIZE", "PROOF_SIZE", "RUN", "SECRET", "Refused", "Session", "Speaker"]
