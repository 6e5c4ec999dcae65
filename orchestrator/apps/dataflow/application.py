"""The application ``query``: a replicated dataflow. This is what Rove knows of it; all else is behind it.

Imported while the experiment's section is made: what needs time or other packages is imported when used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from orchestrator.answers import Answer
from orchestrator.apps.dataflow.setting import Setting
from orchestrator.apps.dataflow.spec.section import DataflowSection, ReplicaTarget
from orchestrator.planning.application import Application, AppPlan, Examiner, Requirement
from orchestrator.planning.parts import Part
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import AppView, Seconds
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Finding


class DataflowApplication(Application):
    section = DataflowSection
    target = ReplicaTarget
    target_in_words = "an operator's replica"
    fixed = {  # noqa: RUF012
        "query.gallery": "write one experiment for each gallery",
        "query.path": "write one experiment for each source",
    }

    def plan(self, entry: AppEntry) -> AppPlan:
        from orchestrator.apps.dataflow.checks import checked_arrangement
        from orchestrator.apps.dataflow.plan import DataflowPlan
        from orchestrator.apps.dataflow.planning.migrations import moving_in

        setting = Setting.of(entry)
        arrangement = checked_arrangement(setting)
        deployment = arrangement.plan(setting.query)
        moving = moving_in(deployment, setting.section.migrations)
        deployment = structs.replace(deployment, moving=moving)
        return DataflowPlan(entry.name, setting, deployment, arrangement.derived)

    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        from orchestrator.apps.dataflow.plan import DataflowPlan

        return DataflowPlan.recorded(Setting.of(entry), record)

    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        from orchestrator.apps.dataflow.examiner import DataflowExaminer
        from orchestrator.apps.dataflow.recorded import deployment_in

        plan = deployment_in(record)
        return None if plan is None else DataflowExaminer(plan)

    def own_findings(self, entry: AppEntry) -> list[Finding]:
        from orchestrator.apps.dataflow.checks import placement_findings

        return placement_findings(Setting.of(entry))

    def findings(self, entries: Sequence[AppEntry]) -> list[Finding]:
        from orchestrator.apps.dataflow.faces.checks import figure_findings

        return figure_findings(entries[0].scenario.expect, [Setting.of(entry).query for entry in entries])

    def unused_findings(self, entry: AppEntry) -> list[Finding]:
        from orchestrator.apps.dataflow.checks import unused_findings

        return unused_findings(Setting.of(entry))

    def require(self, plans: Sequence[AppPlan]) -> None:
        from orchestrator.apps.dataflow.faces.installed import require_faces
        from orchestrator.apps.dataflow.plan import DataflowPlan

        require_faces([p.deployment.query for p in plans if isinstance(p, DataflowPlan)], "this query")

    def parts(self) -> tuple[Part, ...]:
        from orchestrator.apps.dataflow.faces.needs import FACES

        return FACES

    def requirements(self) -> list[Requirement]:
        from orchestrator.apps.dataflow.faces.installed import requirements

        return requirements()

    def bundled(self, entry: AppEntry, document: dict[str, Any]) -> dict[str, bytes]:
        from orchestrator.apps.dataflow.assets import bundled_galleries

        return bundled_galleries(document)

    def view(self, app: str, record: Mapping[str, Any], seconds: Seconds) -> AppView | None:
        from orchestrator.apps.dataflow.live import DataflowView
        from orchestrator.apps.dataflow.recorded import deployment_in

        plan = deployment_in(record)
        return None if plan is None else DataflowView(app, plan, seconds)

    def explain(self, directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
        from orchestrator.apps.dataflow.decisions.answers import explained

        return explained(directory, app, at_s, part)

    def changes(
        self, directory: RunDirectory, app: str, part: str | None, operator: str | None, most: int
    ) -> Answer:
        from orchestrator.apps.dataflow.decisions.answers import listed_switches

        return listed_switches(directory, app, part, operator, most)

    def replay(self, directory: RunDirectory, app: str, policy: str, threshold: str | None) -> Answer:
        from orchestrator.apps.dataflow.decisions.answers import replayed

        return replayed(directory, app, policy, threshold)


DATAFLOW = DataflowApplication()
