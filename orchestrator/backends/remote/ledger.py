"""What a run's journal knows of its nodes' supervisors: enough to end, collect and remove without them."""

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


class NodeEntry(Struct, frozen=True):
    """One node's entry. ``keeping``: the command there that speaks to its supervisor, without its verb.

    ``ended``: nothing runs there any more. ``collected``: its record is here and verified. ``removed``: the
    place is gone.
    """

    id: int
    node: str
    place: str
    keeping: tuple[str, ...]
    lease: float
    ended: bool = False
    collected: bool = False
    removed: bool = False

    @property
    def waits(self) -> bool:
        """Is there something on the node that only a collection may remove?"""
        return not (self.collected or self.removed)


def intend(journal: Journal, site: "Site", run_id: str, lease: float) -> int:
    """Before anything is put there."""
    keeping = site.command("node_agent.supervisor")
    place = str(site.place(run_id))
    return journal.intend(KIND, node=site.node, place=place, keeping=keeping, lease=lease)


def node_entries(entries: Iterable[Mapping[str, Any]]) -> list[NodeEntry]:
    """In the order in which the nodes came up."""
    found: dict[int, NodeEntry] = {}
    for entry in entries:
        number = entry.get("id")
        if entry.get("entry") == "intent" and entry.get("kind") == KIND:
            with suppress(msgspec.ValidationError):
                node = msgspec.convert(
                    {**entry, "ended": False, "collected": False, "removed": False}, NodeEntry
                )
                found[node.id] = node
        elif entry.get("entry") == "done" and number in found:
            changes = {key: True for key in ("ended", "collected", "removed") if entry.get(key)}
            found[number] = structs.replace(found[number], **changes)
    return list(found.values())


def nodes_of(directory: Path) -> list[NodeEntry]:
    return node_entries(journals.read(RunDirectory(directory).journal))


def leases_over(directory: Path) -> bool:
    """Has nobody renewed any lease for longer than it lasts? Who has closed the journal renews none."""
    entries = journals.read(RunDirectory(directory).journal)
    longest = max((node.lease for node in node_entries(entries)), default=0.0)
    if not journals.is_closed(entries):
        return False
    since = datetime.now(UTC) - datetime.fromisoformat(entries[-1]["t"])
    return since.total_seconds() > longest


def waiting(directory: Path) -> list[str]:
    """Nodes whose records wait to be collected."""
    return [node.node for node in nodes_of(directory) if node.waits]


def uncollected(directory: Path) -> list[str]:
    """Nodes whose records are not here: they wait, or are lost."""
    return [node.node for node in nodes_of(directory) if not node.collected]
