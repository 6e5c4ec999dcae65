"""An emulation together with its routing: true routes, or a routing daemon on every node."""

from collections.abc import Sequence

from orchestrator.backends.netns.daemons import Daemons
from orchestrator.backends.netns.emulation import Emulation, OnCosts
from orchestrator.backends.netns.forkclient import ForkServer
from orchestrator.backends.netns.marks import Mark
from orchestrator.runs.journal import Journal
from orchestrator.services.registry import routing_service
from orchestrator.spec.routing import RoutingSection
from orchestrator.spec.topology import Topology

STATIONS = "tmp/stations"


class RoutedNetwork:
    def __init__(
        self,
        topology: Topology,
        seed: int,
        seconds: float,
        mark: Mark,
        journal: Journal,
        routing: RoutingSection,
        on_costs: OnCosts = lambda graph: None,
        waits: bool = False,
    ) -> None:
        """Raises RoveError if this machine lacks what the protocol needs. See ``Emulation``."""
        found = routing_service(routing)
        self.service = found if found.has_daemon else None
        if self.service is not None:
            self.service.require()
        place = mark.directory.resolve()  # daemons have another working directory
        self.emulation = Emulation(
            topology,
            seed,
            seconds,
            mark,
            journal,
            found.true_routes(),
            on_costs,
            ipv6=self.service is not None and self.service.ipv6,
            stations=place / STATIONS if found.asks_radio() else None,
            waits=waits,
        )
        self._mark = mark
        self._journal = journal
        self._server: ForkServer | None = None
        self._daemons = Daemons(self.service, self.emulation, place, seed) if self.service else None

    @property
    def server(self) -> ForkServer:
        assert self._server is not None, "up() was called without modules"
        return self._server

    async def up(self, modules: Sequence[str] = ()) -> None:
        """``modules``: what the caller's own programs on the nodes will import (see ``ForkServer.start``)."""
        await self.emulation.up()
        if self.service is None and not modules:
            return  # nothing of ours runs on the nodes
        intent = self._journal.intend("process", mark=self._mark.run_id, what="fork server")
        of_service = self.service.modules if self.service is not None else ()
        self._server = await ForkServer.start(self._mark, [*modules, *of_service])
        self._journal.done(intent)
        if self._daemons is not None:
            await self._daemons.start(self._server)

    def failure(self, node: str) -> str:
        """Returns why the node has no routing any more; empty if it has."""
        return self._daemons.failure(node) if self._daemons is not None else ""

    async def stop(self) -> None:
        """Stops the daemons in order, then the radio. May be repeated."""
        if self._daemons is not None:
            await self._daemons.stop()
        await self.emulation.stop_radio()

    async def down(self) -> None:
        """Removes everything; raises NetworkError if something is left. May be repeated."""
        try:
            if self._daemons is not None:
                await self._daemons.close()
            if self._server is not None:
                await self._server.close()
        finally:
            await self.emulation.down()
