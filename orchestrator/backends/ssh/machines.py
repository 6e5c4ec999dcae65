"""The machines of the backend ``ssh``: connects to each, inspects it and deploys to it, all in parallel."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from node_agent.host.setup.facts import FactsError, InterfaceState, facts_command, read_facts
from orchestrator.backends.remote.access import known_hosts_of
from orchestrator.backends.remote.requirements import NotReady, require, require_free
from orchestrator.backends.remote.site import Site
from orchestrator.deployment.bundle import bundle_for
from orchestrator.deployment.deploy import Deployed, deploy
from orchestrator.deployment.facts import NodeFacts, probe
from orchestrator.deployment.needs import needs_of
from orchestrator.errors import RoveError
from orchestrator.planning.planned import PlannedRun
from orchestrator.planning.setup_orders import setup_order, shapes_links
from orchestrator.runs.backend import Progress
from orchestrator.services.registry import service_of
from orchestrator.spec.hosts import RealNode
from orchestrator.spec.inventory import Profile
from orchestrator.ssh.connection import CONNECT_S, Connection
from orchestrator.ssh.errors import TransferBroken, Unreachable
from orchestrator.ssh.fleet import on_all

ATTEMPTS = 4
DEPLOYING = 0.75
"""The share of ``timeouts.up`` that a node may take until it can be started; then the others go on."""


@dataclass(frozen=True)
class _Reached:
    connection: Connection
    facts: NodeFacts
    packages: Mapping[str, str]
    deployed: Deployed
    state: InterfaceState | None


class Machines:
    def __init__(self, run: PlannedRun, run_id: str) -> None:
        self._run = run
        self._experiment = experiment = run.experiment
        self._run_id = run_id
        self._nodes = experiment.topology.real_nodes()
        self._service = service_of(experiment.routing)
        self._known = known_hosts_of(experiment)
        self._connections: dict[str, Connection] = {}
        self._reached: dict[str, _Reached] = {}

    async def open(self, progress: Progress) -> Mapping[str, Site | RoveError]:
        sent = dict.fromkeys(self._nodes, 0.0)

        def tell(name: str, fraction: float) -> None:
            sent[name] = fraction
            progress(sum(sent.values()) / len(sent))

        found = await on_all(self._nodes, lambda node: self._reach(node, partial(tell, node.host.name)))
        self._reached = {name: one for name, one in found.items() if isinstance(one, _Reached)}
        states = {name: one.state for name, one in self._reached.items()}
        hardware = {name: state.hardware for name, state in states.items() if state is not None}
        return {
            name: one if isinstance(one, RoveError) else self._site(name, one, hardware)
            for name, one in found.items()
        }

    async def begin(self) -> None:
        """Does nothing: each machine is watched by its own supervisor."""

    async def move(self) -> None:
        """Does nothing: real machines are not moved."""

    def check(self) -> None:
        """Does nothing: machines fail one by one and share nothing that could break."""

    def doubts(self) -> Sequence[str]:
        return ()

    def facts(self) -> Mapping[str, Any]:
        return {
            "nodes": {
                name: {
                    "python": ".".join(map(str, one.facts.version)),
                    "machine": one.facts.machine,
                    "system": one.facts.system,
                    "profile": self._nodes[name].host.profile.value,
                    "packages": one.packages,
                }
                for name, one in self._reached.items()
            }
        }

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    def _site(self, name: str, reached: _Reached, hardware: Mapping[str, str]) -> Site | RoveError:
        node, topology = self._nodes[name], self._experiment.topology
        setup = setup_order(topology, name, hardware, self._run_id)
        state = reached.state
        own = [address.partition("/")[0] for address in state.addresses] if state is not None else []
        if setup is None and state is not None and node.address not in own:
            has = f"it has {', '.join(own)}" if own else "it has none"
            text = f"{node.interface} does not have the address {node.address} ({has})"
            return NotReady(name, f"{text}: configure it, or let Rove do it with setup: (docs/nodes.md)")
        return Site(
            node=name,
            connection=reached.connection,
            deployed=reached.deployed,
            address=node.address,
            interface=node.interface,
            setup=setup,
            starts_daemon=node.daemon == "start",
        )

    async def _reach(self, node: RealNode, progress: Progress) -> _Reached:
        limit = DEPLOYING * self._experiment.timeouts.up
        try:
            async with asyncio.timeout(limit):
                return await self._persist(node, progress)
        except TimeoutError:
            text = f"not deployed to within {limit:g} s: what is slow needs a longer timeouts.up"
            raise NotReady(node.host.name, text) from None

    async def _persist(self, node: RealNode, progress: Progress) -> _Reached:
        name = node.host.name
        connection = self._connections[name] = Connection(node.host, self._known)
        await connection.ensure(CONNECT_S)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await connection.ensure(CONNECT_S)
                return await self._prepare(node, connection, progress)
            except (Unreachable, TransferBroken):
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _prepare(self, node: RealNode, connection: Connection, progress: Progress) -> _Reached:
        name = node.host.name
        facts = await probe(connection)
        service = self._service if node.daemon == "start" else None
        await require(connection, service, privilege=self._sets_up(name))
        needs = needs_of(self._run.apps.values(), name, self._experiment.routing)
        bundle = await asyncio.to_thread(bundle_for, facts, needs)
        deployed = await deploy(connection, facts, bundle, progress)
        await require_free(connection, deployed, self._run_id)
        progress(1.0)
        return _Reached(connection, facts, bundle.versions(), deployed, await self._look(node, connection))

    def _sets_up(self, name: str) -> bool:
        topology = self._experiment.topology
        return shapes_links(topology) or setup_order(topology, name, {}, self._run_id) is not None

    async def _look(self, node: RealNode, connection: Connection) -> InterfaceState | None:
        """Returns None if it cannot be known and is not needed."""
        done = await connection.run(facts_command(node.interface))
        try:
            return read_facts(done.stdout.decode(errors="replace"))
        except FactsError as error:
            if node.host.profile is Profile.TERMUX and not shapes_links(self._experiment.topology):
                return None  # Android does not let apps read it
            errors = done.stderr.decode(errors="replace").strip() or str(error)
            raise NotReady(node.host.name, errors) from error
