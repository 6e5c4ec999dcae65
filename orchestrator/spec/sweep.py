"""Defines the section ``sweep``: values to vary, by their paths in the file.

sweep:
  replicas: [1, 2, 3]                      # a list of values
  routing: {slow: {hello: 5s}, fast: {hello: 0.5s}}   # or choices by name, for whole sections and lists
  faults: {none: [], split: [{at: 10s, partition: [n01]}]}
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from node_agent.extensions.files import is_reference
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import Finding, Unusable, shown, unusable

Scalar = int | float | str | bool
Varied = Scalar | dict[str, Any]
"""A value of a list; a mapping stands for a whole section."""
Values = tuple[Varied, ...] | dict[str, Any]
"""A list of values, or choices by name."""
SECTIONS_TO_VARY = ("routing",)
"""The sections whose mappings have a name of their own in tables, so that a list of them will do."""
_LONGEST_LABEL = 60
FILE_KEYS = ("file", "trace")
"""The keys of sections whose values name files of data."""


class Choice(NamedTuple):
    """One value of a factor. ``label``: its name in tables; None: as the value says."""

    value: Any
    label: str | None = None

    def place(self, index: int) -> str | int:
        """Returns its place among the values."""
        return index if self.label is None else self.label


def choices(values: Values) -> tuple[Choice, ...]:
    if isinstance(values, Mapping):
        return tuple(Choice(value, label) for label, value in values.items())
    return tuple(Choice(value) for value in values)


def _read_sweep(value: Any, info: ValidationInfo) -> dict[str, Values]:
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not a mapping of what to vary", "sweep: {replicas: [1, 2, 3]}")
    findings = []
    for key, values in value.items():
        found = (
            _label_findings(values) if isinstance(values, dict) and values else _list_findings(key, values)
        )
        findings += [finding._replace(at=(key, *finding.at)) for finding in found]
    if findings:
        raise Unusable(*findings)
    folder = (info.context or {}).get(FOLDER, Path()).absolute()
    return {key: _read(values, folder) for key, values in value.items()}


def _label_findings(named: dict[Any, Any]) -> list[Finding]:
    findings = []
    for label in named:
        if not isinstance(label, str) or not label.isprintable() or not 0 < len(label) <= _LONGEST_LABEL:
            text = f"{shown(label)} is not a name for a choice"
            findings.append(
                Finding((label,), text, f"use up to {_LONGEST_LABEL} letters, in quotes if need be")
            )
    return findings


def _list_findings(key: str, values: Any) -> list[Finding]:
    if not isinstance(values, list | tuple) or not values:
        text = "the list is empty" if values == [] else f"{shown(values)}: expected a list of values"
        hint = "" if isinstance(values, list | dict | None) else f"write it like {key}: [{values}]"
        return [Finding((), text, hint)]
    findings = []
    seen: list[tuple[type, Varied]] = []
    for index, entry in enumerate(values):
        if not isinstance(entry, Scalar) and not (key in SECTIONS_TO_VARY and isinstance(entry, dict)):
            inner = next(iter(entry), None) if isinstance(entry, dict) else None
            by_path = f"vary its values by their paths, such as {key}.{inner}, or " if inner else ""
            hint = f"{by_path}give whole values names: {key}: {{one: …, other: …}}"
            findings.append(Finding((index,), f"{shown(entry)} is not a single value", hint))
        elif (type(entry), entry) in seen:
            findings.append(Finding((index,), f"{shown(entry)} is listed twice"))
        else:
            seen.append((type(entry), entry))
    return findings


def _read(values: Any, folder: Path) -> Values:
    if isinstance(values, dict):
        return {label: _absolute(entry, folder) for label, entry in values.items()}
    return tuple(_absolute(entry, folder) for entry in values)


def _absolute(entry: Any, folder: Path, key: str = "") -> Any:
    """Makes the names of a user's extensions, ``my_policy.py:decide``, and of files absolute. They are
    relative to the experiment's file.
    """
    if isinstance(entry, dict):
        return {inner: _absolute(value, folder, inner) for inner, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_absolute(value, folder) for value in entry]
    if isinstance(entry, str) and (key in FILE_KEYS or is_reference(entry)):
        return str((folder / entry).resolve())
    return entry


_LISTED = {"type": "array", "minItems": 1, "items": {"type": ["number", "string", "boolean"]}}
_NAMED = {"type": "object", "minProperties": 1}

Sweep = Annotated[
    dict[str, Values],
    BeforeValidator(_read_sweep),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                section: {"anyOf": [{**_LISTED, "items": {"type": ["string", "object"]}}, _NAMED]}
                for section in SECTIONS_TO_VARY
            },
            "additionalProperties": {"anyOf": [_LISTED, _NAMED]},
            "description": "Values to vary, by their path in this file; every combination is run",
            "examples": [{"replicas": [1, 2, 3], "topology.mobility.speed": ["1 m/s", "5 m/s"]}],
        }
    ),
]
