"""Sessions that a run left on CORE's host: found and deleted by the run's mark, and no others."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import RoveError
from orchestrator.lifecycle import journal as journals
from orchestrator.lifecycle.journal import Entry, Journal
from orchestrator.lifecycle.run_directory import RunDirectory

if TYPE_CHECKING:
    from orchestrator.spec.core import Core
    from orchestrator.ssh.connection import Connection

JOURNAL_KIND = "core-session"


def find_sessions(run_id: str, directory: Path) -> list[str]:
    """Nobody is asked about a run that has deleted its session itself."""
    if _is_removed(directory):
        return []
    return asyncio.run(_found(run_id, directory))


def remove_sessions(run_id: str, directory: Path, journal: Journal) -> None:
    """What could not be deleted is found afterwards, with the reason."""
    if _is_removed(directory):
        return
    with suppress(RoveError):
        asyncio.run(_remove(run_id, directory))
        for number in _intended(journals.read(RunDirectory(directory).journal)):
            journal.done(number, removed=True)


def _is_removed(directory: Path) -> bool:
    entries = journals.read(RunDirectory(directory).journal)
    return _intended(entries) <= {entry.get("id") for entry in entries if entry.get("removed")}


def _intended(entries: list[Entry]) -> set[int]:
    return {entry["id"] for entry in entries if entry.get("kind") == JOURNAL_KIND}


async def _found(run_id: str, directory: Path) -> list[str]:
    # Imported where they are used: runs elsewhere need not wait for paramiko.
    from orchestrator.backends.core.link import marked

    try:
        core, connection = await _reached(directory)
        try:
            sessions = await marked(connection, core, run_id)
        finally:
            await connection.close()
    except RoveError as error:
        return [f"CORE's host cannot be asked: {error}"]
    return [f"CORE session {session} on {core.machine()}" for session in sessions]


async def _remove(run_id: str, directory: Path) -> None:
    from orchestrator.backends.core.link import remove

    core, connection = await _reached(directory)
    try:
        await remove(connection, core, run_id)
    finally:
        await connection.close()


async def _reached(directory: Path) -> "tuple[Core, Connection]":
    from orchestrator.backends.remote.access import known_hosts_of
    from orchestrator.spec.load import load_experiment
    from orchestrator.ssh.connection import Connection

    experiment = load_experiment(RunDirectory(directory).spec)
    core = experiment.topology.core
    assert core is not None, "the run was one on CORE"
    return core, await Connection.open(core.machine(), known_hosts_of(experiment))
