"""The owner's side of the radio process: starts it, receives link costs, asks for its lateness, stops it."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from orchestrator.backends.netns import network
from orchestrator.backends.netns.radio.config import RadioConfig
from orchestrator.backends.netns.radio.lateness import LatenessReport
from orchestrator.backends.netns.radio.protocol import CHANGE, LATENESS, MOVE, REPORT, STOP, Command, Message
from orchestrator.errors import BadInput, RoveError
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.survey import Links

START_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0
_LONGEST_LINE = 1 << 24


class RadioFailed(RoveError):
    """The radio process could not be started, died, or does not answer."""


class RadioProcess:
    """The radio of one network. Costs of ``links`` are expected transmissions until a full-size frame is
    acknowledged (1 = every one is); pairs with fewer than one successful exchange in ten have no link."""

    def __init__(self, on_links: Callable[[Links], None] | None = None) -> None:
        self._on_links = on_links
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._links: Links = {}
        self._last_id = 0
        self._stderr = Path()
        self.origin_ns = 0
        """Model time 0 on the monotonic clock; known once started."""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def check(self) -> None:
        """Raises RadioFailed if the process has ended by itself."""
        # Its exit status may become known only later.
        if self._process is not None and self._listener is not None and self._listener.done():
            raise RadioFailed(f"the radio ended{self._why()}")

    def links(self) -> Links:
        """Returns the true links as of the last mobility tick."""
        return self._links

    async def start(self, config: RadioConfig, descriptors: Mapping[str, int] | None = None) -> None:
        """Returns when frames are carried. ``descriptors`` are those of ``network.up``; the caller must close
        them. Without them the radio opens the ends of a network that no other radio holds."""
        if self._process is not None:
            raise RadioFailed("this radio is started already")
        config.check()
        attached = {} if descriptors is not None else network.attach(config.mark)
        ends = attached if descriptors is None else descriptors
        try:
            if missing := [node for node in config.nodes if node not in ends]:
                raise BadInput(f"the radio has no end of {', '.join(missing)}")
            await self._launch(config, [ends[node] for node in config.nodes])
        finally:
            for descriptor in attached.values():
                os.close(descriptor)

    async def report(self) -> LatenessReport:
        """Returns the lateness so far, up to a second ago."""
        return await self._ask_report(REPORT)

    async def lateness(self) -> LatenessReport:
        """Returns the same without the nodes' queues: cheap enough to be asked for while frames are sent."""
        return await self._ask_report(LATENESS)

    async def change(self, changes: AirChanges) -> None:
        """Lets exactly these changes hold from now on; returns when it is done."""
        await self._ask(CHANGE, changes)

    async def move(self) -> int:
        """Lets nodes that wait begin to move; returns when they do, with the moment (Unix time, ns)."""
        return (await self._ask(MOVE)).now_ns

    async def stop(self) -> LatenessReport:
        """Ends the process in order: the record is complete and ``radio/lateness.json`` is written."""
        try:
            return await self._ask_report(STOP)
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends the process in any case. May be repeated."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._listener is not None:
            await self._listener

    async def _launch(self, config: RadioConfig, descriptors: list[int]) -> None:
        config.place.mkdir(parents=True, exist_ok=True)
        config_file = config.place / "config.json"
        config_file.write_bytes(msgspec.json.encode(config))
        self._stderr = config.place / "stderr.txt"
        with self._stderr.open("wb") as stderr:
            # A session of its own: the terminal's Ctrl-C is for the owner, which stops us in order.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "orchestrator.backends.netns.radio",
                str(config_file),
                ",".join(map(str, descriptors)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **config.mark.environment},
                start_new_session=True,
                pass_fds=descriptors,
                limit=_LONGEST_LINE,
            )
        up: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[0] = up
        self._listener = asyncio.create_task(self._listen(self._process))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                self.origin_ns = (await up).origin_ns or 0
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise RadioFailed(f"the radio was not ready after {START_TIMEOUT_S:g} s") from error
            raise

    async def _ask_report(self, do: str) -> LatenessReport:
        message = await self._ask(do)
        if message.report is None:
            raise RadioFailed(message.error)
        return message.report

    async def _ask(self, do: str, changes: AirChanges = UNCHANGED) -> Message:
        self.check()
        process = self._process
        if process is None or process.stdin is None:
            raise RadioFailed("the radio is not running")
        self._last_id += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        command = Command(self._last_id, do, changes)
        self._answers[command.id] = answer
        try:
            process.stdin.write(msgspec.json.encode(command) + b"\n")
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await answer
        except TimeoutError as error:
            raise RadioFailed(f"the radio did not answer within {ANSWER_TIMEOUT_S:g} s") from error
        finally:
            self._answers.pop(command.id, None)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = msgspec.json.decode(line, type=Message)
            if message.links is not None:
                self._links = message.links
                if self._on_links is not None:
                    self._on_links(message.links)
            elif (answer := self._answers.get(message.id)) is not None and not answer.done():
                answer.set_result(message)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(RadioFailed(f"the radio ended{self._why()}"))

    def _why(self) -> str:
        with suppress(OSError):
            lines = self._stderr.read_text(errors="replace").strip().splitlines()
            if lines:
                return f": {lines[-1]}"
        return ""
