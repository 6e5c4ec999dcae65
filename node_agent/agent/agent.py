"""One node's agent: runs the applications of a run, and writes the node's telemetry.

The owner starts it, opens the sources when the whole testbed is ready, and stops it. An unexpected error
inside stops the agent and is kept as ``failure``.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from node_agent import __version__
from node_agent.agent.config import AgentConfig, BadConfig, ChosenApp, check
from node_agent.agent.costs import AgentCosts, Routed
from node_agent.agent.readings import link_samples, log_samples, own_links, process_samples
from node_agent.agent.taps import Taps, within_bounds
from node_agent.apps.base import Application, AppUnusable, Surroundings
from node_agent.apps.tasks import Tasks
from node_agent.extensions.errors import explain
from node_agent.extensions.failures import Failures
from node_agent.linkstate.base import LinkState, LinkStateUnavailable
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.cost_graph import CostGraph
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import (
    AgentStart,
    AgentStop,
    Event,
    ExtensionFailed,
    Neighbours,
    RefusalCount,
)
from node_agent.ports import Address, Port
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.transport.authentication import Credentials
from node_agent.transport.keys import app_keys

OVERHEAD_TIMEOUT = 1.0
STOP_TIMEOUT = 10.0


class AgentFailed(Exception):
    """An error inside the agent from which it cannot continue."""


class Agent:
    """Takes over the log: ``stop`` closes it."""

    def __init__(
        self,
        config: AgentConfig,
        port: Port,
        link_state: LinkState,
        log: SegmentLog,
        overhead: OverheadSource | None = None,
        directory: Path | None = None,
        refusals: Refusals | None = None,
        failures: Failures | None = None,
        routed: Routed | None = None,
    ) -> None:
        """``overhead``: reads what the node's routing daemon has sent. ``directory``: the node's own, for
        files of its applications. ``refusals``: what ``link_state`` refused; ``failures``: its errors, if it
        is an extension. ``routed``: which nodes the kernel has routes to. Raises BadConfig.
        """
        chosen = check(config)
        watched = (app.kind.watched(app.config, config.node) for app in chosen)
        self._sends_to = frozenset(node for each in watched for node in each.direct)
        self.config = config
        self.failure: AgentFailed | None = None
        self._port = port
        self._log = log
        self._directory = directory
        self._recorded_refusals: dict[tuple[str, str, str], int] = {}
        self._core = asyncio.Semaphore(config.cores)
        self.refusals = refusals or Refusals()
        """What this agent refused, and from whom."""
        self.refusals.set_members(
            [*config.addresses, *(address.host for address in config.addresses.values())]
        )
        self._failures = failures or Failures()
        self._costs = AgentCosts(config.node, link_state, config.node_costs, routed)
        self._started_ns = port.now_ns()
        self._taps = Taps(log, self._failures) if config.watch is not None else None
        self._record = self._taps.agents() if self._taps is not None else log.append
        self._neighbours: Neighbours | None = None
        self.apps = {app.name: self._build(index, app) for index, app in enumerate(chosen)}
        self._overheads: list[tuple[OverheadSource, Callable[[Event], None]]] = []
        if overhead is not None:
            self._overheads.append((overhead, self._record))
        for name, app in self.apps.items():
            if sources := app.overheads():
                record = self._taps.agents(name) if self._taps is not None else log.recorder(name)
                self._overheads += ((source, record) for source in sources)
        self._tasks = Tasks(self._fail)
        self._failed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether the network layer has reported costs, and every application can begin."""
        return self._costs.known and self._apps_ready()

    async def ways(self) -> dict[str, float]:
        """Returns the other nodes that the network layer has a route to, and the costs of reaching them; none
        before the applications are ready.
        """
        return await self._costs.ways() if self._apps_ready() else {}

    @property
    def sends_to(self) -> frozenset[str]:
        """The nodes that its applications may send to, by the costs of reaching them."""
        return self._sends_to

    async def start(self) -> None:
        """Starts the applications; sources stay closed. If it fails, the agent is stopped."""
        try:
            parts = tuple(part for app in self.apps.values() for part in app.status().parts)
            self._record(AgentStart(__version__, self._port.clock_name, parts))
            for app in self.apps.values():
                await app.start()
        except Exception as error:
            await self.stop(f"could not start: {error}")
            raise
        self._tasks.spawn("sampler", self._sample())
        if self._overheads:
            self._tasks.spawn("overhead", self._sample_overhead())
        if (watch := self.config.watch) is not None:
            self._tasks.spawn("flush", self._flush(watch.flush_period))
            if watch.neighbours_period is not None:
                self._tasks.spawn("neighbours", self._watch_neighbours(watch.neighbours_period))

    async def metrics(self) -> tuple[Sample, ...]:
        """Returns what the agent and its applications report now; nothing if it is not to be watched."""
        if self._taps is None:
            return ()
        links = await own_links(self._costs, self.config.addresses)
        own = (*log_samples(self._log, self._started_ns), *process_samples(), *link_samples(links))
        return tuple(within_bounds((*own, *self._taps.samples())))

    def open_sources(self) -> None:
        for name, app in self.apps.items():
            try:
                app.open()
            except Exception as error:
                self._fail_in(name, "open", error)

    async def stop(self, reason: str) -> None:
        """Ends everything the agent began, then closes the log. May be repeated: the first reason counts.

        Does not raise errors of stopping; they are in ``failure``.
        """
        self._begin_stop(reason)
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def wait_failed(self) -> AgentFailed:
        """Returns only if something fails; the agent is then stopping or stopped."""
        while self.failure is None:
            await self._failed.wait()
        return self.failure

    def _build(self, index: int, app: ChosenApp) -> Application:
        config = self.config
        around = Surroundings(
            app=app.name,
            run=config.run,
            node=config.node,
            boot=self._log.boot,
            port=self._port,
            record=self._recorder(app),
            link_state=self._costs,
            addresses={node: Address(at.host, at.port + index) for node, at in config.addresses.items()},
            credentials=Credentials(config.run, config.node, app_keys(config.keys, app.name)),
            links=config.links,
            refusals=self.refusals,
            directory=self._directory,
            scratch=self._log.directory,
            core=self._core,
            fail=partial(self._fail_in, app.name),
            failures=self._failures,
            flush=self._log.flush,
        )
        try:
            return app.kind.build(app.config, around)
        except Exception as error:
            reason = str(error) if isinstance(error, AppUnusable) else explain(error)
            raise BadConfig(f"agent {config.node} cannot run: {app.name}: {reason}") from error

    def _recorder(self, app: ChosenApp) -> Callable[[Event], None]:
        if self._taps is None:
            return self._log.recorder(app.name)
        return self._taps.recorder(app.name, app.kind.metrics)

    def _apps_ready(self) -> bool:
        return all(app.status().ready for app in self.apps.values())

    async def _sample(self) -> None:
        while True:
            await self._port.sleep(self.config.sample_period)
            self._sample_apps()
            self._sample_counts()
            self._log.flush()

    def _sample_apps(self) -> None:
        for name, app in self.apps.items():
            try:
                app.sample()
            except Exception as error:
                self._fail_in(name, "sample", error)

    def _sample_counts(self, last: bool = False) -> None:
        """Records counts that have doubled, because others can make them grow; if ``last``, all that are
        new.
        """
        for failed in self._failures.to_record(last):
            self._record(ExtensionFailed(**asdict(failed)))
        for each in self.refusals:
            what, source, reason, count = each.what, each.source, each.reason, each.count
            recorded = self._recorded_refusals.get((what, source, reason), 0)
            if count >= 2 * recorded or (last and count > recorded):
                self._recorded_refusals[what, source, reason] = count
                self._record(RefusalCount(what, source, reason, count))

    async def _flush(self, period: float) -> None:
        while True:
            await self._port.sleep(period)
            self._log.flush()

    async def _watch_neighbours(self, period: float) -> None:
        while True:
            await self._port.sleep(period)
            links = await own_links(self._costs, self.config.addresses)
            if links is not None:
                self._record_neighbours(links)

    def _record_neighbours(self, links: CostGraph) -> None:
        costs = {peer: round(cost, 3) for row in links.costs.values() for peer, cost in row.items()}
        seen = Neighbours(links.metric, links.source, costs)
        if seen != self._neighbours:
            self._neighbours = seen
            self._record(seen)

    async def _sample_overhead(self) -> None:
        while True:
            await self._port.sleep(self.config.overhead_period)
            await self._record_overhead()

    async def _record_overhead(self) -> None:
        for source, record in self._overheads:
            try:
                async with asyncio.timeout(OVERHEAD_TIMEOUT):
                    counted = await source.read()
            except (LinkStateUnavailable, TimeoutError):
                continue  # counters only grow: the next sample includes this one
            for event in counted:
                record(event)

    def _fail_in(self, app: str, where: str, error: BaseException) -> None:
        self._fail(f"{app}: {where}", error)

    def _fail(self, where: str, error: BaseException) -> None:
        if self.failure is None:
            self.failure = AgentFailed(f"{where}: {type(error).__name__}: {error}")
            self.failure.__cause__ = error
            self._failed.set()
        self._begin_stop(f"failed: {self.failure}")

    def _begin_stop(self, reason: str) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(reason), name=f"stop {self.config.node}")

    async def _stop(self, reason: str) -> None:
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                self._tasks.cancel()
                await self._stop_apps()
                await self._tasks.wait()
                await self._record_overhead()
        except TimeoutError as error:
            self._fail("stop", error)
        self._sample_apps()
        try:
            self._sample_counts(last=True)
            self._record(AgentStop(reason))
            self._log.close()
        except LogError as error:
            self._fail("telemetry", error)

    async def _stop_apps(self) -> None:
        stops = (app.stop() for app in self.apps.values())
        for name, error in zip(self.apps, await asyncio.gather(*stops, return_exceptions=True), strict=True):
            if isinstance(error, Exception):
                self._fail_in(name, "stop", error)
