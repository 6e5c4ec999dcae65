"""The application ``detect``: detection of events over links that come and go.

Imported while the experiment's section is made: what needs time or other packages is imported when used.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.answers import Answer
from orchestrator.apps.comet.section import DetectSection
from orchestrator.planning.application import Application, AppPlan, Examiner
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import AppView, Seconds
from orchestrator.spec.application import AppEntry

TRACES = "detect"
"""The folder of traces in a run's directory."""


class DetectApplication(Application):
    section = DetectSection

    def plan(self, entry: AppEntry) -> AppPlan:
        from orchestrator.apps.comet.plan import plan_of
        from orchestrator.apps.comet.planned import planned_detection

        return plan_of(entry.name, planned_detection(entry))

    def measured_plan(self, entry: AppEntry, directory: RunDirectory) -> AppPlan:
        from orchestrator.apps.comet.replanning import replanned

        return replanned(entry, directory)

    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        from orchestrator.apps.comet.plan import DetectPlan, recorded_in

        recorded = recorded_in(record)
        return None if recorded is None else DetectPlan(entry.name, recorded)

    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        from node_agent.apps.comet.telemetry import scopes_of
        from orchestrator.apps.comet.plan import recorded_in

        recorded = recorded_in(record)
        return None if recorded is None else Examiner(scopes_of(recorded.configs.values()))

    def view(self, app: str, record: Mapping[str, Any], seconds: Seconds) -> AppView | None:
        from orchestrator.apps.comet.live import DetectView
        from orchestrator.apps.comet.plan import recorded_in

        recorded = recorded_in(record)
        return None if recorded is None else DetectView(app, recorded, seconds)

    def bundled(self, entry: AppEntry, document: dict[str, Any]) -> dict[str, bytes]:
        from orchestrator.apps.comet.planned import section_of

        files: dict[str, bytes] = {}
        for name, event in section_of(entry).events.items():
            if event.trace is None:
                continue
            # Files of one name may lie in different folders.
            folder = f"{TRACES}/{event.trace.digest[:12]}"
            files |= {f"{folder}/{each}": content for each, content in event.trace.contents().items()}
            document["detect"]["events"][name]["trace"] = event.trace.written(
                f"{folder}/{event.trace.path.name}"
            )
        return files

    def explain(self, directory: RunDirectory, app: str, at_s: float, part: str | None) -> Answer:
        from orchestrator.apps.comet.moments import explained_moment

        return explained_moment(directory, app, at_s, part)

    def explain_event(self, directory: RunDirectory, app: str, event: str) -> Answer:
        from orchestrator.apps.comet.explaining import explained_event

        return explained_event(directory, app, event)

    def changes(
        self, directory: RunDirectory, app: str, part: str | None, operator: str | None, most: int
    ) -> Answer:
        from orchestrator.apps.comet.explaining import listed_events

        return listed_events(directory, app, most)


DETECT = DetectApplication()
