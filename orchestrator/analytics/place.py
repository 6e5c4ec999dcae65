"""Says where the tables of a folder of runs are, and what is in them: ``<runs>/.tables/v<VERSION>``.

Imports neither Arrow nor Spark: whether something must be computed is known before they are.
"""

import re
from pathlib import Path

from orchestrator.analytics import log
from orchestrator.analytics.layout import VERSION
from orchestrator.analytics.log import State
from orchestrator.errors import RoveError


class StorePlace:
    """Where a store is. ``store.TableStore`` reads and writes there."""

    def __init__(self, runs_root: Path) -> None:
        self.root = runs_root / ".tables" / f"v{VERSION}"
        self._refuse_newer()

    def results(self, run: str) -> Path:
        """Returns the file that stores results computed from the run's tables."""
        return self.root / "results" / f"{run}.json"

    @property
    def state(self) -> State:
        """Returns what the log says, as far as the files are there."""
        return log.load(self.root / "log").intact(self.root)

    def _refuse_newer(self) -> None:
        """Refuses to work beside tables that a newer Rove has made: it would not notice what is new."""
        places = self.root.parent.glob("v*") if self.root.parent.is_dir() else ()
        versions = [int(place.name[1:]) for place in places if re.fullmatch(r"v[0-9]{1,6}", place.name)]
        if newer := [version for version in versions if version > VERSION]:
            raise RoveError(
                f"{self.root.parent} has tables of a newer Rove (v{max(newer)}; this one makes v{VERSION}): "
                f"use that one, or delete {self.root.parent}, which can be made again from the runs"
            )
