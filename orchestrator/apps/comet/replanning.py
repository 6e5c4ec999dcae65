"""Plans a file anew with the rates and contacts that a run showed, and says what the change is worth."""

from dataclasses import replace

from orchestrator.apps.comet.assumptions import Departure, Measured, departures
from orchestrator.apps.comet.plan import DetectPlan, plan_of
from orchestrator.apps.comet.planned import Detection, planned_detection
from orchestrator.apps.comet.planning.printing import MINUTE
from orchestrator.apps.comet.planning.together import Joint, under
from orchestrator.apps.comet.reading import read_run
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.application import AppEntry
from orchestrator.spec.problems import Unusable


def replanned(entry: AppEntry, directory: RunDirectory) -> DetectPlan:
    """Raises BadInput if the run says nothing about this file, or if there is no plan for what it says."""
    run = read_run(directory, entry.name)
    measured = run.measured()
    before = planned_detection(entry)
    if not _concerns(before, measured):
        raise BadInput(f"run {directory.id} measured none of the events and links of this file")
    try:
        after = planned_detection(entry, measured)
    except Unusable as error:
        said = "; ".join(finding.message for finding in error.findings)
        raise BadInput(f"with what run {directory.id} measured there is no plan: {said}") from None
    found = departures(run.recorded, measured)
    notes = (assumptions_text(directory.id, found), *_worth(before, after))
    return replace(plan_of(entry.name, after), notes=notes)


def assumptions_text(run: str, found: list[Departure]) -> str:
    if not found:
        return f"what the plan of run {run} assumed held, as far as chance tells"
    listed = "; ".join(departure.text for departure in found)
    return f"what the plan of run {run} assumed no longer holds: {listed}"


def _concerns(planned: Detection, measured: Measured) -> bool:
    events = planned.given.sources.keys() & measured.rates.keys()
    return bool(events) or any(measured.link(link.a, link.b) for link in planned.given.links)


def _worth(before: Detection, after: Detection) -> tuple[str, ...]:
    kept = under(before.joint, after.given)
    return (
        f"the plan of the file as it is would cost {_of(kept)}",
        f"planned anew it costs {_of(after.joint)}:",
    )


def _of(joint: Joint) -> str:
    delay = max(plan.delay for plan in joint.plans)
    return f"{joint.cost * MINUTE:.4g} per minute, at most {delay:.1f} s late"
