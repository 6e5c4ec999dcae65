"""Emulates a topology on this machine: namespaces as nodes, the radio between them, true routes if wanted.

A run starts agents on it; `rove up` leaves it to the user.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from node_agent.model.cost_graph import CostGraph
from orchestrator.backends.netns import executor, names, network
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.executor import Descriptors
from orchestrator.backends.netns.layout import Layout, RadioEnd, numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import RadioConfig, radio_config
from orchestrator.backends.netns.routes import Routes
from orchestrator.mobility.generate import generate_trace
from orchestrator.radio.changes import AirChanges
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.truth import Links, counted_in_hops, true_costs
from orchestrator.runs.backend import RadioSeen
from orchestrator.runs.journal import Journal
from orchestrator.services.base import TrueRoutes
from orchestrator.spec.topology import Topology

DOWN_S = 15.0
BY_TRUTH = TrueRoutes("etx")
OnCosts = Callable[[CostGraph], None]


def layout_of(topology: Topology, queue_length: int, ipv6: bool = False) -> Layout:
    """Returns the layout: each node has a /32 address, so that routing decides which nodes are reached
    how."""
    layout = numbered(topology.node_names)
    hosts = topology.addresses()
    nodes = tuple(replace(node, radio=IPv4Interface(f"{hosts[node.name]}/32")) for node in layout.nodes)
    usable = os.access(executor.TUN_DEVICE, os.R_OK | os.W_OK)
    # Permanent neighbours: a lost ARP request would delay a first packet by a second, in some runs only.
    return replace(
        layout,
        nodes=nodes,
        queue_length=queue_length,
        static_neighbours=True,
        radio_end=RadioEnd.TAP if usable else RadioEnd.PACKET,
        ipv6=ipv6,
    )


class Emulation:
    def __init__(
        self,
        topology: Topology,
        seed: int,
        seconds: float,
        mark: Mark,
        journal: Journal,
        true_routes: TrueRoutes | None = BY_TRUTH,
        on_costs: OnCosts = lambda graph: None,
        ipv6: bool = False,
        stations: Path | None = None,
        waits: bool = False,
    ) -> None:
        """Nodes move for ``seconds``; after that they stay where they are, and no contact begins.
        ``stations``: the folder where each node's daemon finds what its radio knows of its links; None: no
        daemon asks. ``waits``: nodes begin to move when ``begin_moving`` is called, not at once.

        ``true_routes``: install these routes over the true links, and pass the links' costs to ``on_costs``;
        None leaves routes to a daemon.
        """
        self._settings = air_settings(topology)
        self._contacts = topology.contact_plan(seed, seconds)
        # Frames wait in the kernel's queue, which serves as the MAC's. With contacts each link has its own.
        queue = self._settings.mac.queue_limit
        self.layout = layout_of(topology, queue if self._contacts is None else max(queue, 100), ipv6)
        self.doubts: tuple[str, ...] = ()
        """Why the numbers must not be used; complete once the radio has stopped."""
        self._topology = topology
        self._seed = seed
        self._seconds = seconds
        self._waits = waits
        self._mark = mark
        self._journal = journal
        self._true_routes = true_routes
        self._on_costs = on_costs
        self._stations = stations if self._contacts is None else None
        self._hosts = {node.name: node.radio.ip for node in self.layout.nodes}
        self._intended = False
        self._building: asyncio.Future[None] | None = None
        self._ends: Descriptors = {}
        self._routes: Routes | None = None
        self._air: RadioProcess | None = None
        self._links: Links = {}
        self._routed: Links | None = None
        self._broken: Exception | None = None

    @property
    def hosts(self) -> dict[str, IPv4Address]:
        """Returns each node's address on the radio network."""
        return dict(self._hosts)

    @property
    def links(self) -> Links:
        """Returns the true links as last reported by the radio, with the transmissions that each takes."""
        return self._links

    def stations(self, node: str) -> Path | None:
        """Returns the file with what the node's radio knows of its links."""
        return None if self._stations is None else self._stations / node

    def namespace(self, node: str) -> Path:
        return names.HOST_NAMES / self._mark.namespace(node)

    async def up(self) -> None:
        await self._build()
        config = self._radio_config()
        intent = self._journal.intend("process", mark=self._mark.run_id, what="radio")
        self._air = RadioProcess(on_links=self._follow)
        await self._air.start(config, self._ends)
        self._journal.done(intent, pid=self._air.pid)
        self._close_ends()

    def check(self) -> None:
        """Raises if the network has failed."""
        if self._broken is not None:
            raise NetworkError(f"the network broke: {self._broken}") from self._broken
        if self._air is not None:
            self._air.check()

    async def change_air(self, changes: AirChanges) -> None:
        """Lets exactly these changes hold from now on; returns when it is done."""
        if self._air is not None:
            await self._air.change(changes)

    async def begin_moving(self) -> int:
        """Lets the nodes begin to move; returns when they do, with the moment (Unix time, ns)."""
        assert self._air is not None, "it is up"
        return await self._air.move()

    def why_unchangeable(self) -> str:
        """Returns why nobody can change the air now; empty if one can."""
        return "" if self._air is not None else "the network is not up now"

    async def lateness(self) -> RadioSeen | None:
        """Asks the radio how late it has been so far; None if it does not run. Raises RadioFailed."""
        if self._air is None:
            return None
        report = await self._air.lateness()
        return RadioSeen(report.late_ratio, report.p99_us)

    async def stop_radio(self) -> None:
        """Stops the radio and reads its report. May be repeated."""
        air, self._air = self._air, None
        if air is not None:
            report = await air.stop()
            self.doubts = tuple(report.problems)

    async def down(self) -> None:
        """Removes everything that has the mark; raises NetworkError if something is left. May be repeated."""
        if self._building is not None:
            await asyncio.wait([self._building])
            self._building.exception()  # marks it as retrieved: waiting callers have got the error
        try:
            with suppress(Exception):  # it is ended below in any case
                await self.stop_radio()
        finally:
            if self._routes is not None:
                self._routes.close()
            self._close_ends()
            left = await asyncio.to_thread(network.down, self._mark, timeout=DOWN_S) if self._intended else []
        if left:
            raise NetworkError(f"still there: {', '.join(map(str, left))}")

    async def _build(self) -> None:
        intent = self._journal.intend(network.JOURNAL_KIND, mark=self._mark.run_id)
        self._intended = True
        # A thread cannot be cancelled: what it made is in ``_ends``, for the cleanup.
        self._building = asyncio.ensure_future(asyncio.to_thread(self._build_now))
        await asyncio.shield(self._building)
        self._journal.done(intent, namespaces=len(self.layout.nodes) + 1)

    def _build_now(self) -> None:
        self._ends = network.up(self.layout, self._mark)
        if self._true_routes is not None:
            self._routes = Routes({node: self.namespace(node) for node in self._hosts}, self._hosts)

    def _radio_config(self) -> RadioConfig:
        trace = generate_trace(self._topology, self._seed, self._seconds)
        radio, mac = self._settings
        return radio_config(
            self._mark,
            self.layout,
            trace,
            radio,
            mac,
            self._seed,
            self._stations,
            self._waits,
            self._contacts,
            self._topology.wire_links(),
        )

    def _follow(self, links: Links) -> None:
        self._links = links
        wanted = self._true_routes
        if wanted is None or self._broken is not None or self._routes is None:
            return
        if wanted.metric == "hops":
            links = counted_in_hops(links)
        if links == self._routed:
            return
        self._routed = links
        try:
            self._routes.install(links, wanted.relays)
        except (OSError, NetworkError) as error:
            self._broken = error
            return
        self._on_costs(true_costs(links, time.time_ns(), *wanted))

    def _close_ends(self) -> None:
        ends, self._ends = self._ends, {}
        for descriptor in ends.values():
            os.close(descriptor)
