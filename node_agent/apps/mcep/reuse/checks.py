"""Says which operators cannot share results."""

from node_agent.apps.mcep.windows import Operator


def sharing_problem(operator: Operator) -> str | None:
    """Why an operator cannot share; None if it can.

    Its selections must be known before any of them is processed: a selection that is covered never is.
    """
    if operator.reuse == "contextual":
        return f"operator {operator.name} looks at the epoch or the region, which others do not have"
    if operator.consumption.what == "named":
        return f"operator {operator.name} names what it consumes, so its selections need its results"
    return None
