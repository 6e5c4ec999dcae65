"""What a run may leave behind besides processes and files, by the kind of intent that its journal holds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.backends.netns import network
from orchestrator.backends.netns.marks import Mark


@dataclass(frozen=True)
class Kind:
    """Both are given the run's id and directory and say what is (still) there."""

    find: Callable[[str, Path], list[str]]
    remove: Callable[[str, Path], list[str]]


def _find_network(run_id: str, directory: Path) -> list[str]:
    return [str(entry) for entry in network.leftovers(Mark(run_id, directory))]


def _remove_network(run_id: str, directory: Path) -> list[str]:
    return [str(entry) for entry in network.down(Mark(run_id, directory))]


KINDS: dict[str, Kind] = {network.JOURNAL_KIND: Kind(_find_network, _remove_network)}
