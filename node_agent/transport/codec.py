"""How an application describes its messages to the transport.

An application sends *items* and *messages*. Items go in batches, in order, and count against the receiver's
credit; large parts of them travel as attachments behind the header. Messages are small, need no credit, and
are lost with the connection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from node_agent.model.checked import Checked, Refused
from node_agent.transport.errors import FrameError, Impossible
from node_agent.transport.framing import MAX_HEADER
from node_agent.transport.messages import Alive

ItemT = TypeVar("ItemT")
DetailsT = TypeVar("DetailsT")
BatchT = TypeVar("BatchT")
MessageT = TypeVar("MessageT")

Digest = Callable[[bytes], bytes]
"""The SHA-256 of an attachment."""


Attachment = tuple[int, bytes]
"""Bytes that follow a header: how many, and their SHA-256."""


def _no_attachments(batch: object) -> Sequence[Attachment]:
    return ()


def _unchanged(batch: BatchT, attachments: Sequence[bytes]) -> BatchT:
    return batch


@dataclass(frozen=True)
class Codec(Generic[ItemT, DetailsT, BatchT, MessageT]):
    """The messages of one application. It is a value of functions, so that a batch costs few calls.

    >>> class Orders(Struct, frozen=True, array_like=True, tag="orders"):
    ...     items: Sequence[str]
    >>> class Stop(Struct, frozen=True, array_like=True, tag="stop"):
    ...     pass
    >>> ORDERS = Codec(
    ...     version=1,
    ...     headers=Checked(Alive | Orders | Stop, MAX_HEADER, "msgpack"),
    ...     batch=Orders,
    ...     items=lambda batch: batch.items,
    ...     sizes=lambda items: [len(item) for item in items],
    ...     pack=lambda items, sizes, digest, details: (Orders(items), ()),
    ...     check_answer=lambda message: None,
    ... )

    ``version``: both ends must have the same. ``headers`` decodes every header within bounds: the
    transport's own ``Alive``, ``batch``, and each kind of message; their tags differ.
    """

    version: int
    headers: Checked[Alive | BatchT | MessageT]
    batch: type[BatchT]
    items: Callable[[BatchT], Sequence[ItemT]]
    """The items of a batch."""
    sizes: Callable[[Sequence[ItemT]], list[int]]
    """How many bytes each item counts against the credit. Both ends must count alike."""
    pack: Callable[[Sequence[ItemT], Sequence[int], Digest, DetailsT | None], tuple[BatchT, Sequence[bytes]]]
    """Makes a batch of items, given their sizes, and the attachments that follow it.

    The last argument is what the batch says besides its items, as ``OutgoingConnection.send`` was given it.
    Raises FrameError if the items do not fit into a frame; the transport then tries with fewer of them.
    """
    check_answer: Callable[[MessageT], None]
    """Raises Impossible if the accepting end of a connection may not say this."""
    attachments: Callable[[BatchT], Sequence[Attachment]] = _no_attachments
    """What follows a batch that arrives. Raises FrameError if the batch contradicts itself."""
    attach: Callable[[BatchT, Sequence[bytes]], BatchT] = _unchanged
    """Puts the attachments, whose sizes and digests are right, into the batch."""

    def decode(self, header: bytes) -> Alive | BatchT | MessageT:
        """Raise FrameError, and nothing else, whatever the bytes are."""
        try:
            return self.headers.decode(header)
        except Refused as error:
            raise FrameError(f"the peer sent a malformed header: {error}") from error


def plain_codec(
    version: int,
    batch: Callable[[tuple[ItemT, ...]], BatchT],
    answer: type[MessageT],
    sizes: Callable[[Sequence[ItemT]], list[int]],
) -> Codec[ItemT, None, BatchT, MessageT]:
    """Returns the codec of batches that only have ``items``, without attachments. ``answer``: the one kind of
    message, which the accepting end sends.
    """

    def pack(
        items: Sequence[ItemT], sizes: Sequence[int], digest: Digest, details: object
    ) -> tuple[BatchT, Sequence[bytes]]:
        return batch(tuple(items)), ()

    def check_answer(message: object) -> None:
        if not isinstance(message, answer):
            raise Impossible("the receiver of a connection said what is for its sender to say")

    kinds: Any = Alive | batch | answer
    headers = Checked(kinds, MAX_HEADER, "msgpack")
    return Codec(version, headers, batch, attrgetter("items"), sizes, pack, check_answer)  # type: ignore[arg-type]
