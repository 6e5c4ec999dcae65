"""What an experiment may expect of its result, ``throughput_fps > 1``: parsed and judged in one place."""

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

OF_FACES = ("detection_rate", "rank1", "false_accept_rate")
"""Only runs whose query shows faces have these."""
METRICS = (
    "throughput_fps",
    "throughput_kbps",
    "goodput_fps",
    "latency_mean_s",
    "latency_p50_s",
    "latency_p95_s",
    "latency_p99_s",
    "latency_max_s",
    "loss_ratio",
    "delivered",
    "emitted",
    "duplicates",
    "lost",
    "switches",
    "no_route_s",
    "source_sink_connected_ratio",
    "routing_overhead_bps",
    *OF_FACES,
)
"""The figures in a run's summary.json that are single numbers."""

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}

_SHAPE = re.compile(r"\s*(?P<metric>[A-Za-z_]\w*)\s*(?P<operator>[<>=!]+)\s*(?P<bound>\S+)\s*")


class Expectation(NamedTuple):
    metric: str
    operator: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} {self.operator} {self.bound:g}"


class Failed(NamedTuple):
    """An expectation that did not hold; ``value`` is None where the run has no such figure."""

    expectation: Expectation
    value: float | None

    def __str__(self) -> str:
        if self.value is None:
            return f"expected {self.expectation}, but the run has no {self.expectation.metric}"
        return f"expected {self.expectation}, got {self.value:g}"


def parse_expectation(text: str) -> Expectation:
    """Raises ValueError with a message for the author of the experiment file."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError(f"{text!r} is not of the form METRIC OPERATOR NUMBER, such as 'loss_ratio < 0.05'")
    metric, symbol, number = shape["metric"], shape["operator"], shape["bound"]
    if metric not in METRICS:
        near = difflib.get_close_matches(metric, METRICS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(METRICS)}"
        raise ValueError(f"unknown metric {metric!r}: {hint}")
    if symbol not in OPERATORS:
        raise ValueError(f"unknown operator {symbol!r}: there are {' '.join(OPERATORS)}")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise ValueError(f"{number!r} is not a number")
    return Expectation(metric, symbol, bound)


def evaluate_expectations(expect: Sequence[str], metrics: Mapping[str, Any]) -> list[Failed]:
    """Those of ``expect`` that do not hold for a run's ``metrics``; a figure the run does not have fails."""
    failed = []
    for expectation in map(parse_expectation, expect):
        value = metrics.get(expectation.metric)
        if value is None or not OPERATORS[expectation.operator](value, expectation.bound):
            failed.append(Failed(expectation, value))
    return failed
