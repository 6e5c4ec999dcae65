"""The orchestrator's end of an agent's control stream, over a socket or an SSH channel."""

import asyncio
import re
from contextlib import suppress
from typing import NamedTuple

from node_agent.agent.control import Command, Report, Request, State
from node_agent.agent.control_lines import encode
from node_agent.model.checked import Checked, Refused
from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line

MOST_REPORT_BYTES = 4 * 1024 * 1024
"""Bytes of one line, which may name all nodes that a node reaches."""
METRICS_S = 3.0
"""How long an agent has to report its metrics."""
MOST_UNASKED = 1000
"""Limit of reports on one stream that answer no request. A few come late, or report failures."""
MOST_PASSED_BYTES = 64 * 1024 * 1024
"""Of one line that is too long."""
_BEGINNING = 64
_ANSWERS = re.compile(rb'\{"id":([1-9][0-9]{0,17}),')
_REPORTS: Checked[Report] = Checked(Report, MOST_REPORT_BYTES)
_NONE = Report(0, State.NEW, False, 0)


class AgentLost(RoveError):
    """The agent did not answer, or its end of the control stream is closed. The message is one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


class AgentRefused(AgentLost):
    """The agent answered that it cannot do it."""


class _TooLong(NamedTuple):
    """What is left of a line that was passed over."""

    beginning: bytes


def notification(command: Command) -> bytes:
    """Encodes a request without an answer, to be sent to many agents."""
    return encode(Request(command))


class AgentChannel:
    """Sends requests to one agent. Close it: an agent whose control stream is closed stops by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.failure = ""
        """Why the agent failed, if it said so."""
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._asked: dict[int, asyncio.Future[Report]] = {}
        self._given_up: set[int] = set()
        """Requests whose answers may still come, and interest nobody any more."""
        self._latest: bytes | None = None
        self._news = asyncio.Event()
        self._lost = ""
        self._gone = asyncio.Event()
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._pass_on())]

    async def ask(self, command: Command, timeout: float) -> Report:
        """Sends a request, returns its answer.

        Raises AgentLost without an answer, AgentRefused if refused.
        """
        if self._lost:
            raise AgentLost(self._lost)
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(encode(Request(command, number)))
                await self._writer.drain()
                report = await answer
        except TimeoutError as error:
            raise AgentLost(f"no answer within {timeout:g} s") from error
        except ConnectionError as error:
            raise AgentLost(f"control lost: {error}") from error
        finally:
            del self._asked[number]
            if not answer.done() or answer.cancelled():
                self._given_up.add(number)
        if report.error or report.failure:
            raise AgentRefused(report.error or report.failure)
        return report

    @property
    def lost(self) -> bool:
        """Whether the stream is lost: no request can be sent any more."""
        return self._gone.is_set()

    async def wait_lost(self) -> str:
        """Waits until the stream is lost; returns why."""
        await self._gone.wait()
        return self._lost

    def send_latest(self, line: bytes) -> None:
        """Sends ``line`` when the agent is ready to read it, unless a newer one replaces it before."""
        self._latest = line
        self._news.set()

    async def close(self) -> None:
        """Closes the stream. May be repeated."""
        self._lose("control closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _listen(self) -> None:
        unasked = 0
        try:
            while line := await self._line():
                if isinstance(line, _TooLong):
                    self._refuse(line.beginning)
                    report = _NONE
                else:
                    report = _REPORTS.decode(line)
                self.failure = self.failure or one_line(report.failure)
                if (asked := self._asked.get(report.id)) and not asked.done():
                    asked.set_result(report)
                    continue
                if report.id in self._given_up:
                    self._given_up.remove(report.id)
                    continue
                unasked += 1
                if unasked > MOST_UNASKED:
                    raise Refused("size", f"more than {MOST_UNASKED} reports answer nothing that was asked")
        except Refused as error:
            self.failure = self.failure or one_line(f"it says what cannot be understood: {error}")
        except (ConnectionError, ValueError) as error:  # ValueError: a line beyond the limit
            self._lose(f"control lost: {error}")
        self._lose(self.failure or "the agent closed its control")

    async def _line(self) -> "bytes | _TooLong":
        """Returns the next line, empty at the end of the stream. Raises Refused if it does not end."""
        beginning, passed = b"", 0
        while True:
            try:
                line = await self._reader.readuntil()
            except asyncio.IncompleteReadError as end:
                line = end.partial
            except asyncio.LimitOverrunError as error:
                part = await self._reader.readexactly(error.consumed)
                beginning, passed = beginning or part, passed + len(part)
                if passed > MOST_PASSED_BYTES:
                    raise Refused("size", f"a line is longer than {MOST_PASSED_BYTES} bytes") from None
                continue
            if beginning or len(line) > MOST_REPORT_BYTES:
                return _TooLong((beginning or line)[:_BEGINNING])
            return line

    def _refuse(self, beginning: bytes) -> None:
        """Tells who asked that the answer is too long to be read; others go on asking."""
        found = _ANSWERS.match(beginning)
        asked = self._asked.get(int(found[1])) if found else None
        if asked is not None and not asked.done():
            asked.set_exception(AgentRefused(f"its answer is longer than {MOST_REPORT_BYTES} bytes"))

    async def _pass_on(self) -> None:
        with suppress(ConnectionError):
            while await self._news.wait():
                self._news.clear()
                if self._latest is not None:
                    self._writer.write(self._latest)
                    self._latest = None
                    await self._writer.drain()

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._gone.set()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(AgentLost(self._lost))
