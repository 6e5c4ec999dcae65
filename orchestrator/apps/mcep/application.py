"""The application ``interest``: situations around moving objects.

Imported while the experiment's section is made: what needs time or other packages is imported when used.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.answers import Answer
from orchestrator.apps.mcep.section import InterestSection
from orchestrator.planning.application import Application, AppPlan, Examiner
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import AppView, Seconds
from orchestrator.spec.application import AppEntry


class InterestApplication(Application):
    section = InterestSection

    def plan(self, entry: AppEntry) -> AppPlan:
        from orchestrator.apps.mcep.plan import InterestPlan
        from orchestrator.apps.mcep.planned import planned_interest

        return InterestPlan(entry.name, planned_interest(entry))

    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        from orchestrator.apps.mcep.plan import InterestPlan, recorded_in

        recorded = recorded_in(record)
        return None if recorded is None else InterestPlan(entry.name, recorded)

    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        from orchestrator.apps.mcep.plan import recorded_in, scopes

        recorded = recorded_in(record)
        return None if recorded is None else Examiner(scopes(recorded))

    def view(self, app: str, record: Mapping[str, Any], seconds: Seconds) -> AppView | None:
        from orchestrator.apps.mcep.live import InterestView
        from orchestrator.apps.mcep.plan import recorded_in

        recorded = recorded_in(record)
        return None if recorded is None else InterestView(app, recorded)

    def explain(self, directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
        from orchestrator.apps.mcep.explaining import explained_moment

        return explained_moment(directory, app, at_s, part)

    def explain_event(self, directory: RunDirectory, app: str, event: str) -> Answer:
        from orchestrator.apps.mcep.explaining import explained_situation

        return explained_situation(directory, app, event)

    def changes(
        self, directory: RunDirectory, app: str, part: str | None, operator: str | None, most: int
    ) -> Answer:
        from orchestrator.apps.mcep.explaining import listed_switches

        return listed_switches(directory, app, operator or part, most)


INTEREST = InterestApplication()
