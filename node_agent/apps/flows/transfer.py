"""The source's state of a TCP flow: what is due, what is written, what the sink has. Pure: time is handed in.

A chunk is kept until the sink has acknowledged it. When a connection breaks, the next one goes on with the
first chunk that the sink does not have; its time of sending stays the first one, so that its delay includes
the outage.
"""

from collections import deque

from node_agent.apps.flows.account import SentAccount
from node_agent.apps.flows.model import Flow, Trace
from node_agent.apps.flows.schedule import Period, Schedule, chunk_sizes, periods, schedule
from node_agent.apps.flows.wire import UNKNOWN, Chunk

MOST_WAITING = 10_000
"""Chunks that came due and could not be written yet; what comes due beyond that is skipped."""
MOST_UNACKNOWLEDGED = 4 * 1024 * 1024
"""Bytes that are written and not acknowledged by the sink's application."""


class Transfer:
    def __init__(self, flow: Flow, account: SentAccount, opened_ns: int, trace: Trace | None = None) -> None:
        self._account = account
        self._opened_ns = opened_ns
        self._waiting: deque[Chunk] = deque()
        """Due and not written on this connection."""
        self._written: deque[Chunk] = deque()
        self._written_bytes = 0
        self._sends: Schedule | None = schedule(flow, trace) if flow.paced else None
        self._sizes = chunk_sizes(flow)
        self._periods = periods(flow)
        self._next_send = next(self._sends, None) if self._sends is not None else None
        self._next_size = next(self._sizes, None)
        self._period: Period | None = next(self._periods, None)
        self._acknowledged = 0

    def offer(self, now_ns: int) -> None:
        """Count what has come due since the last call, whether or not it can be written."""
        if self._sends is None:
            return
        while (send := self._next_send) is not None and self._opened_ns + send.at_ns <= now_ns:
            if len(self._waiting) < MOST_WAITING:
                self._queue(self._opened_ns + send.at_ns, send.size)
            else:
                self._account.skipped += 1 + self._sends.skip(now_ns - self._opened_ns + 1)
            self._next_send = next(self._sends, None)

    def next_chunk(self, now_ns: int) -> Chunk | None:
        """What to write next; None: nothing now, ask again at ``wake_ns`` or after an acknowledgement."""
        self.offer(now_ns)
        if self._written_bytes >= MOST_UNACKNOWLEDGED:
            return None
        if not self._waiting and self._sends is None and self._may_send(now_ns):
            assert self._next_size is not None
            self._queue(now_ns, self._next_size)
            self._next_size = next(self._sizes, None)
        if not self._waiting:
            return None
        chunk = self._waiting.popleft()
        self._written.append(chunk)
        self._written_bytes += chunk.size
        return chunk

    def wake_ns(self) -> int | None:
        """When there will be something to write; None: not before an acknowledgement, or never."""
        if self._waiting or self._written_bytes >= MOST_UNACKNOWLEDGED:
            return None
        if self._sends is not None:
            return None if self._next_send is None else self._opened_ns + self._next_send.at_ns
        if self._next_size is None or self._period is None:
            return None
        return self._opened_ns + self._period.begin_ns

    def acknowledge(self, chunks: int) -> bool:
        """The sink has so many chunks in all; False if it cannot have."""
        if not self._acknowledged <= chunks <= self._acknowledged + len(self._written):
            return False
        for _ in range(chunks - self._acknowledged):
            chunk = self._written.popleft()
            self._written_bytes -= chunk.size
            self._account.acknowledged += chunk.size
        self._acknowledged = chunks
        return True

    def reconnected(self, chunks: int) -> int | None:
        """A new connection to a sink that says how many chunks it has: the number of the first one to write.

        None if the sink cannot have as many.
        """
        if not self.acknowledge(self._acknowledged if chunks == UNKNOWN else chunks):
            return None
        self._waiting.extendleft(reversed(self._written))
        self._written.clear()
        self._written_bytes = 0
        return self._acknowledged

    @property
    def has_more(self) -> bool:
        """Whether there is, or will be, something to write."""
        if self._waiting:
            return True
        if self._sends is not None:
            return self._next_send is not None
        return self._next_size is not None and self._period is not None

    @property
    def done(self) -> bool:
        """Whether the sink has everything that there is to send."""
        return not self.has_more and not self._written

    def _may_send(self, now_ns: int) -> bool:
        at = now_ns - self._opened_ns
        while self._period is not None and self._period.end_ns <= at:
            self._period = next(self._periods, None)
        return self._next_size is not None and self._period is not None and self._period.begin_ns <= at

    def _queue(self, at_ns: int, size: int) -> None:
        number, second = self._account.send(at_ns, size)
        self._waiting.append(Chunk(size, number, second, at_ns))
