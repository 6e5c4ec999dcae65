"""Fetches, after a run, the records that are still on its nodes, using the run's directory alone."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from orchestrator.backends.remote.access import at_once, hosts_of, known_hosts_of
from orchestrator.backends.remote.collection import (
    Collected,
    collect,
    collected_before,
    has_place,
    note_refused,
    remove_place,
)
from orchestrator.backends.remote.ledger import NodeEntry, nodes_of
from orchestrator.backends.remote.leftovers import CONNECT_S, end_supervisor
from orchestrator.backends.remote.outcomes import outcome_of
from orchestrator.errors import RoveError
from orchestrator.runs.backend import Status
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.experiment import Experiment
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import SshError
from orchestrator.ssh.fleet import on_all

Progress = Callable[[str, float], None]
"""Called with the node that data came from, and the fraction of all data that is here."""


class Fetched(NamedTuple):
    """The result for one node's record; ``collected`` is None if it is still on the node."""

    node: str
    status: Status
    collected: Collected | None = None
    reason: str = ""


def fetch(
    directory: RunDirectory, experiment: Experiment, journal: Journal, progress: Progress
) -> list[Fetched]:
    """For every node whose record waits: ends what still runs, collects, and only then removes it there."""
    nodes = {node.node: node for node in nodes_of(directory.path) if not node.removed}
    hosts, known = hosts_of(experiment), known_hosts_of(experiment)
    share = dict.fromkeys(nodes, 0.0)

    def tell(node: str, here: int, total: int) -> None:
        share[node] = here / total if total else 1.0
        progress(node, sum(share.values()) / len(share))

    async def one(node: NodeEntry) -> Collected:
        connection = await Connection.open(hosts[node.node], known, CONNECT_S)
        try:
            into = directory.nodes / node.node
            if not await has_place(connection, node.place):
                journal.done(node.id, ended=True, removed=True)
                if node.collected:
                    return collected_before(into)
                raise SshError(node.node, f"there is nothing of the run any more in {node.place}")
            if not node.ended:
                await end_supervisor(node, connection, "rove collect")
                journal.done(node.id, ended=True)
            found = await collect(connection, node.place, into, lambda *done: tell(node.node, *done))
            note_refused(directory, node.node, found.refused)
            journal.done(node.id, collected=True)
            await remove_place(connection, node.place)
            journal.done(node.id, removed=True)
            return found
        finally:
            await connection.close()

    found = asyncio.run(on_all(nodes, one, at_once(experiment)))
    return [_fetched(name, result) for name, result in found.items()]


def _fetched(node: str, result: Collected | RoveError) -> Fetched:
    if isinstance(result, Collected):
        return Fetched(node, Status.OK, result)
    found = outcome_of(node, result)
    return Fetched(node, found.status, None, found.reason)
