"""Counts how often extensions failed on a node, for its telemetry: bounded, one entry for each extension."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """The last failure of an extension: its kind ``what`` (``switching policy``), its file and line
    (``place``).

    ``count``: failures since the start. ``left_out``: it is not called any more.
    """

    what: str
    name: str
    place: str
    error: str
    count: int
    left_out: bool = False


class Failures:
    """The failures of all extensions that run on one node."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], Failure] = {}
        self._recorded: dict[tuple[str, str], Failure] = {}

    def add(self, what: str, name: str, place: str, error: str, left_out: bool = False) -> None:
        before = self._failures.get((what, name))
        count = 1 + (before.count if before is not None else 0)
        self._failures[what, name] = Failure(what, name, place, error, count, left_out)

    def __iter__(self) -> Iterator[Failure]:
        return iter(self._failures.values())

    def to_record(self, last: bool = False) -> Iterator[Failure]:
        """Yields those that are new, have doubled, or led to the extension being left out.

        ``last``: yields everything that has changed, because it will not be called again.
        """
        for key, failure in self._failures.items():
            before = self._recorded.get(key)
            if failure == before:
                continue
            if before is None or last or failure.left_out or failure.count >= 2 * before.count:
                self._recorded[key] = failure
                yield failure
