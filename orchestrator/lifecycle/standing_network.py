"""`rove up`: brings up a network without a run and holds it until the user stops it."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from node_agent.telemetry.metrics import Sample
from orchestrator.backends.by_hand import ByHand
from orchestrator.backends.fault_injector import ActiveFaults
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.kind import NETNS
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.routed import RoutedNetwork
from orchestrator.errors import BadInput, RoveError
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.radio.changes import AirChanges
from orchestrator.radio.from_spec import air_settings
from orchestrator.runs import run_directory
from orchestrator.runs.backend import Interventions
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import write_atomic, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Phase, Urgency
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.services.registry import service_of
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.routing import RoutingSection
from orchestrator.spec.topology import Topology

MOVING_S = 3600.0
"""How long nodes move, in seconds; then they stay where they are."""

CHECK_S = 1.0

Announce = Callable[[dict[str, Any]], None]
OpenDoor = Callable[[Interventions, RunDirectory], AbstractAsyncContextManager[None]]


async def hold(
    topology: Topology,
    seed: int,
    root: Path,
    run_id: str,
    interruption: Interruption,
    announce: Announce,
    routing: RoutingSection,
    open_door: OpenDoor | None = None,
) -> bool:
    """Brings the network up, announces it, holds it until the user asks to stop, takes it down.

    ``open_door`` lets others change it by hand. Returns False if the user asked to stop before it was up.
    """
    air_settings(topology)  # raises before anything is created, as does the next check
    if (service := service_of(routing)) is not None:
        service.require()
    directory = run_directory.create(root, topology.name, run_id)
    with Journal.create(directory.journal) as journal:
        write_atomic(directory.spec, to_yaml(topology.model_dump(mode="json")).encode())
        mark = Mark(directory.id, directory.path)
        network = RoutedNetwork(topology, seed, MOVING_S, mark, journal, routing)
        active = ActiveFaults(_Targets(network), {}, EventLog(directory.events))
        by_hand = ByHand(active, topology, {}, NETNS.traits, network.emulation.why_unchangeable)
        async with AsyncExitStack() as doors:
            if open_door is not None:
                intent = journal.intend("directory", path=directory.temporary.name)
                directory.temporary.mkdir()
                journal.done(intent)
                doors.callback(directory.remove_temporary)
                await doors.enter_async_context(open_door(by_hand, directory))
                doors.push_async_callback(by_hand.close)
            return await _hold(network, directory, journal, interruption, announce, doors)


class _Targets:
    """The network as far as it can be changed: no agents run on it."""

    def __init__(self, network: RoutedNetwork) -> None:
        self._network = network

    def now_ns(self) -> int:
        return time.time_ns()

    async def crash(self, node: str) -> None:
        raise BadInput("crash: no agents run on a network without a run")

    async def restart(self, node: str) -> None:
        raise BadInput("no agents run on a network without a run")

    async def change_air(self, changes: AirChanges) -> None:
        await self._network.emulation.change_air(changes)

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        return ()


async def _hold(
    network: RoutedNetwork,
    directory: RunDirectory,
    journal: Journal,
    interruption: Interruption,
    announce: Announce,
    doors: AsyncExitStack,
) -> bool:
    events = EventLog(directory.events)
    leaving = asyncio.create_task(interruption.reaches(Urgency.IN_ORDER))
    rising = asyncio.create_task(network.up())
    events.add("phase", phase=Phase.UP, state="started")
    try:
        await asyncio.wait([rising, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not rising.done():
            return False
        await rising
        document = _document(directory, network.emulation)
        write_json(directory.network, document)
        events.add("network", state="up", nodes=len(document["nodes"]))
        announce(document)
        without_daemon: dict[str, str] = {}
        while not leaving.done():
            network.emulation.check()
            _note_failures(network, without_daemon, events)
            await asyncio.wait([leaving], timeout=CHECK_S)
        return True
    except RoveError as error:
        # A process in the background has no other way to report it.
        events.add("network", state="failed", reason=str(error))
        raise
    finally:
        for task in (rising, leaving):
            task.cancel()
        await asyncio.wait([rising, leaving])
        events.add("phase", phase=Phase.DOWN, state="started")
        directory.network.unlink(missing_ok=True)
        try:
            await doors.aclose()
        finally:
            await network.down()
            journal.close()  # nothing is left, whatever ended it


def _note_failures(network: RoutedNetwork, known: dict[str, str], events: EventLog) -> None:
    """Records each node that lost its daemon (users often kill one); raises if no node has a daemon left."""
    nodes = network.emulation.hosts
    for node in nodes:
        if node not in known and (failure := network.failure(node)):
            known[node] = failure
            events.add("node", node=node, state="failed", reason=failure)
    if len(known) == len(nodes):
        node, failure = next(iter(known.items()))
        raise NetworkError(f"no node has a routing daemon any more ({node}: {failure})")


def _document(directory: RunDirectory, emulation: Emulation) -> dict[str, Any]:
    return {
        "run": directory.id,
        "directory": str(directory.path),
        "owner": os.getpid(),
        "nodes": [
            {"node": node.name, "address": str(node.radio.ip), "control": str(node.control.ip)}
            for node in emulation.layout.nodes
        ],
    }
