"""A network without a run: brought up for people to use by hand, held until they have done with it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle import run_directory
from orchestrator.lifecycle.events import EventLog
from orchestrator.lifecycle.files import write_atomic, write_json
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.journal import Journal
from orchestrator.lifecycle.phases import Phase, Urgency
from orchestrator.lifecycle.run_directory import RunDirectory
from orchestrator.radio.from_spec import air_settings
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.topology import Topology

MOVING_S = 3600.0
"""Nodes move for an hour and then stay where they are."""

CHECK_S = 1.0

Announce = Callable[[dict[str, Any]], None]


async def hold(
    topology: Topology, seed: int, root: Path, run_id: str, interruption: Interruption, announce: Announce
) -> bool:
    """Bring it up, announce it, hold it until the user wants out, take it down.

    False if the user wanted out before it was up.
    """
    air_settings(topology)  # complains before anything is created
    directory = run_directory.create(root, topology.name, run_id)
    with Journal.create(directory.journal) as journal:
        write_atomic(directory.spec, to_yaml(topology.model_dump(mode="json")).encode())
        return await _hold(topology, seed, directory, journal, interruption, announce)


async def _hold(
    topology: Topology,
    seed: int,
    directory: RunDirectory,
    journal: Journal,
    interruption: Interruption,
    announce: Announce,
) -> bool:
    events = EventLog(directory.events)
    mark = Mark(directory.id, directory.path)
    emulation = Emulation(topology, seed, MOVING_S, mark, journal)
    leaving = asyncio.create_task(interruption.reaches(Urgency.IN_ORDER))
    rising = asyncio.create_task(emulation.up())
    events.add("phase", phase=Phase.UP, state="started")
    try:
        await asyncio.wait([rising, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not rising.done():
            return False
        await rising
        document = _document(directory, emulation)
        write_json(directory.network, document)
        events.add("network", state="up", nodes=len(document["nodes"]))
        announce(document)
        while not leaving.done():
            emulation.check()
            await asyncio.wait([leaving], timeout=CHECK_S)
        return True
    finally:
        for task in (rising, leaving):
            task.cancel()
        await asyncio.wait([rising, leaving])
        events.add("phase", phase=Phase.DOWN, state="started")
        directory.network.unlink(missing_ok=True)
        await emulation.down()
        journal.close()  # whatever ended it: nothing is left


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
