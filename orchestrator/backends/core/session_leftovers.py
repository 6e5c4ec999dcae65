"""Finds and deletes a run's sessions left on CORE's host: by the run's mark, and no others."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.backends.core.marks import Mark
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs import journal as journals
from orchestrator.runs.journal import Entry, Journal
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from orchestrator.spec.core import Core
    from orchestrator.ssh.connection import Connection

JOURNAL_KIND = "core-session"


def find_sessions(run_id: str, directory: Path) -> list[str]:
    """Does not ask the host if the run has removed its session itself."""
    marks = _left(run_id, directory)
    return asyncio.run(_found(marks, directory)) if marks else []


def remove_sessions(run_id: str, directory: Path, journal: Journal) -> None:
    """Removes the sessions. ``find_sessions`` reports what could not be removed, with the reason."""
    with suppress(RoveError):
        for number, mark in _left(run_id, directory).items():
            if not asyncio.run(_remove(mark, directory)):
                journal.done(number, removed=True)


def sessions_left(directory: Path) -> list[str]:
    """Returns what the run's journal knows, without asking CORE's host: for `rove status`."""
    entries = journals.read(RunDirectory(directory).journal)
    made = {entry["id"]: entry["session"] for entry in entries if "id" in entry and "session" in entry}
    return [
        f"{made.get(entry['id'], 'that had just been begun')} on {entry.get('host', '?')}"
        for entry in _unremoved(entries)
    ]


def _unremoved(entries: list[Entry]) -> list[Entry]:
    removed = {entry.get("id") for entry in entries if entry.get("removed")}
    return [entry for entry in entries if entry.get("kind") == JOURNAL_KIND and entry["id"] not in removed]


def _left(run_id: str, directory: Path) -> dict[int, Mark]:
    """Returns sessions that were started and are not known to be removed, by their number in the journal."""
    entries = journals.read(RunDirectory(directory).journal)
    return {entry["id"]: Mark(run_id, entry.get("token", "")) for entry in _unremoved(entries)}


async def _found(marks: dict[int, Mark], directory: Path) -> list[str]:
    # Imported here, so that other runs need not wait for paramiko.
    from orchestrator.backends.core.driver_client import left_of

    try:
        core, connection = await _reached(directory)
        try:
            found = [what for mark in marks.values() for what in await left_of(connection, core, mark)]
        finally:
            await connection.close()
    except RoveError as error:
        return [f"CORE's host cannot be asked: {error}"]
    return [f"{what} on {core.machine()}" for what in found]


async def _remove(mark: Mark, directory: Path) -> list[str]:
    from orchestrator.backends.core.driver_client import remove

    core, connection = await _reached(directory)
    try:
        return await remove(connection, core, mark)
    finally:
        await connection.close()


async def _reached(directory: Path) -> "tuple[Core, Connection]":
    from orchestrator.backends.remote.access import known_hosts_of
    from orchestrator.planning.load import load_machines
    from orchestrator.ssh.connection import Connection

    spec = RunDirectory(directory).spec
    network = load_machines(spec)
    core = network.topology.core
    if core is None:
        raise BadInput(f"{spec.name} does not say where CORE's host is")
    return core, await Connection.open(core.machine(), known_hosts_of(network))
