"""What the server answers to Prometheus: metrics of a node, of a run, of all runs, and the list of targets.

    async with Offer(live_runs) as offer:
        content, content_type = await offer.node(directory, "n03", request.headers.get("Accept", ""))

The server only routes. A node is asked through its run's door; what it answers is checked against the list of
metrics. Runs are read in threads, when they are asked for.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from node_agent.telemetry.metrics import Sample
from orchestrator.live.door import Watching, node_metrics
from orchestrator.live.facts import RunFacts, read_facts
from orchestrator.live.metrics import RUNS_WATCHED, SAMPLES_REFUSED, metrics
from orchestrator.live.prometheus.checking import MOST_RUN_SERIES, checked
from orchestrator.live.prometheus.exposition import Exposition, Labelled, exposition
from orchestrator.live.prometheus.run_gauges import RunGauges
from orchestrator.live.prometheus.targets import RunTarget, run_target, service_discovery
from orchestrator.live.run import LiveRun
from orchestrator.runs.run_directory import RunDirectory

NODE_TIMEOUT_S = 4.0
"""Less than Prometheus waits."""
READ_S = 2.0
"""The longest time that one scrape reads a run's files for; the next one goes on from there."""
MOST_RUNS = 64
LINGER_S = 30.0
"""How long a run that has ended is still offered, without its nodes: several scrapes see its verdict."""

LiveRuns = Callable[[], Sequence[RunDirectory]]
"""Returns the runs that go on; may block for a moment."""


class Offer:
    """``live_runs`` decides what is offered; a run that has ended stays for ``linger_s``, without its nodes.
    Safe for many requests at once; must be closed.
    """

    def __init__(self, live_runs: LiveRuns, linger_s: float = LINGER_S) -> None:
        self._live_runs = live_runs
        self._linger_s = linger_s
        self._watched: dict[str, _WatchedRun] = {}
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> "Offer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def node(self, run: RunDirectory, node: str, accept: str = "") -> Exposition | None:
        """Returns None if the run does not go on or has no such node. Raises NotLive if the node does not
        answer in time.
        """
        watched = await self._find(run)
        if watched is None or node not in watched.target.nodes:
            return None
        answered = await node_metrics(run, node, NODE_TIMEOUT_S)
        registry = metrics()
        samples, refused = checked(answered, registry)
        own = Sample(SAMPLES_REFUSED, (), refused)
        return exposition([Labelled([*samples, own])], registry, accept)

    async def run(self, run: RunDirectory, accept: str = "") -> Exposition | None:
        """What the orchestrator knows of one run; None if it ended some time ago, or was never offered."""
        watched = await self._find(run)
        if watched is None:
            return None
        return exposition([Labelled(await watched.samples())], metrics(), accept)

    async def orchestrator(self, accept: str = "") -> Exposition:
        """The same of all runs that are offered, each with its labels."""
        watched = await self._all()
        going_on = sum(each.ended_at is None for each in watched)
        groups = [Labelled([Sample(RUNS_WATCHED, (), going_on)])]
        groups += [Labelled(await each.samples(), each.target.labels) for each in watched]
        return exposition(groups, metrics(), accept)

    async def discovery(self, host: str) -> Exposition:
        """The list for HTTP service discovery. ``host``: name and port by which the server was asked."""
        return Exposition(service_discovery(await self.targets(), host), "application/json")

    async def targets(self) -> list[RunTarget]:
        return [watched.target for watched in await self._all()]

    async def close(self) -> None:
        """May be repeated."""
        async with self._lock:
            for run in list(self._watched):
                await self._watched.pop(run).close()

    async def _find(self, run: RunDirectory) -> "_WatchedRun | None":
        return next((each for each in await self._all() if each.directory == run), None)

    async def _all(self) -> list["_WatchedRun"]:
        """Returns the runs that go on and are planned, and after them those that ended not long ago."""
        async with self._lock:
            found = await asyncio.to_thread(self._live_runs)
            alive = {directory.id: directory for directory in found[:MOST_RUNS]}
            await self._let_go(alive)
            for run, directory in alive.items():
                if run not in self._watched:
                    facts = await asyncio.to_thread(read_facts, directory)
                    if facts is not None:
                        self._watched[run] = _WatchedRun(directory, facts)
            return sorted(self._watched.values(), key=lambda each: each.ended_at is not None)

    async def _let_go(self, alive: Mapping[str, RunDirectory]) -> None:
        """Forgets runs that have ended: after a while, and the oldest first if there are too many."""
        now = time.monotonic()
        for run, watched in self._watched.items():
            if run in alive:
                watched.ended_at = None
            elif watched.ended_at is None:
                await watched.end(now)
        ended = {run: at for run, each in self._watched.items() if (at := each.ended_at) is not None}
        oldest = sorted(ended, key=ended.__getitem__)
        too_many = oldest[: max(0, len(alive) + len(ended) - MOST_RUNS)]
        for run in oldest:
            if run in too_many or now - ended[run] >= self._linger_s:
                await self._watched.pop(run).close()


class _WatchedRun:
    """One run. It is read from the first scrape on; nodes on other machines are then watched. ``ended_at``:
    when it was found to have ended, by the monotonic clock; None while it goes on.
    """

    def __init__(self, directory: RunDirectory, facts: RunFacts) -> None:
        self.directory = directory
        self._target = run_target(directory, facts)
        self.ended_at: float | None = None
        self._live = LiveRun(directory)
        self._gauges = RunGauges(facts)
        self._watching: Watching | None = None
        self._reading = Lock()

    @property
    def target(self) -> RunTarget:
        """Nodes of a run that has ended do not answer any more."""
        return self._target if self.ended_at is None else self._target._replace(nodes=())

    async def samples(self) -> list[Sample]:
        """Reads what is new, and returns the present figures."""
        if self._watching is None and self.ended_at is None:
            self._watching = await Watching(self.directory).__aenter__()
        return checked(await asyncio.to_thread(self._read), metrics(), MOST_RUN_SERIES).samples

    async def end(self, now: float) -> None:
        """What it left behind is still read."""
        self.ended_at = now
        await self._stop_watching()

    async def close(self) -> None:
        await self._stop_watching()
        await asyncio.to_thread(self._close)

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            watching, self._watching = self._watching, None
            await watching.__aexit__()

    def _read(self) -> list[Sample]:
        with self._reading:
            until = time.monotonic() + READ_S
            while not self._live.ended:
                changes = self._live.poll()
                self._gauges.take(changes)
                if not changes or self._live.caught_up or time.monotonic() > until:
                    break
            return list(self._gauges.samples())

    def _close(self) -> None:
        with self._reading:
            self._live.close()
