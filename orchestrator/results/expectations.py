"""Parses and checks expectations of an experiment: ``goodput_fps > 1`` or ``faces.throughput_fps > 1``.

A name before the metric is that of an application; without one, the only application that has the metric is
meant.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.results import registry
from orchestrator.results.expectation_hints import meant_metrics, name_hint, number_hint

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}

_SHAPE = re.compile(
    r"\s*(?:(?P<app>[A-Za-z_][\w-]*)\.)?(?P<metric>[A-Za-z_]\w*)\s*(?P<operator>[<>=!]+)\s*(?P<bound>\S+(?:\s+[^\s\d]\S*)?)\s*"
)
_FIRST_WORD = re.compile(r"\s*(?:[A-Za-z_][\w-]*\.)?([A-Za-z_]\w*)")
_MEANT = {"=>": ">=", "=<": "<=", "=": "=="}


class Expectation(NamedTuple):
    metric: str
    operator: str
    bound: float
    app: str = ""
    """Empty: the only application that has the metric."""

    @property
    def name(self) -> str:
        return f"{self.app}.{self.metric}" if self.app else self.metric

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.bound:g}"


class Failed(NamedTuple):
    """An expectation that did not hold; ``value`` is None if the run has no such figure."""

    expectation: Expectation
    value: float | None

    def __str__(self) -> str:
        if self.value is None:
            return f"expected {self.expectation}, but the run has no {self.expectation.name}"
        return f"expected {self.expectation}, got {self.value:g}"


def expectable_names() -> tuple[str, ...]:
    """Returns the metrics that can be expected."""
    return tuple(metric.name for metric in registry.expectable())


def pattern() -> str:
    """Returns the pattern of an expectation, for editors."""
    return (
        rf"^\s*([A-Za-z_][\w-]*\.)?({'|'.join(expectable_names())})\s*"
        rf"({'|'.join(OPERATORS)})\s*[-+0-9.eE]+\s*$"
    )


class BadExpectation(ValueError):
    """An expectation that cannot be read; the text is for the author of the experiment file."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"{problem}: {hint}" if hint else problem)
        self.problem = problem
        self.hint = hint


def parse_expectation(text: str) -> Expectation:
    """Parses an expectation. Raises BadExpectation."""
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        form = "METRIC OPERATOR NUMBER, such as 'loss_ratio < 0.05'"
        raise BadExpectation(f"{text!r} is not of the form {form}", _hint_of_name(text))
    metric, symbol, number = shape["metric"], shape["operator"], shape["bound"]
    known = {each.name: each for each in registry.expectable()}
    if metric not in known:
        raise BadExpectation(f"unknown metric {metric!r}", name_hint(metric, known))
    if symbol not in OPERATORS:
        meant = _MEANT.get(symbol)
        hint = f"did you mean {meant}?" if meant else f"there are {' '.join(OPERATORS)}"
        raise BadExpectation(f"unknown operator {symbol!r}", hint)
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise BadExpectation(f"{number!r} is not a number", number_hint(known[metric], symbol, number))
    return Expectation(metric, symbol, bound, shape["app"] or "")


def _hint_of_name(text: str) -> str:
    """Returns which metric a text without the right form begins with, if its name is wrong as well."""
    word = _FIRST_WORD.match(text)
    known = expectable_names()
    if word is None or word[1] in known or not meant_metrics(word[1], known):
        return ""
    return name_hint(word[1], known)


class Misfit(NamedTuple):
    """Says why the ``place``-th expectation does not fit the applications of an experiment."""

    place: int
    text: str
    hint: str


def misfits(expect: Sequence[str], apps: Mapping[str, str]) -> list[Misfit]:
    """Finds expectations that do not fit.
    ``apps``: the kind of each application of the experiment, by name.
    """
    found = []
    for place, text in enumerate(expect):
        expectation = parse_expectation(text)
        if why := _misfit(expectation, apps):
            found.append(Misfit(place, *why))
    return found


def _misfit(expectation: Expectation, apps: Mapping[str, str]) -> tuple[str, str] | None:
    metric, app = expectation.metric, expectation.app
    if metric in registry.metrics(""):
        hint = f"write {metric} without a name in front of it"
        return (f"{metric} is of the whole run, not of an application", hint) if app else None
    having = [name for name, kind in apps.items() if metric in registry.metrics(kind)]
    if app and app not in apps:
        return f"there is no application {app!r}", f"there are {', '.join(apps)}"
    if app and app not in having:
        return f"{app} has no {metric}: it is a {apps[app]} application", _those(having)
    if not having:
        return f"no application of this experiment has {metric}", f"there are {', '.join(apps)}"
    if not app and len(having) > 1:
        named = ", ".join(f"{name}.{metric}" for name in having)
        return f"{metric} is of several applications", f"write which one is meant: {named}"
    return None


def _those(having: Sequence[str]) -> str:
    return f"{', '.join(having)} has it" if having else "no application has it"


def expected_value(expectation: Expectation, summary: Mapping[str, Any]) -> float | None:
    """Returns the figure from a run's ``summary.json`` or from its metrics alone; None if it is missing."""
    apps: Mapping[str, Any] = summary.get("apps") or {}
    if expectation.app:
        entry = apps.get(expectation.app)
        return entry["metrics"].get(expectation.metric) if entry else None
    metrics = summary.get("metrics", summary)
    if expectation.metric in metrics:
        value: float | None = metrics[expectation.metric]
        return value
    having = [entry["metrics"] for entry in apps.values() if expectation.metric in entry["metrics"]]
    return having[0][expectation.metric] if len(having) == 1 else None


def evaluate_expectations(expect: Sequence[str], summary: Mapping[str, Any]) -> list[Failed]:
    """Returns those of ``expect`` that do not hold for a run's summary; a missing figure fails."""
    failed = []
    for expectation in map(parse_expectation, expect):
        value = expected_value(expectation, summary)
        if value is None or not OPERATORS[expectation.operator](value, expectation.bound):
            failed.append(Failed(expectation, value))
    return failed
