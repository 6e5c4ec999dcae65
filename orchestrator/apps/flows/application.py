"""The application ``flows``: traffic between nodes. This is what Rove knows of it; all else is behind it.

Imported while the experiment's section is made: what needs time or other packages is imported when used.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.apps.flows.section import FlowsSection, FlowTarget
from orchestrator.planning.application import Application, AppPlan, Examiner
from orchestrator.runs.timeline import AppView, Seconds
from orchestrator.spec.application import AppEntry

TRACES = "flows"
"""The folder of traces in a run's directory."""


class FlowsApplication(Application):
    section = FlowsSection
    target = FlowTarget
    target_in_words = "an end of a flow"

    def plan(self, entry: AppEntry) -> AppPlan:
        from orchestrator.apps.flows.plan import FlowsPlan
        from orchestrator.apps.flows.planning import planned_flows

        planned = planned_flows(entry)
        return FlowsPlan(entry.name, tuple(planned.flows), planned.traces, entry.at())

    def recorded(self, entry: AppEntry, record: Mapping[str, Any]) -> AppPlan | None:
        from orchestrator.apps.flows.plan import FlowsPlan, flows_in
        from orchestrator.apps.flows.planning import traces_of

        flows = flows_in(record)
        return None if flows is None else FlowsPlan(entry.name, flows, traces_of(entry), entry.at())

    def examiner(self, record: Mapping[str, Any]) -> Examiner | None:
        from orchestrator.apps.flows.examiner import FlowsExaminer
        from orchestrator.apps.flows.plan import flows_in

        flows = flows_in(record)
        return None if flows is None else FlowsExaminer(flows)

    def view(self, app: str, record: Mapping[str, Any], seconds: Seconds) -> AppView | None:
        from orchestrator.apps.flows.live import FlowsView
        from orchestrator.apps.flows.plan import flows_in

        flows = flows_in(record)
        return None if flows is None else FlowsView(app, flows, seconds)

    def bundled(self, entry: AppEntry, document: dict[str, Any]) -> dict[str, bytes]:
        from orchestrator.apps.flows.planning import section_of

        files: dict[str, bytes] = {}
        for place, _, flow in section_of(entry).items():
            if flow.trace is None:
                continue
            # Files of one name may lie in different folders.
            folder = f"{TRACES}/{flow.trace.digest[:12]}"
            files |= {f"{folder}/{name}": content for name, content in flow.trace.contents().items()}
            document["flows"][place]["trace"] = flow.trace.written(f"{folder}/{flow.trace.path.name}")
        return files


FLOWS = FlowsApplication()
