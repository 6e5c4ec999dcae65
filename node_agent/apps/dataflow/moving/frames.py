"""What roles of migrations say between two nodes, as the transport carries it: numbered parts of envelopes.

A receiver that lacks the number before a part takes nothing and says what it has. So messages arrive once and
in order, however often connections break, as long as both agents live. A session ends when one of them starts
again: what was on its way is lost, which the roles expect.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from node_agent.migration.live.values import Name, Number
from node_agent.migration.live.wire import MOST_BYTES as MOST_CONTENT
from node_agent.model.checked import Checked, Whole
from node_agent.transport.codec import Codec, plain_codec
from node_agent.transport.errors import Impossible
from node_agent.transport.framing import ITEM_OVERHEAD
from node_agent.transport.messages import Pair

VERSION = 1
PART = 64 * 1024
MOST_BYTES = MOST_CONTENT + 4096
BOOTS = 2**32
"""A session's number is the sender's boot times this, and how often it began anew."""


class Envelope(Struct, frozen=True, array_like=True):
    """What ``sender`` says to ``receiver`` about ``operator``; ``content`` as ``migration.live.wire`` writes
    it."""

    operator: Name
    sender: Name
    receiver: Name
    content: Annotated[bytes, Meta(max_length=MOST_CONTENT)]


ENVELOPES: Checked[Envelope] = Checked(Envelope, MOST_BYTES, "msgpack")
encode = msgspec.msgpack.Encoder().encode


class Part(Struct, frozen=True, array_like=True):
    """``more``: the envelope goes on in the next part."""

    session: Whole
    number: Number
    more: bool
    data: Annotated[bytes, Meta(max_length=PART)]


class Parts(Struct, frozen=True, array_like=True, tag="parts"):
    parts: tuple[Part, ...]

    @property
    def items(self) -> tuple[Part, ...]:
        return self.parts


class Have(Struct, frozen=True, array_like=True, tag="have"):
    """The receiver, in its ``boot``, has all parts of the session up to ``number``. ``again``: it lacks those
    after it."""

    boot: Whole
    session: Whole
    number: Whole
    again: bool = False


def _sizes(parts: Sequence[Part]) -> list[int]:
    return [len(part.data) + ITEM_OVERHEAD for part in parts]


CODEC: Codec[Part, None, Parts, Have] = plain_codec(VERSION, Parts, Have, _sizes)


def cut(data: bytes) -> Iterator[tuple[bool, bytes]]:
    """Parts of an envelope: whether more follows, and the bytes."""
    for begin in range(0, len(data), PART):
        yield begin + PART < len(data), data[begin : begin + PART]


class Incoming:
    """What one other node sends: puts envelopes together."""

    def __init__(self) -> None:
        self.session = self.number = 0
        self._held = bytearray()

    def take(self, part: Part) -> tuple[bool, bytes | None]:
        """Returns whether parts are missing before this one, and an envelope if it is complete."""
        if part.session > self.session:
            self.session, self.number = part.session, 0
            self._held.clear()
        if part.session < self.session or part.number <= self.number:
            return False, None
        if part.number > self.number + 1:
            return True, None
        if len(self._held) + len(part.data) > MOST_BYTES:
            raise Impossible(f"a message of more than {MOST_BYTES} bytes")
        self.number = part.number
        self._held += part.data
        if part.more:
            return False, None
        data = bytes(self._held)
        self._held.clear()
        return False, data


class NodeAdmission:
    """``peers``: the nodes that may have something to say."""

    def __init__(self, node: str, peers: frozenset[str]) -> None:
        self._node, self._peers = node, peers

    def refusal(self, pair: Pair, node: str) -> str | None:
        if pair.receiver != self._node:
            return "receiver"
        return None if pair.sender == node and node in self._peers else "sender"

    def expected(self, node: str) -> int:
        return int(node in self._peers)

    def checks(self, pair: Pair) -> "_Checks":
        return _Checks(pair.sender)


class _Checks:
    """What a batch says is checked when it is taken."""

    def __init__(self, sender: str) -> None:
        self._sender = sender

    def check_batch(self, batch: Parts) -> None:
        pass

    def check_message(self, message: Have) -> None:
        raise Impossible(f"{self._sender} said what is for the receiver to say")
