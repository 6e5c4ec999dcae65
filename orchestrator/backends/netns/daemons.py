"""Runs a routing daemon on every node of an emulation: starts, watches and stops it."""

import asyncio
import secrets
import signal
from pathlib import Path

from node_agent.transport.keys import KEY_SIZE
from orchestrator.backends.agent_settings import routing_seed
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import ForkServer, Launch
from orchestrator.backends.netns.layout import RADIO_LINK
from orchestrator.backends.netns.watched import Watched
from orchestrator.services.base import Place, RoutingService
from orchestrator.services.program import Module
from orchestrator.spec.topology import NODE_NETWORK

LOG = "routing.log"


class Daemons:
    def __init__(self, service: RoutingService, emulation: Emulation, directory: Path, seed: int) -> None:
        """Files and logs go to ``directory/nodes/<node>``."""
        self._service = service
        self._emulation = emulation
        self._directory = directory
        self._seed = seed
        self._key = secrets.token_bytes(KEY_SIZE)
        self._running: dict[str, Watched] = {}
        self._never_started: dict[str, str] = {}

    async def start(self, server: ForkServer) -> None:
        await asyncio.gather(*(self._start(server, node) for node in self._emulation.hosts))

    def failure(self, node: str) -> str:
        """Returns why the node has no routing daemon (any more); empty if it has one."""
        running = self._running.get(node)
        return running.failure if running is not None else self._never_started.get(node, "")

    async def stop(self) -> None:
        """Stops the daemons in order, so that they remove their routes
        from the kernel, within a time limit."""
        await asyncio.gather(*(daemon.end(signal.SIGTERM) for daemon in self._running.values()))

    async def close(self) -> None:
        """Stops watching them; the fork server ends them. May be repeated."""
        for daemon in self._running.values():
            await daemon.close()

    async def _start(self, server: ForkServer, node: str) -> None:
        place, directory = self._place(node), self._directory / "nodes" / node
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self._service.files(place).items():
            (directory / name).touch(mode=0o600)  # the group's key may be in it
            (directory / name).write_text(content)
        log = directory / LOG
        program = self._service.program(place)
        here = program.entry() if isinstance(program, Module) else program.found_here()
        launch = Launch(here, self._emulation.namespace(node), stdout=log, stderr=log, limit_files=True)
        what = f"the routing daemon ({self._service.protocol})"
        try:
            self._running[node] = Watched(what, await server.spawn(launch), log)
        except ForkServerError as error:
            self._never_started[node] = f"{what} could not be started: {error}"

    def _place(self, node: str) -> Place:
        return Place(
            node,
            self._emulation.hosts[node],
            NODE_NETWORK,
            RADIO_LINK,
            self._directory / "nodes" / node,
            routing_seed(self._seed, node),
            tuple(self._emulation.hosts.values()),
            self._key,
            self._emulation.stations(node),
        )
