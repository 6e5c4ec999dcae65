"""Checks the arguments of mobility models, so that a model refuses nonsense at once and never loops on it."""

from math import isfinite

from orchestrator.errors import BadInput
from orchestrator.model.trace import Area, Span


def check_area(area: Area) -> None:
    if not all(isfinite(side) and side > 0 for side in area):
        raise BadInput(f"area {area[0]:g} m × {area[1]:g} m: both sides must be above zero")


def check_span(name: str, span: Span, *, above: float | None = None) -> None:
    """Checks that ``span`` is finite, ordered and not negative; with ``above``, that all of it is above that
    value.
    """
    low, high = span
    if not (isfinite(low) and isfinite(high) and 0 <= low <= high):
        raise BadInput(f"{name} from {low:g} to {high:g}: needs 0 ≤ lowest ≤ highest")
    if above is not None and low <= above:
        raise BadInput(f"{name} from {low:g} to {high:g}: the lowest must be above {above:g}")


def check_at_least(name: str, value: float, least: float) -> None:
    if not (isfinite(value) and value >= least):
        raise BadInput(f"{name} {value:g}: must be at least {least:g}")
