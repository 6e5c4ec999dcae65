"""Runs an experiment on other machines: a supervisor, a routing daemon and an agent on each node."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from node_agent.agent.control import AskMetrics, AskStatus, Report
from node_agent.model.refusals import Refusal
from node_agent.telemetry.metrics import Sample
from node_agent.transport.keys import KEY_SIZE
from orchestrator.backends.agent_channel import METRICS_S, AgentLost
from orchestrator.backends.by_hand import ByHand
from orchestrator.backends.fault_injector import FaultInjector
from orchestrator.backends.readiness import settled_within, unready, unready_within
from orchestrator.backends.real_time import pass_until
from orchestrator.backends.remote import ledger
from orchestrator.backends.remote.collection import collect, note_refused, remove_place
from orchestrator.backends.remote.infrastructure import Infrastructure
from orchestrator.backends.remote.orders import WholeRun, supervisor_order
from orchestrator.backends.remote.outcomes import failures
from orchestrator.backends.remote.records import SupervisedRecords
from orchestrator.backends.remote.site import Site
from orchestrator.backends.remote.supervisor import RENEWALS, NodeSupervisor
from orchestrator.backends.samples import SampleCheck
from orchestrator.clocks.book import ClockBook
from orchestrator.clocks.watch import ClockWatch
from orchestrator.errors import RoveError
from orchestrator.host_load.run_load import RunLoad
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.changes import AirChanges
from orchestrator.runs.backend import (
    ClockSeen,
    NodeNotSeen,
    NodeOutcome,
    Outcomes,
    Progress,
    RemoteRecords,
    Seen,
    with_failures,
)
from orchestrator.runs.journal import Journal
from orchestrator.runs.manifest import SETTLED
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.services.registry import service_of
from orchestrator.ssh.errors import SshError, Unreachable
from orchestrator.ssh.fleet import on_all

POLL_S = 0.5
STATUS_S = 5.0
MARGIN_S = 3.0
"""Waiting ends this much before the phase's timeout, so that the error can name the nodes."""
STARTING = 0.9
CLOSE_S = 10.0
NOT_OPENED = "its sources were not opened"


class RemoteBackend:
    def __init__(
        self,
        run: PlannedRun,
        run_id: str,
        directory: Path,
        journal: Journal,
        infrastructure: Infrastructure,
        host: str = "",
    ) -> None:
        """``host``: the machine that all nodes share, if they do; the infrastructure measures its load."""
        self._run = run
        self._experiment = experiment = run.experiment
        self._run_id = run_id
        self._directory = RunDirectory(directory)
        self._journal = journal
        self._infrastructure = infrastructure
        self._secret = secrets.token_bytes(KEY_SIZE)
        self._supervisors: dict[str, NodeSupervisor] = {}
        self._absent: dict[str, NodeOutcome] = {}
        self._entries: dict[str, int] = {}
        self._collected: dict[str, None] = {}
        self._refused: list[Refusal] = []
        self._crashed: dict[str, None] = {}
        self._settled_s: float | None = None
        self._flowed = False
        self._shut = dict.fromkeys((source.node for source, _ in run.traffic()), NOT_OPENED)
        self._faults = FaultInjector(run, self, self._directory.events)
        self._by_hand = ByHand(
            self._faults.active,
            experiment.topology,
            run.apps,
            experiment.traits,
            lambda: "" if self._flowed else "the query does not flow now, and before that nothing is changed",
        )
        self._book = ClockBook()
        self._asks: dict[str, Callable[[], Awaitable[Report]]] = {}
        self._clocks = ClockWatch(self._book, self._asks)
        self._load = RunLoad(self._directory.path, experiment, host)
        self._records = SupervisedRecords(run.apps, self._supervisors)
        kinds = {name: plan.kind for name, plan in run.apps.items()}
        self._samples = SampleCheck(kinds, experiment.topology.node_names)

    def now_ns(self) -> int:
        return time.time_ns()

    def doubts(self) -> Sequence[str]:
        took_part = [node for node in self._supervisors if node not in self._absent]
        clocks = self._book.doubts(self._experiment.clocks.uncertainty, took_part)
        loads = self._load.doubts(self._collected, self._book)
        return (*self._infrastructure.doubts(), *clocks, *loads)

    def facts(self) -> Mapping[str, Any]:
        loads = self._load.facts(self._collected, self._book)
        settled = {SETTLED: self._settled_s}
        return {**self._infrastructure.facts(), "clocks": self._book.document(), **loads, **settled}

    def refusals(self) -> Sequence[Refusal]:
        """Returns what nodes listed as records and was refused."""
        return self._refused

    async def up(self, progress: Progress) -> Outcomes:
        limit = self._experiment.timeouts.up
        deadline = asyncio.get_running_loop().time() + max(limit - MARGIN_S, limit * STARTING)
        found = await self._infrastructure.open(progress)
        sites = {node: site for node, site in found.items() if isinstance(site, Site)}
        self._absent |= failures(found)
        addresses = {node: site.address for node, site in sites.items()}
        order = WholeRun(
            self._run,
            self._run_id,
            {**self._planned_addresses(), **addresses},
            self._secret,
            service_of(self._experiment.routing),
        )

        async def one(site: Site) -> None:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._start(order, site)
            except TimeoutError:
                raise SshError(site.node, f"not started when timeouts.up, {limit:g} s, was over") from None

        self._absent |= failures(await on_all(sites, one))
        await self._clocks.before()
        return self._outcomes()

    def _planned_addresses(self) -> dict[str, str]:
        """Returns addresses of all nodes, absent ones included: their replicas are in the plan."""
        topology = self._experiment.topology
        real = {name: node.address for name, node in topology.real_nodes().items()}
        return {**topology.addresses(), **real}

    async def _start(self, run: WholeRun, site: Site) -> None:
        log = self._directory.temporary / f"{site.node}.attach"
        supervisor = NodeSupervisor(site, self._run_id, self._experiment.lease, log)
        order, files = supervisor_order(run, site)
        self._entries[site.node] = ledger.intend(self._journal, site, self._run_id, self._experiment.lease)
        self._supervisors[site.node] = supervisor
        await supervisor.launch(order, files)
        self._asks[site.node] = supervisor.ask_clock
        await supervisor.start_agent()

    async def converge(self) -> Outcomes:
        """Waits, within a bound, until every present agent has routes to enough of the others; then nodes
        move.
        """
        await self._infrastructure.begin()
        limit, began = self._experiment.timeouts.converge, time.monotonic()
        check = self._infrastructure.check
        waiting = await unready_within(limit, self._present(), self._unready, check)
        if (share := self._experiment.converge.settled) is not None and not waiting:
            left = limit - (time.monotonic() - began)
            self._settled_s = await settled_within(left, share, self._used_costs, check)
        await self._infrastructure.move()
        return with_failures(self._outcomes(), waiting)

    async def _unready(self, waiting: Iterable[str]) -> dict[str, str]:
        """Returns the nodes that are not ready. Waits for lost nodes, not for failed ones."""
        nodes = [node for node in waiting if not self._supervisors[node].failure]
        reports = await asyncio.gather(*map(self._status, nodes))
        # The true links are unknown: every node must have a route to every present node.
        there = dict.fromkeys((*self._present(), *nodes))
        links = {node: {peer: 1.0 for peer in there if peer != node} for node in there}
        return unready(dict(zip(nodes, reports, strict=True)), links, self._experiment.routing.ready_share)

    async def _used_costs(self) -> dict[str, dict[str, float]]:
        nodes = self._present()
        reports = await asyncio.gather(*map(self._status, nodes))
        return {node: report.costs for node, report in zip(nodes, reports, strict=True) if report is not None}

    async def _status(self, node: str) -> Report | None:
        try:
            return await self._supervisors[node].ask(AskStatus(), STATUS_S)
        except AgentLost:
            return None

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        end, begun_ns = time.monotonic() + seconds, self.now_ns()
        self._flowed = True
        # Does not wait for a node that is lost now: the run's time goes on.
        opening = asyncio.create_task(self._open_sources(), name="open sources")
        try:
            return await self._pass(seconds, end, progress, opening)
        finally:
            self._load.flowed(begun_ns, self.now_ns())
            opening.cancel()
            await asyncio.wait([opening])

    async def _pass(
        self, seconds: float, end: float, progress: Progress, opening: asyncio.Task[None]
    ) -> Outcomes:
        self._faults.begin()
        self._clocks.start()
        await pass_until(end, seconds, progress, self._check)
        await opening
        self._faults.check()
        progress(1.0)
        return with_failures(self._outcomes(), self._shut)

    def _check(self) -> None:
        self._infrastructure.check()
        self._faults.check()

    async def _open_sources(self) -> None:
        """Opens all sources.

        A node that opens late has measured less than the others, even if it is back by the end.
        """

        async def one(node: str) -> None:
            trouble = await self._supervisors[node].open_sources()
            if not trouble:
                self._shut.pop(node, None)
            elif node in self._shut:
                self._shut[node] = f"{NOT_OPENED}: {trouble}"

        await asyncio.gather(*map(one, self._present()))

    async def crash(self, node: str) -> None:
        supervisor = self._supervisors.get(node)
        if supervisor is None or supervisor.failure:
            return  # it died by itself, which its outcome reports
        self._crashed[node] = None
        await supervisor.kill_agent()

    async def restart(self, node: str) -> None:
        if node in self._crashed:
            del self._crashed[node]
            await self._supervisors[node].start_agent()

    async def change_air(self, changes: AirChanges) -> None:
        raise RoveError("nobody can change the air of a radio that is not emulated here")

    def interventions(self) -> ByHand:
        return self._by_hand

    def seen(self) -> Seen:
        last = {node: self._book.of(node).samples[-1:] for node in self._book.nodes}
        clocks = {
            node: ClockSeen(sample.at_ns, sample.offset_ns, sample.uncertainty_ns)
            for node, samples in last.items()
            for sample in samples
        }
        return Seen(self._outcomes(), clocks)

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        supervisor = self._supervisors.get(node)
        if supervisor is None or node in self._crashed:
            raise NodeNotSeen(f"no agent runs on {node} now")
        try:
            report = await supervisor.ask_quietly(AskMetrics(), METRICS_S)
        except AgentLost as error:
            raise NodeNotSeen(f"{node} reports no metrics: {error}") from error
        return self._samples.checked(node, report.samples)

    def remote_records(self) -> RemoteRecords:
        return self._records

    async def stop(self) -> Outcomes:
        await self._by_hand.close()
        await self._faults.end()
        await self._clocks.after()
        limit = self._experiment.timeouts.stop
        patience = min(self._experiment.lease / RENEWALS, limit / 4)
        await self._end_all("end of run", limit - patience - MARGIN_S, patience)
        self._faults.check()
        return self._outcomes()

    async def collect(self, into: Path) -> Outcomes:
        limit = self._experiment.timeouts.collect
        deadline = asyncio.get_running_loop().time() + max(limit - MARGIN_S, limit / 2)

        async def one(supervisor: NodeSupervisor) -> None:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._collect(supervisor, into)
            except TimeoutError:
                kind = SshError if supervisor.ended else Unreachable
                raise kind(supervisor.site.node, f"not done within {limit:g} s") from None

        troubles = await on_all(self._supervisors, one)
        outcomes = {outcome.node: outcome for outcome in self._outcomes()}
        for node, found in failures(troubles).items():
            reason = f"{found.reason}; its record stays there: rove collect {self._run_id} fetches it"
            outcomes[node] = NodeOutcome(node, found.status, reason)
        return list(outcomes.values())

    async def _collect(self, supervisor: NodeSupervisor, into: Path) -> None:
        site = supervisor.site
        place = str(site.place(self._run_id))
        await site.connection.ensure(MARGIN_S)
        if not supervisor.ended:
            await site.connection.run(["true"], timeout=STATUS_S)  # does not wait for one that hangs
            await supervisor.end_from_outside("end of run")
            self._note_ends()
        found = await collect(site.connection, place, into / "nodes" / site.node)
        note_refused(self._directory, site.node, found.refused)
        self._refused += found.refused
        self._collected[site.node] = None
        self._journal.done(self._entries[site.node], collected=True)

    async def down(self) -> None:
        """Removes what was collected; leaves the rest on its node."""
        try:
            await self._by_hand.close()
            await self._faults.end()
            await self._clocks.close()
            await self._end_all("torn down", CLOSE_S, POLL_S)
            try:
                async with asyncio.timeout(max(self._experiment.timeouts.down - 2 * CLOSE_S, CLOSE_S)):
                    await on_all(self._supervisors, self._tidy)
            except TimeoutError:
                pass  # the journal lists the nodes that are left
        finally:
            await asyncio.gather(*(supervisor.close() for supervisor in self._supervisors.values()))
            await self._infrastructure.close()

    async def _tidy(self, supervisor: NodeSupervisor) -> None:
        """Ends the supervisor; removes its place if it was collected or no source was ever opened."""
        node = supervisor.site.node
        if node not in self._entries or not supervisor.site.connection.alive:
            return
        if not supervisor.ended:
            await supervisor.end_from_outside("torn down")
            self._note_ends()
        if node in self._collected or not self._flowed:
            await remove_place(supervisor.site.connection, str(supervisor.site.place(self._run_id)))
            self._journal.done(self._entries.pop(node), removed=True)

    async def _end_all(self, reason: str, timeout: float, patience: float) -> None:
        await asyncio.gather(
            *(supervisor.end(reason, timeout, patience) for supervisor in self._supervisors.values())
        )
        self._note_ends()

    def _note_ends(self) -> None:
        for node, supervisor in self._supervisors.items():
            if supervisor.ended and not supervisor.noted and node in self._entries:
                supervisor.noted = True
                self._journal.done(self._entries[node], ended=True)

    def _present(self) -> list[str]:
        """Returns the nodes that came up and have not failed, connected or not."""
        return [
            node
            for node, supervisor in self._supervisors.items()
            if node not in self._absent and not supervisor.failure
        ]

    def _outcomes(self) -> list[NodeOutcome]:
        return [*({n: k.outcome() for n, k in self._supervisors.items()} | self._absent).values()]
