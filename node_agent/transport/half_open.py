"""Bounds the connections that have not completed their greeting. Strangers cannot displace peers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from node_agent.ports import Stream

PER_PEER = 8
STRANGERS = 16
IN_ALL = 128

Task = asyncio.Task[None]


class _HalfOpen(NamedTuple):
    """``source``: the host, if it is a peer's; all strangers together are one source.

    ``node``: the node that sent a genuine hello; None before it. A silent connection cannot displace it.
    """

    source: str | None
    stream: Stream
    node: str | None = None


class HalfOpen:
    """Keeps the newest half-open connections, since they are the likeliest to complete; ends the oldest.

    ``peers``: the hosts of the other nodes. ``expected``: how many connections each node may open at once.
    ``on_evicted`` is called with the host of a connection that had to make room.
    """

    def __init__(
        self,
        peers: Mapping[str, str],
        expected: Callable[[str], int],
        on_evicted: Callable[[str], None],
    ) -> None:
        self._of_node = {node: max(PER_PEER, expected(node)) for node in peers}
        self._of_host: dict[str, int] = {}
        for node, host in peers.items():  # nodes may share a host
            self._of_host[host] = self._of_host.get(host, 0) + self._of_node[node]
        self._on_evicted = on_evicted
        self._open: dict[Task, _HalfOpen] = {}

    def __len__(self) -> int:
        return len(self._open)

    def is_peer(self, host: str) -> bool:
        return host in self._of_host

    def nodes(self) -> list[str]:
        """The nodes of those whose hello was genuine."""
        return [each.node for each in self._open.values() if each.node is not None]

    def enter(self, task: Task, stream: Stream) -> None:
        """``task`` serves a new connection."""
        host = stream.peer.host
        source = host if host in self._of_host else None
        silent = {other: entry for other, entry in self._open.items() if entry.node is None}
        same = [other for other, entry in silent.items() if entry.source == source]
        if len(same) >= self._of_host.get(host, STRANGERS):
            self._evict(same[0])
        elif len(silent) >= max(IN_ALL, sum(self._of_host.values())):
            self._evict(next(iter(silent)))
        self._open[task] = _HalfOpen(source, stream)
        task.add_done_callback(self.leave)

    def has_greeted(self, task: Task, node: str) -> None:
        """The hello was genuine. It may still be somebody's recording, so these are bounded as well."""
        same = [other for other, entry in self._open.items() if entry.node == node]
        if len(same) >= self._of_node.get(node, PER_PEER):
            self._evict(same[0])
        if (entered := self._open.pop(task, None)) is not None:
            self._open[task] = entered._replace(node=node)

    def leave(self, task: Task) -> None:
        """The greeting is complete, or the connection has ended. May be repeated."""
        self._open.pop(task, None)

    def _evict(self, task: Task) -> None:
        stream = self._open.pop(task).stream
        task.cancel()
        stream.abort()  # a task that is cancelled before its first step runs no clean-up
        self._on_evicted(stream.peer.host)
