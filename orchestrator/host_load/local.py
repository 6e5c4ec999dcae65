"""Runs the load probe on this machine for the time of a run."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from node_agent.model.host_load import FILE

_BEGIN_S = 20.0
_LOOK_S = 0.02
_END_S = 5.0
MODULE = "node_agent.host.load_probe"


class HostWatch:
    """Runs the probe as a process of its own: threads of the
    orchestrator would delay each other. Must be closed."""

    def __init__(self, process: "subprocess.Popen[bytes]", file: Path) -> None:
        self._process = process
        self._file = file

    @classmethod
    def start(cls, directory: Path, environment: Mapping[str, str], group: Path | None) -> "HostWatch":
        """Samples go to ``host.jsonl`` in ``directory``. ``environment``: the run's mark."""
        options = [] if group is None else ["--group", str(group)]
        with (directory / FILE).open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE, *options],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        return cls(process, directory / FILE)

    async def begun(self) -> None:
        """Waits, with a limit, until the probe measures: it cannot see changes of the clock before that."""
        with suppress(TimeoutError, OSError):
            await asyncio.wait_for(self._first_sample(), _BEGIN_S)

    async def _first_sample(self) -> None:
        while self._process.poll() is None and not self._file.stat().st_size:  # noqa: ASYNC110 - a file
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Ends the probe. May be repeated."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
