"""A program that was killed on another machine is said to have been killed, not to be out of reach."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orchestrator.backends.core.driver_client import CoreDriver, CoreError
from orchestrator.ssh.command import SIGNALLED


class Ended:
    """A remote process that has ended with this status; None: the connection was lost."""

    def __init__(self, status: int | None) -> None:
        self.reader = asyncio.StreamReader()
        self.reader.feed_eof()
        self.writer = self
        self._status = status

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...

    async def wait(self) -> int | None:
        return self._status


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (SIGNALLED, "CORE's driver was killed by a signal"),
        (137, "CORE's driver was killed by SIGKILL"),
        (1, "CORE's driver ended with status 1"),
        (None, "CORE's host is lost: the connection to it broke"),
    ],
)
def test_how_cores_driver_ended(status: int | None, told: str, tmp_path: Path) -> None:
    async def ask() -> None:
        process: Any = Ended(status)
        await CoreDriver(process, "python3", tmp_path / "driver.log").hello()

    with pytest.raises(CoreError) as error:
        asyncio.run(ask())
    assert str(error.value) == told
