"""Runs the load probe on another machine for the time of a run; its samples arrive over SSH."""

import asyncio
from contextlib import suppress
from pathlib import Path

from node_agent.model.host_load import FILE, LONGEST_LINE
from orchestrator.deployment.deploy import Deployed
from orchestrator.host_load.local import MODULE
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.process import RemoteProcess

_MOST_BYTES = 256 * 1024 * 1024
"""More than a week of samples."""


class RemoteHostWatch:
    """Must be closed. If the connection is lost, the samples end, and the missing time is a doubt."""

    def __init__(self, process: RemoteProcess, directory: Path) -> None:
        self._process = process
        self._writing = asyncio.create_task(self._write(directory / FILE), name="host load")

    @classmethod
    async def start(
        cls, connection: Connection, deployed: Deployed, directory: Path, log: Path
    ) -> "RemoteHostWatch":
        """Samples go to ``host.jsonl`` in ``directory``; the probe's standard error goes to ``log``."""
        return cls(await connection.start(deployed.command(MODULE), stderr=log), directory)

    async def close(self) -> None:
        """Ends the probe. May be repeated."""
        await self._process.close()
        self._writing.cancel()
        await asyncio.wait([self._writing])

    async def _write(self, path: Path) -> None:
        left = _MOST_BYTES
        with suppress(OSError, ValueError), path.open("ab") as file:  # ValueError: a line without end
            while left > 0 and (line := await self._process.reader.readline()):
                file.write(line[:LONGEST_LINE])
                file.flush()
                left -= len(line)
