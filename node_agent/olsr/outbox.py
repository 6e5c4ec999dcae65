"""Holds messages until the next HELLO: TC, MID, HNA and forwarded messages are sent in front of it.

They wait no longer than the jitter allows; a full packet is sent at once.
"""

from collections.abc import Sequence

from node_agent.olsr import wire

NEVER = 1 << 62
MOST_MTU = 4096
"""Longer packets are neither sent nor read. No radio has a larger MTU."""
MAX_READY = 64  # packets; a flood is cut beyond that


class Outbox:
    def __init__(self, mtu: int) -> None:
        self.room = min(mtu, MOST_MTU) - 28  # without IP and UDP headers
        self.message_room = self.room - wire.PACKET_HEADER_SIZE - wire.MESSAGE_HEADER_SIZE
        """Length of the longest body of a message."""
        self.due_ns = NEVER
        self._ready: list[list[wire.Message]] = []
        self._filling: list[wire.Message] = []
        self._left = self.room - wire.PACKET_HEADER_SIZE
        self._latest_ns = NEVER

    def put(self, message: wire.Message, latest_ns: int, now: int) -> bool:
        """Returns whether there was room. The message is sent at ``latest_ns`` at the latest."""
        if len(message.body) > self.message_room or len(self._ready) >= MAX_READY:
            return False
        self._append(message)
        if latest_ns < self._latest_ns:
            self._latest_ns = latest_ns
        due_ns = now if self._ready else latest_ns
        if due_ns < self.due_ns:
            self.due_ns = due_ns
        return True

    def take(self, hellos: Sequence[wire.Message], now: int) -> list[list[wire.Message]]:
        """Returns the packets that are due: full ones, those that cannot wait, and
        one for each HELLO, which comes last in it."""
        for hello in hellos:
            self._append(hello)
            self._close()
        if self._latest_ns <= now and self._filling:
            self._close()
        ready, self._ready = self._ready, []
        self.due_ns = self._latest_ns
        return ready

    def _append(self, message: wire.Message) -> None:
        size = wire.MESSAGE_HEADER_SIZE + len(message.body)
        if size > self._left:
            self._close()
        self._filling.append(message)
        self._left -= size

    def _close(self) -> None:
        self._ready.append(self._filling)
        self._filling = []
        self._left = self.room - wire.PACKET_HEADER_SIZE
        self._latest_ns = NEVER
