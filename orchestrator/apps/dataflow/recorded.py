"""What a manifest records of dataflows: their deployment plans and galleries."""

from collections.abc import Mapping
from typing import Any

import msgspec

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.runs.manifest import apps_in


def deployment_in(record: Mapping[str, Any]) -> DeploymentPlan | None:
    """None if there is none, or its query is no graph."""
    try:
        plan = msgspec.convert(record["plan"], DeploymentPlan)
        plan.query.origins()
    except (msgspec.ValidationError, KeyError, TypeError, ValueError):
        return None
    return plan


def galleries_in(manifest: Any) -> dict[str, list[str]]:
    """Who is in the galleries of a run, by version, of all its dataflows."""
    found: dict[str, list[str]] = {}
    for app in apps_in(manifest).values():
        try:
            found |= msgspec.convert(app.document.get("galleries") or {}, dict[str, list[str]])
        except msgspec.ValidationError:
            continue
    return found
