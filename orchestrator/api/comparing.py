"""Compares runs and sweeps as ``rove compare`` does: groups, ratios paired by seed, sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.api.runs import RUNS_DIR, Reference, Runs, directories_of, load
from orchestrator.errors import BadInput, clear_errors

if TYPE_CHECKING:
    import pandas as pd


def compare(
    *things: Reference | Runs, labels: Sequence[str] = (), runs_dir: Reference = RUNS_DIR
) -> "ComparedRuns":
    """Puts runs and sweeps side by side; the first group is what the others are compared with.

    ``things``: references, or what ``load`` returned. ``labels``: what to call each of them.
    """
    from orchestrator.analytics.beside import side_by_side

    if not things:
        raise BadInput('say what to compare, such as rove.compare("quickstart") or rove.compare("a", "b")')
    directories = [
        directory
        for thing in things
        for directory in (thing.directories if isinstance(thing, Runs) else directories_of([thing], runs_dir))
    ]
    with clear_errors():
        return ComparedRuns(side_by_side(directories, list(labels), lambda paths: load(*paths).close()))


class ComparedRuns:
    """A comparison. ``document`` is what ``rove compare --json`` prints."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def sentences(self) -> list[str]:
        """Returns what the comparison shows, in words."""
        return list(self.document["sentences"])

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each application, metric and group of runs."""
        import pandas as pd

        rows = [
            {"app": app, "metric": name, "unit": metric["unit"], **group}
            for app, entry in self.document["apps"].items()
            for name, metric in entry["metrics"].items()
            for group in metric["groups"]
        ]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__
