"""Where an application hands over items for one receiver, on another node or on its own."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

ItemT = TypeVar("ItemT")
SentT = TypeVar("SentT", contravariant=True)


class ItemSender(Protocol[SentT]):
    """Sends items to one receiver. ``OutgoingConnection`` and ``LocalSender`` do."""

    @property
    def answers(self) -> bool:
        """False while the other end is silent or cannot be reached."""
        ...

    def hurry(self) -> None:
        """Try to reach a silent receiver now."""
        ...

    async def ready(self) -> None:
        """Wait until there is room: what gathers until then can be sent at once. Raise PortError."""
        ...

    async def send(self, items: Sequence[SentT]) -> int:
        """Hand over the first of ``items``, at least one, once there is room. Return how many.

        Raise PortError, or TooLarge if no frame can carry the first item. If the call fails or is cancelled,
        no item was handed over.
        """
        ...

    async def close(self) -> None: ...


class LocalSender(Generic[ItemT]):
    """Sends items to a receiver on the same node: ``deliver`` is called, there is no connection."""

    def __init__(self, deliver: Callable[[Sequence[ItemT]], Awaitable[int]]) -> None:
        self._deliver = deliver

    answers = True

    def hurry(self) -> None:
        pass

    async def ready(self) -> None:
        pass

    async def send(self, items: Sequence[ItemT]) -> int:
        return await self._deliver(items)

    async def close(self) -> None:
        pass
