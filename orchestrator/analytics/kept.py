"""Reads stored results. Checks whether a stored document contains valid ones: it may be old, damaged or
somebody else's.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert

from orchestrator.analytics.layout import contributed
from orchestrator.errors import RoveError
from orchestrator.results.inputs import AppInput, RunInput
from orchestrator.runs.files import read_object


class _Part(Struct):
    metrics: dict[str, Any]
    series: dict[str, Any]


class _AppPart(_Part):
    kind: str


class _Result(_Part):
    stamp: str
    apps: dict[str, _AppPart]


class KeptResults(Mapping[Path, dict[str, Any]]):
    """Results by the directory of their run. Each is read from its file whenever somebody asks for it: those
    of thousands of runs would fill the memory.
    """

    def __init__(self, files: Mapping[Path, Path]) -> None:
        self._files = files

    def __getitem__(self, directory: Path) -> dict[str, Any]:
        if found := read_object(self._files[directory]):
            return found
        raise RoveError(f"the results of {directory.name} are gone: analyse it again")

    def __iter__(self) -> Iterator[Path]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


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
