"""Runs on other machines: a keeper, a routing daemon and an agent on each node, over any infrastructure."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from node_agent.control import AskStatus, Report
from node_agent.keeping.commands import AskClock
from node_agent.model.plan import DeploymentPlan
from node_agent.transport.authentication import KEY_SIZE
from orchestrator.backends.agent_channel import AgentLost
from orchestrator.backends.base import NodeOutcome, Outcomes, Progress, Status
from orchestrator.backends.readiness import shortfalls
from orchestrator.backends.remote import ledger
from orchestrator.backends.remote.collection import collect, remove_place
from orchestrator.backends.remote.infrastructure import Infrastructure
from orchestrator.backends.remote.keeper import RENEWALS, NodeKeeper
from orchestrator.backends.remote.orders import WholeRun, keeper_order
from orchestrator.backends.remote.site import Site
from orchestrator.clocks.book import ClockBook
from orchestrator.clocks.watch import ClockWatch
from orchestrator.errors import RoveError
from orchestrator.lifecycle.events import EventLog
from orchestrator.lifecycle.faults import inflict
from orchestrator.lifecycle.journal import Journal
from orchestrator.lifecycle.run_directory import RunDirectory
from orchestrator.planning.faults import fault_steps
from orchestrator.services.registry import service_of
from orchestrator.spec.experiment import Experiment
from orchestrator.ssh.errors import SshError, Unreachable
from orchestrator.ssh.fleet import on_all

POLL_S = 0.5
STATUS_S = 5.0
MARGIN_S = 3.0
"""Before a phase is cut short we say ourselves who did not make it."""
STARTING = 0.9
CLOSE_S = 10.0
NOT_TOLD = "no costs from the routing layer"
NOT_OPENED = "its sources were not opened"


class RemoteBackend:
    def __init__(
        self,
        experiment: Experiment,
        run_id: str,
        directory: Path,
        journal: Journal,
        plan: DeploymentPlan,
        infrastructure: Infrastructure,
    ) -> None:
        """``plan``: with the galleries of the run (``orchestrator.faces.galleries.pinned``)."""
        self._experiment = experiment
        self._run_id = run_id
        self._directory = RunDirectory(directory)
        self._journal = journal
        self._infrastructure = infrastructure
        self._plan = plan
        self._key = secrets.token_bytes(KEY_SIZE)
        self._keepers: dict[str, NodeKeeper] = {}
        self._absent: dict[str, NodeOutcome] = {}
        self._entries: dict[str, int] = {}
        self._collected: dict[str, None] = {}
        self._crashed: dict[str, None] = {}
        self._flowed = False
        self._shut = dict.fromkeys(_source_nodes(plan), NOT_OPENED)
        self._faults: asyncio.Task[None] | None = None
        self._book = ClockBook()
        self._asks: dict[str, Callable[[], Awaitable[Report]]] = {}
        self._clocks = ClockWatch(self._book, self._asks)

    def now_ns(self) -> int:
        return time.time_ns()

    def doubts(self) -> Sequence[str]:
        took_part = [node for node in self._keepers if node not in self._absent]
        clocks = self._book.doubts(self._experiment.clocks.uncertainty, took_part)
        return (*self._infrastructure.doubts(), *clocks)

    def facts(self) -> Mapping[str, Any]:
        return {**self._infrastructure.facts(), "clocks": self._book.document()}

    async def up(self, progress: Progress) -> Outcomes:
        limit = self._experiment.timeouts.up
        deadline = asyncio.get_running_loop().time() + max(limit - MARGIN_S, limit * STARTING)
        found = await self._infrastructure.open(progress)
        sites = {node: site for node, site in found.items() if isinstance(site, Site)}
        for node, error in found.items():
            if isinstance(error, RoveError):
                self._absent[node] = _outcome(node, error)
        addresses = {node: site.address for node, site in sites.items()}
        order = WholeRun(
            self._experiment,
            self._run_id,
            self._plan,
            {**self._planned_addresses(), **addresses},
            self._key,
            service_of(self._experiment.routing),
        )

        async def one(site: Site) -> None:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._start(order, site)
            except TimeoutError:
                raise SshError(site.node, f"not started when timeouts.up, {limit:g} s, was over") from None

        started = await on_all(sites, one)
        for node, ending in started.items():
            if isinstance(ending, RoveError):
                self._absent[node] = _outcome(node, ending)
        await self._clocks.before()
        return self._outcomes()

    def _planned_addresses(self) -> dict[str, str]:
        """Of nodes that are not there as well: their replicas are in the plan."""
        topology = self._experiment.topology
        real = {name: node.address for name, node in topology.real_nodes().items()}
        return {**topology.addresses(), **real}

    async def _start(self, run: WholeRun, site: Site) -> None:
        log = self._directory.temporary / f"{site.node}.attach"
        keeper = NodeKeeper(site, self._run_id, self._experiment.lease, log)
        order, files = keeper_order(run, site)
        self._entries[site.node] = ledger.intend(self._journal, site, self._run_id, self._experiment.lease)
        self._keepers[site.node] = keeper
        await keeper.launch(order, files)
        self._asks[site.node] = lambda: keeper.ask(AskClock())
        await keeper.start_agent()

    async def converge(self) -> Outcomes:
        """Until every agent that is there knows ways to enough of the others, within a bound."""
        await self._infrastructure.begin()
        limit = self._experiment.timeouts.converge
        deadline = time.monotonic() + max(limit - MARGIN_S, limit / 2)
        waiting = dict.fromkeys(self._present(), NOT_TOLD)
        while waiting:
            self._infrastructure.check()
            waiting = await self._unready(waiting)
            if time.monotonic() >= deadline:
                break
            if waiting:
                await asyncio.sleep(POLL_S)
        return [
            NodeOutcome(outcome.node, Status.FAILED, waiting[outcome.node])
            if outcome.status is Status.OK and outcome.node in waiting
            else outcome
            for outcome in self._outcomes()
        ]

    async def _unready(self, waiting: Iterable[str]) -> dict[str, str]:
        """Those of them that do not know enough, and why. Who is lost is waited for, who failed is not."""
        nodes = [node for node in waiting if not self._keepers[node].failure]
        reports = await asyncio.gather(*map(self._status, nodes))
        reaches = {
            node: report.reaches
            for node, report in zip(nodes, reports, strict=True)
            if report is not None and report.ready
        }
        # Nobody knows who hears whom: all are to know a way to all that are there.
        present = self._present()
        links = {node: {peer: 1.0 for peer in present if peer != node} for node in present}
        short = shortfalls(
            {node: known for node, known in reaches.items() if node in links},
            links,
            self._experiment.routing.quorum,
        )
        return {node: short.get(node, NOT_TOLD) for node in nodes if node not in reaches or node in short}

    async def _status(self, node: str) -> Report | None:
        try:
            return await self._keepers[node].ask(AskStatus(), STATUS_S)
        except AgentLost:
            return None

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        end = time.monotonic() + seconds
        self._flowed = True
        # Nobody waits for a node that is lost at the moment: time, and what is to happen in it, goes on.
        opening = asyncio.create_task(self._open_sources(), name="open sources")
        try:
            return await self._pass(seconds, end, progress, opening)
        finally:
            opening.cancel()
            await asyncio.wait([opening])

    async def _pass(
        self, seconds: float, end: float, progress: Progress, opening: asyncio.Task[None]
    ) -> Outcomes:
        self._begin_faults()
        self._clocks.start()
        while (left := end - time.monotonic()) > 0:
            self._infrastructure.check()
            self._check_faults()
            progress(1.0 - left / seconds)
            await asyncio.sleep(min(1.0, left))
        await opening
        self._check_faults()
        progress(1.0)
        return [
            NodeOutcome(outcome.node, Status.FAILED, self._shut[outcome.node])
            if outcome.status is Status.OK and outcome.node in self._shut
            else outcome
            for outcome in self._outcomes()
        ]

    async def _open_sources(self) -> None:
        """A node that was told late has not measured what the others have, even if it is back by the end."""

        async def one(node: str) -> None:
            trouble = await self._keepers[node].open_sources()
            if not trouble:
                self._shut.pop(node, None)
            elif node in self._shut:
                self._shut[node] = f"{NOT_OPENED}: {trouble}"

        await asyncio.gather(*map(one, self._present()))

    def _begin_faults(self) -> None:
        """With the first time that the query flows."""
        if self._faults is None and (steps := fault_steps(self._experiment)):
            faults = inflict(steps, self._experiment.warmup, self, EventLog(self._directory.events))
            self._faults = asyncio.create_task(faults, name="faults")

    async def crash(self, node: str) -> None:
        keeper = self._keepers.get(node)
        if keeper is None or keeper.failure:
            return  # it has died by itself, and that is to be told
        self._crashed[node] = None
        await keeper.kill_agent()

    async def restart(self, node: str) -> None:
        if node in self._crashed:
            del self._crashed[node]
            await self._keepers[node].start_agent()

    async def silence(self, nodes: Collection[str]) -> None:
        raise RoveError("nobody can silence a radio that is not emulated here")

    async def stop(self) -> Outcomes:
        await self._end_faults()
        await self._clocks.after()
        limit = self._experiment.timeouts.stop
        patience = min(self._experiment.lease / RENEWALS, limit / 4)
        await self._end_all("end of run", limit - patience - MARGIN_S, patience)
        self._check_faults()
        return self._outcomes()

    async def collect(self, into: Path) -> Outcomes:
        limit = self._experiment.timeouts.collect
        deadline = asyncio.get_running_loop().time() + max(limit - MARGIN_S, limit / 2)

        async def one(keeper: NodeKeeper) -> None:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._collect(keeper, into)
            except TimeoutError:
                kind = SshError if keeper.ended else Unreachable
                raise kind(keeper.site.node, f"not done within {limit:g} s") from None

        troubles = await on_all(self._keepers, one)
        outcomes = {outcome.node: outcome for outcome in self._outcomes()}
        for node, error in troubles.items():
            if isinstance(error, RoveError):
                found = _outcome(node, error)
                reason = f"{found.reason}; its record stays there: rove collect {self._run_id} fetches it"
                outcomes[node] = NodeOutcome(node, found.status, reason)
        return list(outcomes.values())

    async def _collect(self, keeper: NodeKeeper, into: Path) -> None:
        site = keeper.site
        place = str(site.place(self._run_id))
        await site.connection.ensure(MARGIN_S)
        if not keeper.ended:
            await site.connection.run(["true"], timeout=STATUS_S)  # one that hangs is not waited for
            await keeper.end_from_outside("end of run")
            self._note_ends()
        await collect(site.connection, place, into / "nodes" / site.node)
        self._collected[site.node] = None
        self._journal.done(self._entries[site.node], collected=True)

    async def down(self) -> None:
        """What was collected goes; what was not stays on its node."""
        try:
            await self._end_faults()
            await self._clocks.close()
            await self._end_all("torn down", CLOSE_S, POLL_S)
            try:
                async with asyncio.timeout(max(self._experiment.timeouts.down - 2 * CLOSE_S, CLOSE_S)):
                    await on_all(self._keepers, self._tidy)
            except TimeoutError:
                pass  # the journal knows who is left
        finally:
            await asyncio.gather(*(keeper.close() for keeper in self._keepers.values()))
            await self._infrastructure.close()

    async def _tidy(self, keeper: NodeKeeper) -> None:
        """Where nothing has flowed yet, there is nothing to collect either."""
        node = keeper.site.node
        if node not in self._entries or not keeper.site.connection.alive:
            return
        if not keeper.ended:
            await keeper.end_from_outside("torn down")
            self._note_ends()
        if node in self._collected or not self._flowed:
            await remove_place(keeper.site.connection, str(keeper.site.place(self._run_id)))
            self._journal.done(self._entries.pop(node), removed=True)

    async def _end_all(self, reason: str, timeout: float, patience: float) -> None:
        await asyncio.gather(*(keeper.end(reason, timeout, patience) for keeper in self._keepers.values()))
        self._note_ends()

    def _note_ends(self) -> None:
        for node, keeper in self._keepers.items():
            if keeper.ended and not keeper.noted and node in self._entries:
                keeper.noted = True
                self._journal.done(self._entries[node], ended=True)

    def _check_faults(self) -> None:
        """Raises what went wrong with them, if anything did."""
        if self._faults is not None and self._faults.done() and not self._faults.cancelled():
            self._faults.result()

    async def _end_faults(self) -> None:
        if self._faults is not None:
            self._faults.cancel()
            await asyncio.wait([self._faults])

    def _present(self) -> list[str]:
        """Nodes that have come up, whatever has become of their connections; without those that failed."""
        return [
            node for node, keeper in self._keepers.items() if node not in self._absent and not keeper.failure
        ]

    def _outcomes(self) -> list[NodeOutcome]:
        kept = {node: keeper.outcome() for node, keeper in self._keepers.items()}
        return [*({**kept, **self._absent}).values()]


def _source_nodes(plan: DeploymentPlan) -> list[str]:
    sources = plan.query.sources()
    return list(dict.fromkeys(replica.node for replica in plan.replicas if replica.operator in sources))


def _outcome(node: str, error: RoveError) -> NodeOutcome:
    status = Status.UNREACHABLE if isinstance(error, Unreachable) else Status.FAILED
    text = error.reason if isinstance(error, SshError) and error.host == node else str(error)
    return NodeOutcome(node, status, text.removeprefix(f"{node}: "))
