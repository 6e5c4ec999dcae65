"""Sends a run's own files to a node."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator.deployment.contents import Entry
from orchestrator.deployment.deploy import Deployed, ask
from orchestrator.deployment.layers import write_archive
from orchestrator.ssh.connection import TRANSFER_S, Connection

SMALL = 1 << 20
"""Files up to this size go together; larger ones each by itself, and are resumed where they broke off."""
TOGETHER = 16 << 20

Content = bytes | Path


async def put(connection: Connection, deployed: Deployed, place: str, files: Mapping[str, Content]) -> None:
    """Puts files into ``place``, which is made if needed: private, each file whole or absent.

    Raises DiskFull, TransferBroken, Unreachable, CannotDeploy.
    """
    large = {name: file for name, file in files.items() if isinstance(file, Path) and _size(file) > SMALL}
    folders = sorted({name.rpartition("/")[0] for name in large})
    for batch in batches({name: file for name, file in files.items() if name not in large}):
        packed = io.BytesIO()
        digest, _ = write_archive(packed, (Entry(name, content) for name, content in batch.items()))
        order = {"do": "put", "rove": deployed.rove, "place": place, "folders": folders, "digest": digest}
        await ask(connection, deployed.python, order, TRANSFER_S, packed.getvalue())
    for name, file in large.items():
        await connection.upload(file, f"{place}/{name}")


def batches(files: Mapping[str, Content]) -> Iterator[dict[str, Content]]:
    """Groups files into at least one batch, none too large for memory."""
    batch: dict[str, Content] = {}
    size = 0
    for name, content in files.items():
        if batch and size + _size(content) > TOGETHER:
            yield batch
            batch, size = {}, 0
        batch[name] = content
        size += _size(content)
    yield batch


def _size(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size
