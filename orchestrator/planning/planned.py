"""Defines a planned run:
made once for each cell of a sweep and handed to everything that works on the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from orchestrator.planning.application import AppPlan, End, InUse, application
from orchestrator.planning.faults import Step, planned_faults
from orchestrator.runs.manifest import RecordedApp
from orchestrator.spec.experiment import Experiment


@dataclass(frozen=True)
class PlannedRun:
    """An experiment with the plans of its applications. ``faults``: the steps in order of time."""

    experiment: Experiment
    apps: Mapping[str, AppPlan]
    faults: tuple[Step, ...] = ()

    def pinned(self, directory: Path) -> Self:
        """Returns the run with copies, in its directory, of files that applications need. Raises BadInput."""
        return replace(self, apps={name: plan.pinned(directory) for name, plan in self.apps.items()})

    def seeks_replicas(self) -> bool:
        """Whether a fault is to hit whatever is in use then, so that agents must be able to tell."""
        return any(isinstance(step.fault.does, InUse) for step in self.faults)

    def nodes_in_use(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for plan in self.apps.values() for node in plan.nodes()))

    def traffic(self) -> tuple[tuple[End, End], ...]:
        """Returns the ends of all traffic; with several applications, ends carry the application's name."""
        if len(self.apps) == 1:
            return next(iter(self.apps.values())).traffic()
        return tuple(
            (End(f"{name}.{source.name}", source.node), End(f"{name}.{sink.name}", sink.node))
            for name, plan in self.apps.items()
            for source, sink in plan.traffic()
        )

    def record(self) -> dict[str, dict[str, Any]]:
        """Returns what the manifest stores about the applications."""
        return {name: {"kind": plan.kind, **plan.record()} for name, plan in self.apps.items()}

    def seeds(self) -> dict[str, Any]:
        return {"experiment": self.experiment.seed} | {
            key if name == plan.kind else f"{name}.{key}": seed
            for name, plan in self.apps.items()
            for key, seed in plan.seeds().items()
        }


def recorded_run(experiment: Experiment, apps: Mapping[str, RecordedApp]) -> PlannedRun | None:
    """Reads the run back from its manifest without planning it again; None if a plan cannot be read."""
    plans: dict[str, AppPlan] = {}
    for name, entry in experiment.entries().items():
        record = apps.get(name)
        plan = application(entry.kind).recorded(entry, record.document) if record is not None else None
        if plan is None:
            return None
        plans[name] = plan
    steps, _ = planned_faults(experiment, plans)
    return PlannedRun(experiment, plans, steps)
