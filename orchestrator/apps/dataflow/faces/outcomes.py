"""Names the possible outcomes for a face, and reads the galleries of a plan."""

import msgspec

from orchestrator.results.inputs import AppInput

UNDETECTED = "undetected"
FALSE_DETECTION = "false_detection"
UNVERIFIED = "unverified"
UNASKED = "unasked"
RIGHT, MISSED, CONFUSED = "right", "missed", "confused"
REJECTED, FALSE_ACCEPT = "rejected", "false_accept"


def has_faces(app: AppInput) -> bool:
    """Says whether the query reports faces at all."""
    return any(operator.kind == "show_faces" for operator in app.plan.query.operators)


def galleries_of(app: AppInput) -> dict[str, list[str]]:
    """Returns the persons of each gallery of the plan, by its version; empty if the manifest has none."""
    try:
        return msgspec.convert(app.document.get("galleries") or {}, dict[str, list[str]])
    except msgspec.ValidationError:
        return {}
