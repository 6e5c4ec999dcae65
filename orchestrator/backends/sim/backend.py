"""The orchestrator's side of a simulated run: starts the simulator process and speaks its protocol."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from node_agent.model.refusals import Refusal
from node_agent.telemetry.metrics import Sample
from orchestrator.backends.sim.protocol import Command, Reply
from orchestrator.errors import RoveError
from orchestrator.host_load.processor_wait import waited_for_processor_s
from orchestrator.runs import processes
from orchestrator.runs.backend import NodeNotSeen, Outcomes, Progress, Seen
from orchestrator.runs.journal import Journal
from orchestrator.runs.manifest import SETTLED

GRACE_S = 5.0


class SimulatorFailed(RoveError):
    """The simulator process died or reported an error."""


class SimBackend:
    """One simulator process for one run; it reads the run's spec.yaml and writes into the run directory."""

    def __init__(self, run_id: str, directory: Path, journal: Journal) -> None:
        self._run_id = run_id
        self._directory = directory
        self._journal = journal
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = directory / "tmp" / "simulator.stderr"
        self._last_id = 0
        self._now_ns = 0
        self._outcomes: Outcomes = ()
        self._settled_s: float | None = None

    def now_ns(self) -> int:
        return self._now_ns

    def waited_s(self) -> float:
        """Virtual time does not pass while the simulator waits for a processor."""
        process = self._process
        if process is None or process.returncode is not None:
            return 0.0
        return waited_for_processor_s(process.pid)

    async def up(self, progress: Progress) -> Outcomes:
        intent = self._journal.intend("process", mark=self._run_id, what="simulator")
        self._stderr.parent.mkdir(parents=True, exist_ok=True)
        with self._stderr.open("wb") as stderr:
            # A session of its own: Ctrl-C goes to the orchestrator only, which stops the simulator in order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "orchestrator.backends.sim.worker",
                str(self._directory),
                self._run_id,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **processes.mark(self._run_id, self._directory)},
                start_new_session=True,
            )
        self._journal.done(intent, pid=self._process.pid)
        return await self._ask("up")

    async def converge(self) -> Outcomes:
        return await self._ask("converge")

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        try:
            return await self._ask("advance", seconds, progress)
        except asyncio.CancelledError:
            with suppress(OSError):
                self._send(Command(self._last_id, "interrupt"))
            raise

    def seen(self) -> Seen:
        return Seen(self._outcomes)

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        raise NodeNotSeen(f"{node} lives in virtual time, where nobody can ask it anything")

    def remote_records(self) -> None:
        return None

    async def stop(self) -> Outcomes:
        return await self._ask("stop")

    async def collect(self, into: Path) -> Outcomes:
        """Reports which nodes left telemetry; the simulator has written it in place."""
        return await self._ask("collect")

    def doubts(self) -> Sequence[str]:
        return ()  # virtual time is never late

    def refusals(self) -> Sequence[Refusal]:
        return ()

    def facts(self) -> Mapping[str, Any]:
        return {SETTLED: self._settled_s}

    async def down(self) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        self._process = None

    def _send(self, command: Command) -> None:
        if self._process is None or self._process.stdin is None:
            raise SimulatorFailed("the simulator is not running")
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")

    async def _ask(self, do: str, seconds: float = 0.0, progress: Progress | None = None) -> Outcomes:
        self._last_id += 1
        self._send(Command(self._last_id, do, seconds))
        assert self._process is not None and self._process.stdout is not None
        while line := await self._process.stdout.readline():
            reply = msgspec.json.decode(line, type=Reply)
            self._now_ns = reply.now_ns
            if reply.id != self._last_id:
                continue  # part of an answer that was given up
            if reply.error:
                raise SimulatorFailed(reply.error)
            if reply.done:
                self._outcomes = reply.outcomes
                self._settled_s = reply.settled_s if do == "converge" else self._settled_s
                return reply.outcomes
            if progress is not None:
                progress(reply.progress)
        raise SimulatorFailed(f"the simulator ended during {do}: {self._last_error()}")

    def _last_error(self) -> str:
        with suppress(OSError):
            lines = self._stderr.read_text(errors="replace").strip().splitlines()
            if lines:
                return lines[-1]
        return "it left no message"
