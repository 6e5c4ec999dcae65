"""The orchestrator's end of one node's supervisor: starts it, attaches to it, renews its lease, ends it.

When the connection is lost, it connects and attaches again, until it is closed. The node counts as lost only
between two attachments.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from node_agent.agent.control import Command, OpenSources, Report, Start
from node_agent.model.checked import Refused
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.bridge import EXIT_NO_SUPERVISOR
from node_agent.supervisor.commands import AskClock, End, Hello, KillAgent, Renew, StartAgent
from node_agent.supervisor.order import ORDER, SupervisorOrder
from node_agent.supervisor.place import ENDED, Ended
from orchestrator.backends.agent_channel import AgentChannel, AgentLost, AgentRefused
from orchestrator.backends.remote import supervisor_output
from orchestrator.backends.remote.site import Site
from orchestrator.deployment.place import put
from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line
from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.ssh.command import SIGNALLED
from orchestrator.ssh.errors import HostKeyChanged, HostKeyUnknown, LoginRefused, SshError, Unreachable
from orchestrator.ssh.process import RemoteProcess, how_it_ended

MODULE = "node_agent.supervisor"
KEEP_S = 90.0
ATTACH_S = 20.0
ANSWER_S = 10.0
END_S = 120.0
RENEWALS = 6
"""Renewals within one lease."""
_PAUSE_S = 0.5
_MOMENT_S = 0.05
_CLOCK_QUIET_S = 0.2
"""After the last question for the clock, another may follow within this time."""
_CLOCK_LOOKS = 20
_SHELL_SIGNALLED = 128
"""A higher exit status: a signal ended the bridge to the supervisor, which may still run well."""
_LAST_WORDS = 4096


class SupervisorFailed(RoveError):
    """The node is reachable, but its supervisor is gone or cannot work. The reason is one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


class NodeSupervisor:
    """Controls one supervisor. ``failure`` is empty as long as the supervised processes work."""

    def __init__(self, site: Site, run_id: str, lease: float, log: Path) -> None:
        """``log``: a local file for errors of the connection."""
        self.site = site
        self.ended = False
        """It has ended all that it kept."""
        self.noted = False
        """That is in the journal."""
        self._place = str(site.place(run_id))
        self._lease = lease
        self._log = log
        self._failure = ""
        self._gone = ""
        self._ending = False
        self._channel: AgentChannel | None = None
        self._attached = asyncio.Event()
        self._heard = time.monotonic()
        self._lost: str | None = "not attached yet"
        self._holding: asyncio.Task[None] | None = None
        self._clock_asked = 0.0

    @property
    def failure(self) -> str:
        reported = self._channel.failure if self._channel is not None else ""
        return self._failure or reported or self._gone

    def outcome(self) -> NodeOutcome:
        """Returns the node's state now."""
        if self.failure:
            return NodeOutcome(self.site.node, Status.FAILED, self.failure)
        if self._lost is not None and not self.ended:
            seconds = time.monotonic() - self._heard
            text = f"not heard of for {seconds:.0f} s: {self._lost}"
            return NodeOutcome(self.site.node, Status.UNREACHABLE, text)
        return NodeOutcome(self.site.node, Status.OK)

    async def launch(self, order: SupervisorOrder, files: Mapping[str, bytes | Path]) -> None:
        """Ships the supervisor's files, starts it, attaches to it. Raises SshError or SupervisorFailed."""
        everything = {ORDER: msgspec.json.encode(order), **files}
        await put(self.site.connection, self.site.deployed, self._place, everything)
        argv = self.site.command(MODULE, "start", self._place)
        done = await self.site.connection.run(argv, timeout=KEEP_S)
        error = supervisor_output.launch_error(done.stdout)
        if done.status != 0 or error:
            complaint = done.stderr.decode(errors="replace").strip().splitlines()
            why = error or (complaint[-1] if complaint else f"status {done.status}")
            raise SupervisorFailed(f"{self.site.node}: the supervisor did not start: {why}")
        self._holding = asyncio.create_task(self._hold(), name=f"supervisor of {self.site.node}")
        try:
            async with asyncio.timeout(ATTACH_S):
                await self._attached.wait()
        except TimeoutError:
            raise Unreachable(self.site.node, self.outcome().reason) from None
        if self.failure:
            raise SupervisorFailed(f"{self.site.node}: {self.failure}")

    async def start_agent(self) -> None:
        """Starts the agent's process and the agent in it; sources stay closed. Raises AgentLost."""
        await self.ask_until_answered(StartAgent(), KEEP_S)
        await self.ask_until_answered(Start(), ANSWER_S)

    async def kill_agent(self) -> None:
        """Kills the agent, as a fault does. Raises AgentLost."""
        await self.ask_until_answered(KillAgent(), ANSWER_S)

    async def open_sources(self) -> str:
        """Opens the sources; returns why they are still closed, empty if they are open."""
        try:
            await self.ask_until_answered(OpenSources(), ANSWER_S)
        except AgentLost as error:
            return str(error)
        return ""

    async def ask(self, command: Command, timeout: float = ANSWER_S) -> Report:
        """Sends a command, returns its answer. Raises AgentLost, at once if the node is lost now."""
        if self._channel is None or not self._attached.is_set():
            raise AgentLost(self.outcome().reason or "not attached")
        return await self._channel.ask(command, timeout)

    async def ask_clock(self) -> Report:
        """Asks for the node's time. Raises AgentLost."""
        self._clock_asked = time.monotonic()
        return await self.ask(AskClock())

    async def ask_quietly(self, command: Command, timeout: float) -> Report:
        """Asks for a piece of the node's record, or for metrics. Raises AgentLost.

        It waits while the clock is being measured: a large answer on the same connection would make the
        answers with the time late, and the clock look uncertain.
        """
        begun = time.monotonic()
        for _ in range(_CLOCK_LOOKS):
            if time.monotonic() - self._clock_asked >= _CLOCK_QUIET_S:
                break
            await asyncio.sleep(_CLOCK_QUIET_S / 2)
        waited = time.monotonic() - begun
        return await self.ask(command, max(timeout - waited, timeout / 3))

    async def ask_until_answered(self, command: Command, timeout: float) -> Report | None:
        """Like ``ask``, but waits for a lost connection to come back and asks again.

        Returns None if the first answer was lost and the second one says that there is nothing to do.
        """
        repeated = False
        try:
            async with asyncio.timeout(timeout):
                while True:
                    await self._attached.wait()
                    try:
                        return await self.ask(command, timeout)
                    except AgentRefused:
                        if repeated and not self.failure:
                            return None
                        raise
                    except AgentLost:
                        if self._is_over or not (self._channel is None or self._channel.lost):
                            raise
                        repeated = True
                        await asyncio.sleep(_MOMENT_S)  # until this channel is known to be lost
        except TimeoutError:
            raise AgentLost(self.outcome().reason or f"no answer within {timeout:g} s") from None

    async def end(self, reason: str, timeout: float, patience: float) -> None:
        """Ends everything on the node in order. A node lost for ``patience`` seconds is left to its lease."""
        if self._holding is None or self.ended:
            return
        try:
            async with asyncio.timeout(patience):
                await self._attached.wait()
        except TimeoutError:
            return
        self._ending = True
        try:
            await self.ask_until_answered(End(reason), timeout)
            self.ended = True
        except AgentLost as error:
            if not self.ended:  # the connection may have broken before the answer came
                self._failure = self.failure or f"it did not end in order: {error}"
        await self.close()

    async def end_from_outside(self, reason: str) -> None:
        """Ends a supervisor that cannot be attached to, or never was. Raises SshError."""
        argv = self.site.command(MODULE, "end", self._place, "--reason", reason)
        await self.site.connection.output(argv, timeout=END_S)
        self.ended = True
        await self.close()

    async def close(self) -> None:
        """Disconnects from it. May be repeated."""
        if self._holding is not None:
            self._holding.cancel()
            await asyncio.wait([self._holding])

    async def _hold(self) -> None:
        """Attaches and renews the lease, again after each loss, until there is no supervisor to attach to."""
        while not self._is_over:
            try:
                await self.site.connection.ensure(self._lease)
                await self._attach_and_renew()
            except (SupervisorFailed, HostKeyChanged, HostKeyUnknown, LoginRefused) as error:
                self._gone = error.reason if isinstance(error, SshError) else str(error)
            except SshError as error:
                self._lost = error.reason
            except OSError as error:  # this machine's: too many open files, a full disk
                self._lost = f"it cannot be attached to from here: {error}"
            if not self._is_over:
                await asyncio.sleep(_PAUSE_S)
        self._attached.set()  # waiting callers may go on

    @property
    def _is_over(self) -> bool:
        """Whether there is no supervisor to attach to any more."""
        return bool(self._gone) or self.ended

    async def _attach_and_renew(self) -> None:
        argv = self.site.command(MODULE, "attach", self._place)
        process = await self.site.connection.start(argv, stderr=self._log, timeout=ATTACH_S)
        channel = AgentChannel(process.reader, process.writer)
        try:
            await channel.ask(Hello(PROTOCOL), ATTACH_S)
            await self._renew(channel, ANSWER_S)
            self._channel, self._lost = channel, None
            self._attached.set()
            await self._keep_renewing(channel)
        except AgentRefused as error:
            raise SupervisorFailed(str(error)) from error
        except AgentLost as error:
            await self._explain(process, str(error))
        finally:
            self._failure = self._failure or channel.failure
            self._attached.clear()
            await channel.close()
            await process.close()

    async def _renew(self, channel: AgentChannel, timeout: float) -> None:
        if not self._ending:  # a supervisor that is ending has no lease
            await channel.ask(Renew(self._lease), timeout)
        self._heard = time.monotonic()

    async def _keep_renewing(self, channel: AgentChannel) -> None:
        """Renews the lease until the connection is lost; then raises AgentLost."""
        pause = self._lease / RENEWALS
        while True:
            try:
                async with asyncio.timeout(pause):
                    raise AgentLost(await channel.wait_lost())
            except TimeoutError:
                await self._renew(channel, max(2 * pause, 2.0))

    async def _explain(self, process: RemoteProcess, why: str) -> None:
        """Raises SupervisorFailed if the supervisor, not the connection, is gone."""
        self._lost = why
        try:
            async with asyncio.timeout(1.0):
                status = await process.wait()
        except TimeoutError:
            return
        if status is None or status == 0:
            self._lost = "the connection is lost"
            return
        if status == SIGNALLED or status > _SHELL_SIGNALLED:
            self._lost = f"the process there that leads to the supervisor {how_it_ended(status)}"
            return
        exit_report = await self._exit_report()
        if self._ending and exit_report is not None and exit_report.in_order:
            self.ended = True  # as it was asked to
            return
        if exit_report is not None:
            raise SupervisorFailed(f"the run has ended there: {exit_report.reason}")
        if status == EXIT_NO_SUPERVISOR:
            raise SupervisorFailed(
                "its supervisor was killed, or the node was restarted: the run has ended there"
            )
        raise SupervisorFailed(_last_line(self._log) or why)

    async def _exit_report(self) -> Ended | None:
        """Reads the exit report that the supervisor wrote when it ended."""
        with suppress(SshError, Refused):
            done = await self.site.connection.run(["cat", f"{self._place}/{ENDED}"], timeout=ANSWER_S)
            return supervisor_output.ENDED.decode(done.stdout)
        return None


def _last_line(file: Path) -> str:
    with suppress(OSError), file.open("rb") as stream:
        stream.seek(max(stream.seek(0, os.SEEK_END) - _LAST_WORDS, 0))
        if lines := stream.read(_LAST_WORDS).decode(errors="replace").strip().splitlines():
            return lines[-1]
    return ""
