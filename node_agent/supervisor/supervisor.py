"""Starts what the order says, answers the owner, and ends everything in order, however the run ends.

It answers requests for clock and lease at once: nothing slow is awaited between an owner's lines.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from node_agent.agent.control import Command, Report, State
from node_agent.agent.control_lines import LONGEST_LINE, encode
from node_agent.model.checked import Refused
from node_agent.supervisor.agent import NOT_RUNNING, SupervisedAgent
from node_agent.supervisor.agent_connection import AgentState
from node_agent.supervisor.bridge import SOCKET, is_own
from node_agent.supervisor.commands import (
    AskClock,
    AskLease,
    End,
    Hello,
    KillAgent,
    LeaseReport,
    ReadPicture,
    ReadSegment,
    Renew,
    StartAgent,
)
from node_agent.supervisor.launch import SERVICE_S, SETUP_S
from node_agent.supervisor.lease import Lease, is_term, now
from node_agent.supervisor.leftovers import end_leftovers
from node_agent.supervisor.order import BadOrder, SupervisorOrder, check_protocol
from node_agent.supervisor.owner import Owner, read_envelope, read_request
from node_agent.supervisor.place import RECORD, Ended, remove_socket, write_ended
from node_agent.supervisor.programs import CannotStart, HeldProgram, with_lifeline
from node_agent.supervisor.reading import Piece, read_picture, read_segment
from node_agent.supervisor.undo import undo_services, undo_set_up
from node_agent.telemetry.segment_files import SegmentName

SERVICE_END_S = 8.0
SETUP_END_S = 30.0
SETUP_GIVES_UP_S = 20.0
"""The set-up may be waiting for a program that hangs, and must still undo its changes."""
_HELLO_S = 10.0
_LAST_WORDS_S = 2.0
_LEASE_CHECK_S = 5.0
_OWN = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (Hello, Renew, AskClock, StartAgent, KillAgent, End, AskLease, ReadSegment, ReadPicture)
)


class Supervisor:
    """Its working directory is the place. ``say`` writes to the log."""

    def __init__(self, order: SupervisorOrder, place: Path, say: Callable[[str], None]) -> None:
        self._order = order
        self._place = place
        self._say = say
        self._lease = Lease(now() + order.lease)
        self._owner: Owner | None = None
        self._agent = SupervisedAgent(
            order.agent, self._record, lambda: self._owner, say, self._announce, self._answer_ended
        )
        self._held: list[HeldProgram] = []
        self._services_failed: list[str] = []
        self._ending: asyncio.Task[None] | None = None
        self._end_notice = ""
        """Why the run ends: the answer to all later requests."""
        self._asked_to_end = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._answering: list[asyncio.Task[None]] = []
        self._clients: list[asyncio.Task[None]] = []

    async def start(self) -> tuple[str, ...]:
        """Starts everything, and returns the set-up's notes. Raises
        CannotStart after it has ended everything again."""
        notes: tuple[str, ...] = ()
        try:
            if (setup := self._order.setup) is not None:
                starting = HeldProgram.start(setup, setup.argv, self._record, SETUP_S, SETUP_GIVES_UP_S)
                notes = await self._hold(setup.name, starting)
            for service in self._order.services:
                argv = with_lifeline(service.argv)
                starting = HeldProgram.start(service, argv, self._record, SERVICE_S, SERVICE_END_S)
                await self._hold(service.name, starting)
            await self._listen()
        except (CannotStart, OSError) as error:
            await self.end(f"could not start: {error}")
            raise CannotStart(str(error)) from error
        for number in (signal.SIGTERM, signal.SIGINT):  # earlier, a signal just kills us and ends all
            asyncio.get_running_loop().add_signal_handler(number, self.end, "asked by a signal")
        self._lease = self._lease.renewed(now(), self._order.lease)
        self._check_lease()
        return notes

    async def run(self) -> None:
        """Waits until everything has ended."""
        await self._asked_to_end.wait()
        assert self._ending is not None
        await self._ending
        if self._answering:
            await asyncio.wait(self._answering, timeout=_LAST_WORDS_S)
        if self._owner is not None:
            await self._owner.flush()
        for task in [*self._watching, *self._clients]:
            task.cancel()

    def end(self, reason: str, announced: bool = True) -> "asyncio.Task[None]":
        """Ends everything in order, once; the first reason counts."""
        if self._ending is None:
            self._end_notice = f"the run ends on this node: {reason}"
            if announced:
                self._announce(self._end_notice)
            self._ending = asyncio.create_task(self._end(reason))
            self._asked_to_end.set()
        return self._ending

    @property
    def _record(self) -> Path:
        return self._place / RECORD

    async def _hold(
        self, name: str, starting: Awaitable[tuple[HeldProgram, tuple[str, ...]]]
    ) -> tuple[str, ...]:
        held, notes = await starting
        self._held.append(held)
        self._watching.append(asyncio.create_task(self._watch(held)))
        self._say(f"{name} has started" + "".join(f"; {note}" for note in notes))
        return notes

    async def _watch(self, held: HeldProgram) -> None:
        how = await held.ended()
        if self._ending is None:
            self._say(how)
            self._services_failed.append(how)
            self._announce(how)

    def _check_lease(self) -> None:
        if self._lease.is_over(now()):
            self.end("the lease ended")
        else:
            # The loop's timers stand still while the machine sleeps, so look often.
            again = min(self._lease.left(now()), _LEASE_CHECK_S)
            asyncio.get_running_loop().call_later(again, self._check_lease)

    @property
    def _failures(self) -> list[str]:
        return [text for text in (*self._services_failed, self._agent.failure) if text]

    def _announce(self, failure: str) -> None:
        if self._owner is not None:
            self._owner.write(self._report(failure=failure))

    def _answer_ended(self, client: Owner, number: int) -> None:
        if client is self._owner:
            self._answer(client, number, "" if self._agent.failure else NOT_RUNNING, self._agent.failure)

    # The socket

    async def _listen(self) -> None:
        remove_socket(self._place)
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._accept, SOCKET, limit=LONGEST_LINE)
        finally:
            os.umask(mask)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_own(writer.get_extra_info("socket")):
            return writer.close()
        self._clients = [task for task in self._clients if not task.done()]
        self._clients.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Owner(writer)
        try:
            first = await asyncio.wait_for(reader.readline(), _HELLO_S)
            if not self._accept_owner(client, first):
                return
            while line := await reader.readline():
                self._receive(client, line)
        except (OSError, ValueError, TimeoutError) as error:  # ValueError: the line is too long
            self._say(f"a client is lost: {error or type(error).__name__}")
        finally:
            if self._owner is client:
                self._owner = None
                self._say("nobody owns the run")
            client.close()

    def _accept_owner(self, client: Owner, line: bytes) -> bool:
        number = 0
        try:
            number = read_envelope(line).id
            command = read_request(line).do
            if isinstance(command, AskLease):
                client.write(msgspec.json.encode(self._lease_report()) + b"\n")
                return False
            if not isinstance(command, Hello):
                raise BadOrder("say hello first")
            check_protocol(command.protocol)
        except (Refused, BadOrder) as error:
            client.write(self._report(number, error=f"refused: {error}"))
            return False
        if self._owner is not None:
            self._owner.close()
        self._owner = client
        self._say("the run has a new owner")
        for failure in self._failures:
            client.write(self._report(failure=failure))
        client.write(self._report(number))
        return True

    def _receive(self, client: Owner, line: bytes) -> None:
        if client is not self._owner:
            return  # replaced, and has not noticed yet
        try:
            envelope = read_envelope(line)
            if envelope.do.do in _OWN:
                request = read_request(line)
                self._obey(client, request.do, request.id)
                return
        except Refused as error:
            client.write(self._report(error=f"not a request: {error}"))
            return
        number = envelope.id
        if self._ending is not None:
            self._answer(client, number, error=self._end_notice)
        elif self._agent.last_state is None:
            self._answer_ended(client, number)
        elif refused := self._agent.pass_on(client, envelope.do.do, number, line):
            self._answer(client, number, error=refused)

    def _obey(self, client: Owner, command: Command, number: int) -> None:
        match command:
            case AskClock():
                self._answer(client, number)
            case Renew(seconds):
                self._answer(client, number, error=self._renew(seconds))
            case StartAgent():
                self._later(client, number, self._start_agent())
            case KillAgent():
                self._later(client, number, self._agent.kill())
            case ReadSegment(boot, index, offset):
                name = SegmentName(boot, index)
                self._read_later(client, number, partial(read_segment, self._record, name, offset))
            case ReadPicture(folder, stamp):
                self._read_later(client, number, partial(read_picture, self._record, folder, stamp))
            case End(reason):
                self._later(client, number, self._end_for(reason))
            case _:
                self._answer(client, number, error="this must be the first line, and comes once")

    def _later(self, client: Owner, number: int, doing: Awaitable[str]) -> None:
        async def do() -> None:
            self._answer(client, number, error=await doing)

        self._answer_by(do())

    def _read_later(self, client: Owner, number: int, read: Callable[[], Piece]) -> None:
        """Reads in a thread: the disk may be slow, and questions for the clock do not wait for it."""

        async def do() -> None:
            try:
                at, data = await asyncio.to_thread(read)
                client.write(self._report(number, at=at, data=data))
            except OSError as error:
                self._answer(client, number, error=error.strerror or str(error))

        self._answer_by(do())

    def _answer_by(self, answering: Coroutine[Any, Any, None]) -> None:
        self._answering = [task for task in self._answering if not task.done()]
        self._answering.append(asyncio.create_task(answering))

    def _answer(self, client: Owner, number: int, error: str = "", failure: str = "") -> None:
        if number:
            client.write(self._report(number, error, failure))

    def _report(
        self,
        number: int = 0,
        error: str = "",
        failure: str = "",
        at: tuple[int, ...] = (),
        data: bytes = b"",
    ) -> bytes:
        last = self._agent.last_state or AgentState(State.STOPPED)
        now_ns = time.time_ns()
        return encode(Report(number, last.state, last.ready, now_ns, failure, error, at=at, data=data))

    def _lease_report(self) -> LeaseReport:
        left, runs = self._lease.left(now()), self._agent.last_state is not None
        return LeaseReport(left, self._owner is not None, runs, tuple(self._failures))

    def _renew(self, seconds: float) -> str:
        """Returns why the lease was not renewed; empty if it was."""
        if self._ending is not None:
            return self._end_notice
        if not is_term(seconds):
            return f"{seconds:g} s is no valid lease"
        self._lease = self._lease.renewed(now(), seconds)
        return ""

    async def _start_agent(self) -> str:
        return await self._agent.start() if self._ending is None else self._end_notice

    # The end

    async def _end_for(self, reason: str) -> str:
        await self.end(reason, announced=False)
        return ""

    async def _end(self, reason: str) -> None:
        self._say(f"ends: {reason}")
        trouble = [await self._agent.stop(reason)]
        is_setup = self._order.setup is not None
        for position, held in reversed(list(enumerate(self._held))):
            trouble.append(await held.end(SETUP_END_S if is_setup and position == 0 else SERVICE_END_S))
        ended, left = await asyncio.to_thread(end_leftovers, self._order.run, self._place, 0.0)
        trouble += [f"process {pid} had to be ended" for pid in ended]
        trouble += [f"process {pid} is left" for pid in left]
        if self._services_failed or any(trouble):
            trouble.append(await asyncio.to_thread(undo_services, self._order, self._place))
        trouble.append(await asyncio.to_thread(undo_set_up, self._order, self._place))
        problems = tuple(text for text in [*self._failures, *trouble] if text)
        for text in problems:
            self._say(text)
        if self._server is not None:
            self._server.close()
        remove_socket(self._place)
        with suppress(OSError):  # no room: then the exit report is lost
            write_ended(self._place, Ended(reason, time.time_ns(), not problems, problems))
