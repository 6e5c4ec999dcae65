"""The sending end of one connection that is open: batches within the receiver's credit."""

import asyncio
from collections.abc import Sequence
from typing import Any, Generic

from node_agent.ports import ConnectionLost
from node_agent.transport.authentication import Digests
from node_agent.transport.codec import Codec, DetailsT, ItemT, MessageT
from node_agent.transport.connection import Connection
from node_agent.transport.credit import Allowance
from node_agent.transport.errors import FrameError, TooLarge
from node_agent.transport.framing import fitting
from node_agent.transport.limits import ConnectionLimits
from node_agent.transport.messages import Welcome

MOST_ITEMS, MOST_BYTES = 65_536, 64 * 1024 * 1024
"""What a sender has under way at most, however much the receiver allows: it remembers all of it."""


class SendingSession(Generic[ItemT, DetailsT, MessageT]):
    """A connection, and how much may still be sent over it."""

    def __init__(
        self,
        connection: Connection[Any, MessageT],
        welcome: Welcome,
        codec: Codec[ItemT, DetailsT, Any, MessageT],
        limits: ConnectionLimits,
        digests: Digests,
    ) -> None:
        self.connection = connection
        window = min(welcome.items, MOST_ITEMS)
        self.allowance: Allowance[ItemT] = Allowance(window, min(welcome.bytes, MOST_BYTES))
        self._sizes, self._pack, self._digest = codec.sizes, codec.pack, digests.of
        # While one batch is being taken, others should be on their way.
        self._most = max(1, min(limits.batch_items, window // 4))
        self._most_bytes = limits.batch_bytes
        self.began = asyncio.get_running_loop().time()
        self._changed = asyncio.Event()
        self._over = False

    async def room(self) -> None:
        """Wait until at least one item may be sent. Raise ConnectionLost."""
        while True:
            await self.connection.drained()
            if self.allowance.left > 0:
                return
            self._changed.clear()
            await self._changed.wait()
            if self._over:
                raise ConnectionLost("the connection broke while it waited for the receiver")

    def hand_over(self, items: Sequence[ItemT], details: DetailsT | None) -> int:
        """Send the first of ``items`` in one frame. Return how many. Raise TooLarge, ConnectionLost."""
        most = min(self._most, self.allowance.left)
        batch = items[:most]
        sizes = self._sizes(batch)
        count = fitting(sizes, min(self._most_bytes, self.allowance.bytes_left))
        while True:
            batch, sizes = batch[:count], sizes[:count]
            try:
                header, attachments = self._pack(batch, sizes, self._digest, details)
                self.connection.post_batch(header, attachments)
            except FrameError as error:  # items of very many parts
                if count == 1:
                    raise TooLarge(str(error)) from error
                count //= 2
                continue
            self.allowance.sent(batch, sizes)
            return count

    def taken(self, count: int) -> None:
        """The receiver says that it has taken ``count`` items. Raise FrameError if it cannot have."""
        self.allowance.taken(count)
        self._changed.set()

    def end(self) -> None:
        self._over = True
        self.connection.abort()
        self._changed.set()
