"""The journal entries of a run's remote nodes: enough to end, collect and remove after a crash."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from orchestrator.runs import journal as journals
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from orchestrator.backends.remote.site import Site

KIND = "remote node"
_OLD_KEY = "keeping"
"""The name of ``supervisor`` in journals of earlier versions."""


class NodeEntry(Struct, frozen=True):
    """One node's entry. ``supervisor``: the command on the node that controls its supervisor, without a verb.

    ``ended``: nothing runs there any more. ``collected``: its record is here and verified. ``removed``: the
    place is gone.
    """

    id: int
    node: str
    place: str
    supervisor: tuple[str, ...]
    lease: float
    ended: bool = False
    collected: bool = False
    removed: bool = False

    @property
    def waits(self) -> bool:
        """Whether the node has data that only a collection may remove."""
        return not (self.collected or self.removed)


def intend(journal: Journal, site: "Site", run_id: str, lease: float) -> int:
    """Writes the intent, before anything is put on the node."""
    supervisor = site.command("node_agent.supervisor")
    place = str(site.place(run_id))
    return journal.intend(KIND, node=site.node, place=place, supervisor=supervisor, lease=lease)


def node_entries(entries: Iterable[Mapping[str, Any]]) -> list[NodeEntry]:
    """Returns the nodes' entries, in the order in which the nodes came up."""
    found: dict[int, NodeEntry] = {}
    for entry in entries:
        number = entry.get("id")
        if entry.get("entry") == "intent" and entry.get("kind") == KIND:
            with suppress(msgspec.ValidationError):
                node = msgspec.convert(
                    {
                        "supervisor": entry.get(_OLD_KEY),
                        **entry,
                        "ended": False,
                        "collected": False,
                        "removed": False,
                    },
                    NodeEntry,
                )
                found[node.id] = node
        elif entry.get("entry") == "done" and number in found:
            changes = {key: True for key in ("ended", "collected", "removed") if entry.get(key)}
            found[number] = structs.replace(found[number], **changes)
    return list(found.values())


def nodes_of(directory: Path) -> list[NodeEntry]:
    return node_entries(journals.read(RunDirectory(directory).journal))


def leases_over(directory: Path) -> bool:
    """Whether all leases have run out: the journal was closed longer ago than the longest lease."""
    entries = journals.read(RunDirectory(directory).journal)
    longest = max((node.lease for node in node_entries(entries)), default=0.0)
    if not journals.is_closed(entries):
        return False
    since = datetime.now(UTC) - datetime.fromisoformat(entries[-1]["t"])
    return since.total_seconds() > longest


def waiting(directory: Path) -> list[str]:
    """Returns the nodes whose records wait to be collected."""
    return [node.node for node in nodes_of(directory) if node.waits]


def uncollected(directory: Path) -> list[str]:
    """Returns the nodes whose records are not here: they wait or are lost."""
    return [node.node for node in nodes_of(directory) if not node.collected]
