"""What a ``ConnectionServer`` asks the application: who may connect, and what they may say."""

from typing import Protocol, TypeVar

from node_agent.transport.messages import Pair

BatchT = TypeVar("BatchT", contravariant=True)
MessageT = TypeVar("MessageT", contravariant=True)


class Checks(Protocol[BatchT, MessageT]):
    """Checks what arrives over one connection before the application sees it."""

    def check_batch(self, batch: BatchT) -> None:
        """Raise Impossible if the sender cannot have these items."""
        ...

    def check_message(self, message: MessageT) -> None:
        """Raise Impossible if the sender may not say this."""
        ...


class Admission(Protocol[BatchT, MessageT]):
    """Decides about connections whose greeting is genuine and of the right version."""

    def refusal(self, pair: Pair, node: str) -> str | None:
        """Return one word that says why ``node`` may not connect as ``pair``; None if it may.

        ``node`` has proved its name; the endpoints in ``pair`` are what it claims.
        """
        ...

    def expected(self, node: str) -> int:
        """Return how many connections ``node`` may open at most; so many may be greeting at the same time."""
        ...

    def checks(self, pair: Pair) -> Checks[BatchT, MessageT]:
        """Return the checks of a new connection, which was not refused."""
        ...
