"""Reads the records of a detection from a run's directory: those that their nodes can have written."""

from dataclasses import dataclass

from node_agent.apps.comet.telemetry import scopes_of
from orchestrator.apps.comet.assumptions import Measured
from orchestrator.apps.comet.measuring import KINDS, Measuring
from orchestrator.apps.comet.plan import Recorded, recorded_in
from orchestrator.results.app_records import NS, Seen, document_of, read_records
from orchestrator.runs.run_directory import RunDirectory

__all__ = ["NS", "RunRecords", "Seen", "read_run"]


@dataclass(frozen=True)
class RunRecords:
    """``records``: in order of time. ``zero_ns``, ``last_ns``: of the run's first and last record.

    ``opened_ns``: when sources opened.
    """

    recorded: Recorded
    records: tuple[Seen, ...]
    zero_ns: int
    last_ns: int
    opened_ns: int

    def measured(self, until_ns: int | None = None) -> Measured:
        """What the run shows of the plan's assumptions, until a moment; None: until its end."""
        end_ns = self.last_ns if until_ns is None else min(until_ns, self.last_ns)
        measuring = Measuring(self.recorded)
        for seen in self.records:
            if seen.t_ns <= end_ns and seen.record.kind in KINDS:
                measuring.take(seen.node, (seen.t_ns - self.zero_ns) / NS, seen.record)
        return measuring.measured((self.opened_ns - self.zero_ns) / NS, (end_ns - self.zero_ns) / NS)


def read_run(directory: RunDirectory, app: str) -> RunRecords:
    """Raises BadInput if the manifest has no plan of the application."""
    recorded = document_of(directory, app, recorded_in)
    found = read_records(directory, app, scopes_of(recorded.configs.values()))
    return RunRecords(recorded, found.records, found.zero_ns, found.last_ns, found.opened_ns)
