"""Checks whether a stored document contains valid results: it may be old, damaged or somebody else's."""

from typing import Any

from msgspec import Struct, ValidationError, convert

from orchestrator.analytics.layout import contributed
from orchestrator.results.inputs import AppInput, RunInput


class _Part(Struct):
    metrics: dict[str, Any]
    series: dict[str, Any]


class _AppPart(_Part):
    kind: str


class _Result(_Part):
    stamp: str
    apps: dict[str, _AppPart]


def is_result(document: Any, run: RunInput) -> bool:
    """Says whether it has the values that are computed for ``run``, each with its declared type."""
    try:
        result = convert(document, _Result)
        if result.apps.keys() != run.apps.keys():
            return False
        _check(result, None)
        for name, app in run.apps.items():
            _check(result.apps[name], app)
    except ValidationError:
        return False
    return True


def _check(part: _Part, app: AppInput | None) -> None:
    """Checks one part. Raises ValidationError."""
    for each in contributed(app):
        for figures in each.figures:
            for metric in figures.metrics:
                if not metric.optional or metric.name in part.metrics:
                    _is(part.metrics, metric.name, metric.shape)
            for name, shape in figures.series.items():
                _is(part.series, name, shape)


def _is(values: dict[str, Any], name: str, shape: Any) -> None:
    if name not in values:
        raise ValidationError(f"it has no {name}")
    convert(values[name], shape)
