"""Finds and removes what a run left on other machines: running supervisors, and places without use.

A record that was not collected is no leftover: it stays until `rove collect` has fetched it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath

from node_agent.model.checked import Refused
from orchestrator.backends.remote.access import at_once, hosts_of, known_hosts_of
from orchestrator.backends.remote.collection import remove_place
from orchestrator.backends.remote.ledger import NodeEntry, leases_over, nodes_of
from orchestrator.backends.remote.supervisor_output import ENDINGS, PLACES
from orchestrator.errors import BadInput, RoveError
from orchestrator.planning.load import load_machines
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import CommandFailed, SshError, Unreachable
from orchestrator.ssh.fleet import on_all

CONNECT_S = 8.0
END_S = 120.0
_LOST_LAYERS = ("No module named", "No such file or directory", "not found")

Act = Callable[[NodeEntry, Connection], Awaitable[str]]


def find(directory: Path) -> list[str]:
    """Lists leftovers, and nodes that cannot be asked."""
    run = RunDirectory(directory)
    over = leases_over(run.path)
    open_nodes = [
        node
        for node in nodes_of(run.path)
        if not node.removed and (node.collected or not (node.ended or over))
    ]

    async def look(node: NodeEntry, connection: Connection) -> str:
        if node.ended:
            return f"{node.node}: {node.place}, though it was collected"
        return f"{node.node}: a supervisor" if await _is_supervised(node, connection) else ""

    return _asked(run, open_nodes, look)


def remove(directory: Path, journal: Journal) -> list[str]:
    """Ends the supervisors and removes what was collected; returns what could not be done."""
    run = RunDirectory(directory)
    todo = [node for node in nodes_of(run.path) if not node.removed]

    async def act(node: NodeEntry, connection: Connection) -> str:
        if not node.ended:
            await end_supervisor(node, connection, "rove down")
            journal.done(node.id, ended=True)
        if node.collected:
            await remove_place(connection, node.place)
            journal.done(node.id, removed=True)
        return ""

    return _asked(run, [node for node in todo if not node.ended or node.collected], act)


async def end_supervisor(node: NodeEntry, connection: Connection, reason: str) -> None:
    """Ends the supervisor in order, if it still runs. Raises SshError."""
    argv = [*node.supervisor, "end", node.place, "--reason", reason]
    done = await connection.run(argv, timeout=END_S)
    if done.status == 0:
        return
    try:
        answer = ENDINGS.decode(done.stdout)
    except Refused:
        errors = done.stderr.decode(errors="replace").strip()
        # Unused layers are pruned; if they are gone, no process of the run is left either.
        if any(sign in errors for sign in _LOST_LAYERS):
            return
        raise CommandFailed(node.node, errors[-200:] or f"end: status {done.status}") from None
    left = [f"process {pid} cannot be ended" for pid in answer.left]
    trouble = [text for text in (answer.error, answer.trouble) if text]
    raise CommandFailed(node.node, "; ".join([*left, *trouble]) or f"end: status {done.status}")


async def _is_supervised(node: NodeEntry, connection: Connection) -> bool:
    rove = PurePosixPath(node.place).parents[2]
    done = await connection.run([*node.supervisor, "status", str(rove)])
    try:
        places = PLACES.decode(done.stdout).places
    except Refused:
        return False
    return any(p.place == node.place and (p.state == "running" or p.pids) for p in places)


def _asked(run: RunDirectory, nodes: list[NodeEntry], act: Act) -> list[str]:
    """Returns what ``act`` says of each node; for unreachable ones, when they end by themselves."""
    if not nodes:
        return []
    try:
        network = load_machines(run.spec)
    except BadInput as error:
        return [f"{', '.join(node.node for node in nodes)}: cannot be asked: {error}"]
    hosts, known = hosts_of(network), known_hosts_of(network)

    async def one(node: NodeEntry) -> str:
        if node.node not in hosts:
            raise SshError(node.node, f"cannot be asked: {run.spec.name} does not say how it is reached")
        connection = await Connection.open(hosts[node.node], known, CONNECT_S)
        try:
            return await act(node, connection)
        finally:
            await connection.close()

    found = asyncio.run(on_all({node.node: node for node in nodes}, one, at_once(network)))
    return [_described(node, found[node.node]) for node in nodes if found[node.node]]


def _described(node: NodeEntry, what: str | RoveError) -> str:
    if isinstance(what, Unreachable) and not node.ended:
        return f"{node.node}: unreachable ({what.reason}); it ends by itself within {node.lease:g} s"
    if isinstance(what, SshError):
        return f"{node.node}: {what.reason}"
    return str(what)
