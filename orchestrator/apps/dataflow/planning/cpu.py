"""Computes how much CPU each operator of a query needs, in cores: the time of a unit of work × its rate.

Rates follow from the sources' along the query, as if nothing were filtered out or lost. Operators that do not
state a ``cpu`` time count as light: they need nothing.
"""

from typing import Any

import msgspec

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow
from node_agent.apps.dataflow.operators.registry import OPERATORS


def cpu_needs(query: Query) -> dict[str, float]:
    """Returns the need of one replica of each operator, which may at times get the whole stream."""
    rates = unit_rates(query)
    return {name: rates[name] * stated(query.operator(name), "cpu") for name in query.names()}


def unit_rates(query: Query) -> dict[str, float]:
    """Returns units of work per second, by operator; 0 if no source states its rate."""
    rates: dict[str, float] = {}
    for name in query.topological():
        operator = query.operator(name)
        rates[name] = _rate(operator, [rates[upstream] for upstream in operator.after])
    return rates


def _rate(operator: OperatorSpec, inputs: list[float]) -> float:
    if not inputs:
        return stated(operator, "rate")
    match operator.takes:
        case Each():
            return sum(inputs)
        case SameTau():
            return min(inputs)
        case CountWindow(slide=slide):
            return sum(inputs) / slide
        case TimeWindow(slide_ns=slide_ns):
            return 1e9 / slide_ns


def stated(operator: OperatorSpec, parameter: str) -> float:
    """Returns a parameter that is a number, or 0."""
    kind = OPERATORS.get(operator.kind)
    value: Any = operator.params.get(parameter)
    if value is None and kind is not None:
        value = getattr(msgspec.convert(operator.params, kind.params), parameter, None)
    return float(value) if isinstance(value, int | float) else 0.0
