"""A network that stands without a run: it goes down whatever happens to its door."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from orchestrator.lifecycle import standing_network
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.runs.phases import Urgency
from orchestrator.runs.run_directory import RunDirectory

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


class _Fake:
    """A network, its journal, and a user who asks to stop at once."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def up(self) -> None:
        await asyncio.Event().wait()

    async def down(self) -> None:
        self.done.append("down")

    def close(self) -> None:
        self.done.append("closed")

    async def reaches(self, urgency: Urgency) -> None:
        return None


def test_the_network_goes_down_even_if_its_door_cannot_be_closed(tmp_path: Path) -> None:
    fake: Any = _Fake()

    def cannot() -> None:
        raise OSError("the directory cannot be removed")

    async def hold() -> None:
        doors = AsyncExitStack()
        doors.callback(cannot)
        user = cast(Interruption, fake)
        await standing_network._hold(fake, RunDirectory(tmp_path), fake, user, lambda said: None, doors)

    with pytest.raises(OSError, match="cannot be removed"):
        asyncio.run(hold())
    assert fake.done == ["down", "closed"]
