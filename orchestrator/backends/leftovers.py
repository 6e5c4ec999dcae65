"""Finds and removes what a run left besides processes and files, by the kinds of intents in its journal."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from node_agent.extensions import ExtensionError, Registry
from orchestrator.backends.core.session_leftovers import JOURNAL_KIND as CORE_SESSION
from orchestrator.backends.core.session_leftovers import find_sessions, remove_sessions, sessions_left
from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.remote.ledger import KIND as REMOTE_KIND
from orchestrator.backends.remote.ledger import leases_over, node_entries, waiting
from orchestrator.runs import journal as journals
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory


@dataclass(frozen=True)
class Kind:
    """Functions that take the run's directory. ``find`` lists what is still there, ``remove`` removes it and
    notes that in the journal, ``kept`` lists what stays on purpose and how to get it."""

    find: Callable[[str, Path], list[str]]
    remove: Callable[[str, Path, Journal], object]
    kept: Callable[[str, Path], list[str]] = lambda run_id, directory: []


def _find_network(run_id: str, directory: Path) -> list[str]:
    return [str(entry) for entry in network.leftovers(Mark(run_id, directory))]


def _remove_network(run_id: str, directory: Path, journal: Journal) -> list[str]:
    return [str(entry) for entry in network.down(Mark(run_id, directory))]


# Imported on use: commands without remote nodes need not wait for the SSH modules.


def _find_remote(run_id: str, directory: Path) -> list[str]:
    from orchestrator.backends.remote.leftovers import find

    return find(directory)


def _remove_remote(run_id: str, directory: Path, journal: Journal) -> None:
    from orchestrator.backends.remote.leftovers import remove

    remove(directory, journal)


def _uncollected_remote(run_id: str, directory: Path) -> list[str]:
    nodes = waiting(directory)
    what = "the record" if len(nodes) == 1 else "the records"
    return [f"{what} of {', '.join(nodes)}: rove collect {run_id} fetches it"] if nodes else []


def noted(directory: Path) -> list[str]:
    """Lists what still runs on other machines according to the run's journal. Asks no machine."""
    entries = journals.read(RunDirectory(directory).journal)
    over = leases_over(directory)
    running = [
        f"a supervisor on {node.node}"
        for node in node_entries(entries)
        if not (node.ended or node.removed or over)
    ]
    return [*running, *(f"CORE session {session}" for session in sessions_left(directory))]


def _checked_kind(name: str, value: object) -> Kind:
    if not isinstance(value, Kind):
        raise ExtensionError(f"{name} is {type(value).__name__}, not an {__name__}.Kind")
    return value


NETWORK = Kind(_find_network, _remove_network)
REMOTE = Kind(_find_remote, _remove_remote, _uncollected_remote)
SESSION = Kind(find_sessions, remove_sessions)
LEFTOVERS: Registry[Kind] = Registry(
    "kind of leftovers",
    "rove.leftovers",
    _checked_kind,
    {
        network.JOURNAL_KIND: f"{__name__}:NETWORK",
        REMOTE_KIND: f"{__name__}:REMOTE",
        # After the supervisors in the session, so that they end in order.
        CORE_SESSION: f"{__name__}:SESSION",
    },
)
"""By the kind of intent in the journal, in the order in which they are removed."""
