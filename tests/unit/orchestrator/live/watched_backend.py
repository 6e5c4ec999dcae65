"""A backend with nodes elsewhere, as far as somebody who watches it can tell."""

import asyncio
from collections.abc import Sequence
from typing import Any

from node_agent.telemetry.metrics import Sample
from orchestrator.runs.backend import Cursor, NodeNotSeen, NodeOutcome, RemoteRecords, Seen, Status


class WatchedBackend:
    """``files``: by node and ``(boot, index)``. ``pictures``: by node and folder, the stamp and the bytes."""

    def __init__(self, *nodes: str) -> None:
        self.known = nodes
        self.samples: dict[str, tuple[Sample, ...]] = {}
        self.asked: list[str] = []
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.lost: set[str] = set()
        self.hanging: set[str] = set()
        self.files: dict[str, dict[tuple[int, int], bytes]] = {node: {} for node in nodes}
        self.pictures: dict[str, dict[str, tuple[int, bytes]]] = {node: {} for node in nodes}
        self.most = 4

    def seen(self) -> Seen:
        return Seen([NodeOutcome(node, Status.OK) for node in self.known])

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        self.asked.append(node)
        await self.gate.wait()
        if node in self.lost:
            raise NodeNotSeen(f"{node} is\nlost")
        return self.samples.get(node, ())

    def remote_records(self) -> RemoteRecords:
        return self

    def nodes(self) -> Sequence[str]:
        return self.known

    async def tail(self, node: str, cursor: Cursor) -> tuple[Cursor, bytes]:
        self.reads += 1
        if node in self.lost:
            raise NodeNotSeen("lost")
        if node in self.hanging:
            await asyncio.Event().wait()
        files = self.files[node]
        data = files.get(cursor[:2], b"")[cursor.offset : cursor.offset + self.most]
        later = [name for name in sorted(files) if name > cursor[:2]]
        if not data and later:
            return Cursor(*later[0], 0), files[later[0]][: self.most]
        return cursor, data

    def picture_folders(self, node: str) -> Sequence[str]:
        return tuple(self.pictures[node])

    async def picture(self, node: str, folder: str, stamp: int) -> tuple[int, bytes]:
        at, data = self.pictures[node][folder]
        return at, b"" if at == stamp else data

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
