"""The bytes of a flow. Every datagram and every chunk has a header whose tag only the source can make.

A flow has a key of its own, derived from the key that its two nodes share: a stranger can neither make up
packets nor change what they say about themselves. What follows a header is padding; nobody looks at it.

A TCP flow begins with a greeting in three parts: the source names the flow and proves its key, the sink
answers with a nonce and proves it too, and the source proves that it has heard the nonce. So what somebody
recorded of an earlier connection opens no new one. Chunks, and the sink's acknowledgements, are tagged in
their order.
"""

import struct
from typing import NamedTuple

from node_agent.apps.flows.model import LARGEST_CHUNK, SMALLEST
from node_agent.transport.authentication import ID_SIZE, NONCE_SIZE, TAG_SIZE, DatagramSeal, DirectedKey, Seal
from node_agent.transport.keys import derive

_STAMP = struct.Struct("!HIIQ")
"""The source's boot, the packet's number, its second, and when it was sent."""
_CHUNK = struct.Struct("!IQIQ")
"""The chunk's size, its number, its second, and when it was sent."""
_HELLO = struct.Struct(f"!{ID_SIZE}s{NONCE_SIZE}sH")
_ACKNOWLEDGEMENT = struct.Struct("!Q")
_DATA = ID_SIZE + TAG_SIZE
BOOTS = 1 << 16

HEADER = _DATA + _STAMP.size
HELLO_SIZE = _HELLO.size + TAG_SIZE
WELCOME_SIZE = NONCE_SIZE + _ACKNOWLEDGEMENT.size + TAG_SIZE
BEGIN_SIZE = _ACKNOWLEDGEMENT.size + TAG_SIZE
UNKNOWN = 2**64 - 1
"""In a welcome, for the number of chunks: the sink has forgotten, for it was started anew."""
CHUNK_HEADER = _CHUNK.size + TAG_SIZE
ACKNOWLEDGEMENT_SIZE = _ACKNOWLEDGEMENT.size + TAG_SIZE
assert max(HEADER, CHUNK_HEADER) <= SMALLEST

_PADDING = bytes(LARGEST_CHUNK)


class Packet(NamedTuple):
    """What a datagram says of itself."""

    boot: int
    number: int
    second: int
    sent_ns: int


class Chunk(NamedTuple):
    """What is written to a TCP flow in one piece; ``size`` counts its header, too."""

    size: int
    number: int
    second: int
    sent_ns: int


class FlowKey:
    """The key of one flow. ``key`` is the one for the direction from its source to its sink."""

    def __init__(self, key: DirectedKey, flow: str) -> None:
        self._node = key.node
        self._key = derive(key.secret, b"flow", flow.encode())
        self.id = derive(self._key, b"id")[:ID_SIZE]
        self._packets = self._seal(b"packets")
        self._hellos = self._seal(b"hello")

    def __repr__(self) -> str:
        return f"FlowKey({self.id.hex()})"

    def datagram(self, packet: Packet, size: int) -> bytes:
        said = _STAMP.pack(packet.boot % BOOTS, packet.number, packet.second, packet.sent_ns)
        # The size is not in the datagram, for a receiver sees it; but it is under the tag.
        tag = self._packets.tag(said + size.to_bytes(4, "big"))
        return b"".join((self.id, tag, said, memoryview(_PADDING)[: size - HEADER]))

    def read(self, datagram: bytes) -> Packet | None:
        """None if the datagram is not genuine."""
        if len(datagram) < HEADER:
            return None
        said = datagram[_DATA:HEADER]
        if not self._packets.genuine(said + len(datagram).to_bytes(4, "big"), datagram[ID_SIZE:_DATA]):
            return None
        return Packet(*_STAMP.unpack(said))

    def hello(self, nonce: bytes, boot: int) -> bytes:
        said = _HELLO.pack(self.id, nonce, boot % BOOTS)
        return said + self._hellos.tag(said)

    def boot_in(self, hello: bytes) -> int | None:
        """The source's boot; None if the hello is not genuine."""
        said, tag = hello[: _HELLO.size], hello[_HELLO.size :]
        if not self._hellos.genuine(said, tag):
            return None
        boot: int = _HELLO.unpack(said)[2]
        return boot

    def session(self, hello: bytes, nonce: bytes) -> "Session":
        return Session(derive(self._key, b"session", hello + nonce), nonce)

    def _seal(self, purpose: bytes) -> DatagramSeal:
        return DatagramSeal(DirectedKey(self._node, self.id, derive(self._key, purpose)))


class Session:
    """One connection of a TCP flow: what both ends say after the hello. ``nonce``: the sink's."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._nonce = nonce
        self._source = Seal(derive(key, b"source"))
        self._sink = Seal(derive(key, b"sink"))

    def welcome(self, chunks: int) -> bytes:
        """By the sink, which has ``chunks`` chunks of the flow already, or does not know (``UNKNOWN``)."""
        said = self._nonce + _ACKNOWLEDGEMENT.pack(chunks)
        return said + self._sink.tag(said, b"")

    def read_welcome(self, welcome: bytes) -> int | None:
        """How many chunks the sink has already; None if the welcome is not genuine."""
        said, tag = welcome[:-TAG_SIZE], welcome[-TAG_SIZE:]
        if not self._sink.genuine(said, b"", tag):
            return None
        chunks: int = _ACKNOWLEDGEMENT.unpack(said[NONCE_SIZE:])[0]
        return chunks

    def begin(self, first: int) -> bytes:
        """By the source, which goes on with the chunk of that number."""
        said = _ACKNOWLEDGEMENT.pack(first)
        return said + self._source.tag(said, b"")

    def read_begin(self, begin: bytes) -> int | None:
        """The number of the first chunk; None if it is not genuine."""
        said = begin[: _ACKNOWLEDGEMENT.size]
        if not self._source.genuine(said, b"", begin[_ACKNOWLEDGEMENT.size :]):
            return None
        first: int = _ACKNOWLEDGEMENT.unpack(said)[0]
        return first

    def chunk(self, chunk: Chunk) -> tuple[bytes, memoryview]:
        said = _CHUNK.pack(*chunk)
        return said + self._source.tag(said, b""), memoryview(_PADDING)[: chunk.size - CHUNK_HEADER]

    def read_chunk(self, header: bytes) -> Chunk | None:
        """None if it is not the source's next chunk, or of an impossible size."""
        said = header[: _CHUNK.size]
        if not self._source.genuine(said, b"", header[_CHUNK.size :]):
            return None
        chunk = Chunk(*_CHUNK.unpack(said))
        return chunk if CHUNK_HEADER <= chunk.size <= LARGEST_CHUNK else None

    def acknowledgement(self, chunks: int) -> bytes:
        said = _ACKNOWLEDGEMENT.pack(chunks)
        return said + self._sink.tag(said, b"")

    def read_acknowledgement(self, data: bytes) -> int | None:
        said = data[: _ACKNOWLEDGEMENT.size]
        if not self._sink.genuine(said, b"", data[_ACKNOWLEDGEMENT.size :]):
            return None
        chunks: int = _ACKNOWLEDGEMENT.unpack(said)[0]
        return chunks


def nonce_of(welcome: bytes) -> bytes:
    return welcome[:NONCE_SIZE]
