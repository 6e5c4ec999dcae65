"""The messages of brokers and clients as the transport carries them: numbered, each once, in order.

A receiver that lacks the number before an item takes nothing and says what it has. So nothing is lost if a
connection breaks and another one takes its place.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.mcep.claims import Claims
from node_agent.apps.mcep.messages import Results, Said
from node_agent.apps.mcep.packed import MOST_BYTES
from node_agent.model.checked import Whole
from node_agent.transport.codec import Codec, plain_codec
from node_agent.transport.errors import Impossible
from node_agent.transport.framing import ITEM_OVERHEAD
from node_agent.transport.messages import Pair

VERSION = 1
MOST_RESULTS = 100
"""Of one message."""


class Item(Struct, frozen=True, array_like=True):
    """``said``: a message, as ``wire`` writes it."""

    number: Whole
    said: Annotated[bytes, Meta(max_length=MOST_BYTES)]


class Items(Struct, frozen=True, array_like=True, tag="items"):
    items: tuple[Item, ...]


class Have(Struct, frozen=True, array_like=True, tag="have"):
    """The receiver has taken all messages up to ``number``. ``again``: it lacks those after it."""

    number: Whole
    again: bool = False


def _sizes(items: Sequence[Item]) -> list[int]:
    return [len(item.said) + ITEM_OVERHEAD for item in items]


CODEC: Codec[Item, None, Items, Have] = plain_codec(VERSION, Items, Have, _sizes)


def pieces(said: Said) -> Iterator[Said]:
    """A message in parts that fit into frames."""
    if isinstance(said, Results) and len(said.results) > MOST_RESULTS:
        for begin in range(0, len(said.results), MOST_RESULTS):
            yield Results(said.query, said.results[begin : begin + MOST_RESULTS])
    else:
        yield said


class NodeAdmission:
    """Brokers take connections of brokers and clients; clients those of their queries' homes."""

    def __init__(self, node: str, claims: Claims) -> None:
        self._node, self._claims = node, claims

    def refusal(self, pair: Pair, node: str) -> str | None:
        if pair.receiver != self._node:
            return "receiver"
        return None if pair.sender == node and self._claims.may_connect(node) else "sender"

    def expected(self, node: str) -> int:
        return int(self._claims.may_connect(node))

    def checks(self, pair: Pair) -> "_Checks":
        return _Checks(pair.sender)


class _Checks:
    """What a batch says is checked when it is taken."""

    def __init__(self, sender: str) -> None:
        self._sender = sender

    def check_batch(self, batch: Items) -> None:
        if any(item.number < 1 for item in batch.items):
            raise Impossible(f"{self._sender} numbers messages from 1 on")

    def check_message(self, message: Have) -> None:
        raise Impossible(f"{self._sender} said what is for the receiver to say")
