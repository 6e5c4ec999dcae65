"""Defines the section ``sweep``: values to vary, by their paths in the file."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from node_agent.extensions.files import is_reference
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import Finding, Unusable, shown, unusable

Scalar = int | float | str | bool
Varied = Scalar | dict[str, Any]
"""A value of a sweep; a mapping stands for a whole section."""
SECTIONS_TO_VARY = ("routing",)
"""The sections that a sweep may vary by mappings."""


def _read_sweep(value: Any, info: ValidationInfo) -> dict[str, tuple[Varied, ...]]:
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not a mapping of what to vary", "sweep: {replicas: [1, 2, 3]}")
    findings = []
    for key, values in value.items():
        if not isinstance(values, list | tuple) or not values:
            text = "the list is empty" if values == [] else f"{shown(values)}: expected a list of values"
            hint = "" if isinstance(values, list | dict | None) else f"write it like {key}: [{values}]"
            findings.append(Finding((key,), text, hint))
            continue
        seen: list[tuple[type, Varied]] = []
        for index, entry in enumerate(values):
            if not isinstance(entry, Scalar) and not (key in SECTIONS_TO_VARY and isinstance(entry, dict)):
                inner = next(iter(entry), None) if isinstance(entry, dict) else None
                hint = f"vary its values by their paths, such as {key}.{inner}" if inner else ""
                findings.append(Finding((key, index), f"{shown(entry)} is not a single value", hint))
            elif (type(entry), entry) in seen:
                findings.append(Finding((key, index), f"{shown(entry)} is listed twice"))
            else:
                seen.append((type(entry), entry))
    if findings:
        raise Unusable(*findings)
    folder = (info.context or {}).get(FOLDER, Path()).absolute()
    return {key: tuple(_absolute(entry, folder) for entry in values) for key, values in value.items()}


def _absolute(entry: Varied, folder: Path) -> Varied:
    """Makes the name of a user's extension, ``my_policy.py:decide``, absolute. It is relative to the
    experiment's file.
    """
    if not isinstance(entry, str) or not is_reference(entry):
        return entry
    return str((folder / entry).resolve())


Sweep = Annotated[
    dict[str, tuple[Varied, ...]],
    BeforeValidator(_read_sweep),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                section: {"type": "array", "minItems": 1, "items": {"type": ["string", "object"]}}
                for section in SECTIONS_TO_VARY
            },
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "items": {"type": ["number", "string", "boolean"]},
            },
            "description": "Values to vary, by their path in this file; every combination is run",
            "examples": [{"replicas": [1, 2, 3], "topology.mobility.speed": ["1 m/s", "5 m/s"]}],
        }
    ),
]
