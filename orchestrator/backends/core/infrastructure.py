"""The infrastructure below a run's nodes on CORE: one host, one session, and the nodes' motion."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.backends.core.driver_client import (
    CoreDriver,
    CoreError,
    Created,
    Moving,
    SessionStatus,
    Welcome,
    remove,
)
from orchestrator.backends.core.marks import new_mark
from orchestrator.backends.core.preflight import Observed, preflight_of, problems
from orchestrator.backends.core.session import INTERFACE, pixel_paths, session_of
from orchestrator.backends.core.session_leftovers import JOURNAL_KIND
from orchestrator.backends.remote.access import known_hosts_of
from orchestrator.backends.remote.requirements import require
from orchestrator.backends.remote.site import Site
from orchestrator.deployment.bundle import bundle_for
from orchestrator.deployment.deploy import Deployed, deploy
from orchestrator.deployment.facts import probe
from orchestrator.deployment.needs import needs_of
from orchestrator.errors import RoveError
from orchestrator.host_load.remote import RemoteHostWatch
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Progress
from orchestrator.runs.journal import Journal
from orchestrator.services.registry import service_of
from orchestrator.ssh.connection import Connection

PERIOD_S = 0.1
"""Nodes move ten times a second, as in all backends."""
MOST_LATE = 0.01
"""Share of updates that may come more than one period late: with more, the motion is not the seed's."""
LATEST_S = 2.5 * PERIOD_S
"""No update may be later than this."""
HOST = "CORE's host"
NODES_A_CONNECTION = 6
"""Each node holds a channel for the whole run, and sshd allows ten a connection."""
WATCH_S = 2.0
RETURN_S = 10.0
"""Time for a lost host to come back."""
_LOG = "core.log"


class CoreInfrastructure:
    def __init__(self, run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> None:
        experiment = run.experiment
        assert experiment.topology.core is not None, "the experiment was validated"
        self._core = experiment.topology.core
        self._experiment = experiment
        self._run = run
        self._directory = directory
        self._log = directory / _LOG
        self._journal = journal
        topology = experiment.topology
        self._trace = generate_trace(topology, experiment.seed, experiment.warmup + experiment.duration)
        self._mark = new_mark(run_id)
        self._session = session_of(topology, self._mark.text, self._trace)
        self._preflight = preflight_of(topology, self._session)
        self._connections: list[Connection] = []
        self._driver: CoreDriver | None = None
        self._intent: int | None = None
        self._welcome: Welcome | None = None
        self._created: Created | None = None
        self._observed: list[Observed] = []
        self._moving: Moving | None = None
        self._status: SessionStatus | None = None
        self._watching: asyncio.Task[None] | None = None
        self._deployed: Deployed | None = None
        self._load: RemoteHostWatch | None = None
        self._broken: RoveError | None = None

    async def open(self, progress: Progress) -> Mapping[str, Site | RoveError]:
        known = known_hosts_of(self._experiment)
        host = self._core.machine()
        # The driver has a connection of its own, so that nodes' traffic cannot delay it.
        for _ in range(1 + -(-len(self._session.nodes) // NODES_A_CONNECTION)):
            self._connections.append(await Connection.open(host, known))
        await require(self._connections[0], service_of(self._experiment.routing), privilege=False)
        created = await self._create()
        await self._try_out()
        return await self._sites(created, progress)

    async def begin(self) -> None:
        driver = self._driven()
        if self._deployed is not None:
            place, log = self._directory, self._log
            self._load = await RemoteHostWatch.start(self._connections[0], self._deployed, place, log)
        self._watching = asyncio.create_task(self._watch(driver), name="core")

    async def move(self) -> None:
        self._moving = await self._driven().move(pixel_paths(self._trace, self._session.air), PERIOD_S)

    def check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def doubts(self) -> Sequence[str]:
        return motion_doubts(self._status) if self._status is not None else []

    def facts(self) -> Mapping[str, Any]:
        if self._welcome is None or self._created is None:
            return {}
        trials = self._preflight.trials if self._preflight is not None else ()
        return {
            "core": {
                "version": self._welcome.version,
                "session": self._created.session,
                "location": msgspec.to_builtins(self._session.location),
                "air": msgspec.to_builtins(self._session.air),
                "preflight": [
                    {"expected": msgspec.to_builtins(trial), "observed": msgspec.to_builtins(seen)}
                    for trial, seen in zip(trials, self._observed, strict=False)
                ],
                "motion": {
                    **(msgspec.to_builtins(self._moving) if self._moving else {}),
                    **(msgspec.to_builtins(self._status) if self._status else {}),
                },
            }
        }

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        driver, self._driver = self._driver, None
        load, self._load = self._load, None
        try:
            if load is not None:
                await load.close()
            if driver is not None:
                await self._end(driver)
        finally:
            connections, self._connections = self._connections, []
            await asyncio.gather(*(connection.close() for connection in connections))

    async def _end(self, driver: CoreDriver) -> None:
        try:
            with suppress(CoreError):  # it may be lost, or have no session
                self._status = await driver.status()
            with suppress(CoreError):
                await driver.delete()
        finally:
            await driver.close()
        if self._intent is not None:
            # Verifies the deletion, and cleans up after a lost driver or daemon: by the run's mark, and by
            # what was recorded.
            await self._connections[0].ensure(RETURN_S)
            if left := await remove(self._connections[0], self._core, self._mark):
                raise CoreError(f"still on CORE's host: {', '.join(left)}")
            self._journal.done(self._intent, removed=True)

    async def _create(self) -> Created:
        self._driver = await CoreDriver.start(self._connections[0], self._core, self._log)
        self._welcome = await self._driver.hello()
        host, token = str(self._core.machine()), self._mark.token
        self._intent = self._journal.intend(JOURNAL_KIND, host=host, token=token)
        self._created = await self._driver.create(self._session, self._mark.ledger)
        made = {"session": self._created.session, "directory": self._created.directory}
        self._journal.done(self._intent, **made)
        return self._created

    async def _try_out(self) -> None:
        if self._preflight is None:
            return
        self._observed = await self._driven().try_out(self._preflight)
        if found := problems(self._preflight, self._observed, self._session.air):
            raise CoreError("; ".join(found))

    async def _sites(self, created: Created, progress: Progress) -> dict[str, Site | RoveError]:
        """The nodes share the host's files, so each bundle is deployed once."""
        facts = await probe(self._connections[0])
        there: dict[str, Deployed | RoveError] = {}
        sites: dict[str, Site | RoveError] = {}
        for number, node in enumerate(self._session.nodes):
            connection = self._connections[1 + number // NODES_A_CONNECTION]
            try:
                needs = needs_of(self._run.apps.values(), node.name, self._experiment.routing)
                bundle = await asyncio.to_thread(bundle_for, facts, needs)
            except RoveError as error:
                sites[node.name] = error
                continue
            if bundle.digest not in there:
                try:
                    there[bundle.digest] = await deploy(self._connections[0], facts, bundle, progress)
                except RoveError as error:
                    there[bundle.digest] = error
            deployed = there[bundle.digest]
            if isinstance(deployed, RoveError):
                sites[node.name] = deployed
                continue
            self._deployed = deployed
            enter = tuple(created.enter[node.name])
            sites[node.name] = Site(node.name, connection, deployed, node.address, INTERFACE, enter)
        return sites

    async def _watch(self, driver: CoreDriver) -> None:
        while self._broken is None:
            try:
                self._status = await driver.status()
                self._broken = _fault(self._status)
            except CoreError as error:
                self._broken = error
            await asyncio.sleep(WATCH_S)

    def _driven(self) -> CoreDriver:
        assert self._driver is not None, "it is open"
        return self._driver


def motion_doubts(status: SessionStatus) -> list[str]:
    """Checks whether nodes were where the seed puts them: positions are due every ``PERIOD_S``."""
    if status.late_rounds <= MOST_LATE * status.rounds and status.late_s <= LATEST_S:
        return []
    return [
        f"CORE moved the nodes late: {status.late_rounds} of {status.rounds} times by more than "
        f"{PERIOD_S:g} s (limit {MOST_LATE:.0%}), once by {status.late_s:.2f} s (limit {LATEST_S:g} s)"
    ]


def _fault(status: SessionStatus) -> CoreError | None:
    if status.failure:
        return CoreError(status.failure)
    if status.state != "RUNTIME":
        why = status.state.lower() or "somebody deleted it, or core-daemon was restarted"
        return CoreError(f"CORE's session is gone: {why}")
    return None
