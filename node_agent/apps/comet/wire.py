"""The messages between neighbours, as the transport carries them.

Each item names the last number that was sent before it. A receiver that lacks that number takes nothing and
says what it has: so nothing is lost if a connection breaks and another takes its place unnoticed.
"""

from collections.abc import Sequence

from msgspec import Struct

from node_agent.apps.comet.claims import refusal
from node_agent.apps.comet.messages import Carry, Heard, Marks, Message, Received
from node_agent.apps.comet.node_plan import NodePlan, StoreLimits
from node_agent.model.checked import Whole
from node_agent.transport.codec import Codec, plain_codec
from node_agent.transport.errors import Impossible
from node_agent.transport.framing import ITEM_OVERHEAD
from node_agent.transport.messages import Pair

VERSION = 1


class Item(Struct, frozen=True, array_like=True):
    """``number``: of a message; 0: marks, which are not kept. ``previous``: see above.

    ``content``: what an instance weighs.
    """

    number: Whole
    previous: Whole
    message: Message | Marks
    content: bytes = b""


class Items(Struct, frozen=True, array_like=True, tag="items"):
    items: tuple[Item, ...]


class Have(Struct, frozen=True, array_like=True, tag="have"):
    """The receiver has all messages up to ``number``. ``again``: it lacks those after it."""

    number: Whole
    again: bool = False


def item_of(number: int, previous: int, message: Message, limits: StoreLimits) -> Item:
    full = isinstance(message, Carry) and not message.hollow
    return Item(number, previous, message, bytes(limits.event) if full else b"")


def size_of(item: Item) -> int:
    return len(item.content) + ITEM_OVERHEAD


def _sizes(items: Sequence[Item]) -> list[int]:
    return [size_of(item) for item in items]


CODEC: Codec[Item, None, Items, Have] = plain_codec(VERSION, Items, Have, _sizes)


class NeighbourAdmission:
    """Neighbours of the plan may connect, each once, and say what they can know."""

    def __init__(self, plan: NodePlan) -> None:
        self._plan = plan

    def refusal(self, pair: Pair, node: str) -> str | None:
        if pair.receiver != self._plan.node:
            return "receiver"
        return None if pair.sender == node and node in self._plan.neighbours else "sender"

    def expected(self, node: str) -> int:
        return int(node in self._plan.neighbours)

    def checks(self, pair: Pair) -> "_Checks":
        return _Checks(self._plan, pair.sender)


class _Checks:
    def __init__(self, plan: NodePlan, neighbour: str) -> None:
        self._plan = plan
        self._neighbour = neighbour

    def check_batch(self, batch: Items) -> None:
        for item in batch.items:
            said: Received | Heard
            if isinstance(item.message, Marks):
                said = Heard(0.0, self._neighbour, item.message)
                wrong = "number" if item.number else refusal(self._plan, said)
            else:
                said = Received(0.0, self._neighbour, item.number, item.message)
                wrong = refusal(self._plan, said)
            if wrong is not None:
                raise Impossible(f"{self._neighbour} cannot say this: {wrong}")

    def check_message(self, message: Have) -> None:
        raise Impossible(f"{self._neighbour} said what is for the receiver to say")
