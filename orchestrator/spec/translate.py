"""Translates pydantic's errors into findings in plain words, with places as they are in the file."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestrator.spec.base import Section, ValidatedAs
from orchestrator.spec.problems import Finding, Place, Unusable, did_you_mean, listed, shown

UNKNOWN_KEY = "unknown key"
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def findings_of(error: ValidationError, model: type[Section], document: Any) -> list[Finding]:
    validated = model.as_validated(document)
    return [
        finding._replace(at=model.place_in(document, finding.at))
        for details in error.errors()
        for finding in _translated(dict(details), _at(_location(details), details["type"], validated), model)
    ]


def _location(error: ErrorDetails) -> tuple[str | int, ...]:
    """Returns the place of the error. If an unknown name was chosen, that is the key that chooses."""
    if error["type"] != "union_tag_invalid":
        return error["loc"]
    return *error["loc"], error["ctx"]["discriminator"].strip("'")


def _translated(error: dict[str, Any], at: Place, model: type[Section]) -> Iterator[Finding]:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if isinstance(context.get("error"), Unusable):
        for finding in context["error"].findings:
            yield Finding((*at, *finding.at), finding.message, finding.hint)
    elif kind in ("value_error", "assertion_error"):  # raised by an extension's own validators
        yield Finding(at, str(context["error"]) or f"{shown(value)} cannot be used here")
    elif kind == "missing":
        yield Finding(at, "missing", _example(model, error["loc"]))
    elif kind == "extra_forbidden":
        yield Finding(at, UNKNOWN_KEY, _key_hint(at[-1], _models_at(model, error["loc"][:-1])))
    elif kind == "literal_error":
        yield _not_a_choice(at, value, context["expected"])
    elif kind == "union_tag_invalid":
        yield _not_a_choice(at, context["tag"], context["expected_tags"])
    elif kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        yield Finding((*at, key), "missing", _choices_hint(model, error["loc"], key))
    elif kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        yield Finding(at, f"{shown(value)} {words} {context[bound]}")
    elif kind in _EXPECTED:
        yield Finding(at, f"{shown(value)}: expected {_EXPECTED[kind]}", _example(model, error["loc"]))
    elif kind == "too_short":
        has, needs = context["actual_length"], context["min_length"]
        text = "is empty" if not has else f"has only {has} of at least {needs} entries"
        yield Finding(at, text, _example(model, error["loc"]))
    else:
        yield Finding(at, f"{shown(value)} cannot be used here")


def _at(location: tuple[str | int, ...], kind: str, document: Any) -> Place:
    """Removes the parts of a pydantic location that are not in the file (tags of unions, ``[key]``)."""
    path: Place = ()
    for position, part in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(document, dict) and part in document:
            document = document[str(part)]
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        elif not (is_last and kind == "missing"):
            continue
        path = (*path, part)
    return path


def _not_a_choice(at: Place, value: Any, expected: str) -> Finding:
    choices = re.findall(r"'([^']*)'", expected)
    return Finding(
        at, f"{shown(value)} is not known here; expected {listed(choices)}", did_you_mean(value, choices)
    )


def _key_hint(word: str | int, models: list[type[Section]]) -> str:
    for found in models:
        if (ours := found.other_names.get(str(word))) is not None:
            return did_you_mean(ours, [ours])
    known = list(dict.fromkeys(key for found in models for key in found.known_keys()))
    return did_you_mean(word, known) or f"known here: {', '.join(known)}"


def _example(model: type[Section], location: tuple[str | int, ...]) -> str:
    key = str(location[-1])
    for found in _models_at(model, location[:-1]):
        field = found.model_fields.get(key)
        if field is not None and field.examples:
            return f"for example {key}: {_in_one_line(field.examples[0])}"
    return ""


def _in_one_line(example: Any) -> str:
    """An example as one writes it in a file."""
    if not isinstance(example, dict | list):
        return str(example)
    return yaml.safe_dump(example, default_flow_style=True, sort_keys=False, width=1000).strip()


def _choices_hint(model: type[Section], location: tuple[str | int, ...], key: str) -> str:
    choices = [
        choice
        for found in _models_at(model, location)
        if key in found.model_fields
        for choice in _literals(found.model_fields[key])
    ]
    return f"expected {key}: {listed(dict.fromkeys(choices))}"


def _models_at(model: type[Section], location: tuple[str | int, ...]) -> list[type[Section]]:
    """Returns the sections that are possible at a pydantic location."""
    models = [model]
    parts = iter(location)
    for part in parts:
        fields = [found.model_fields[str(part)] for found in models if part in found.model_fields]
        inner = [section for field in fields for section in _sections(field)]
        if any(get_origin(field.annotation) is dict for field in fields):
            next(parts, None)  # skip a name that the user chose, even if it equals one of our keys
        tagged = [found for found in models if found.__name__ == part or _is_tagged(found, part)]
        models = inner or tagged or models
    return models


def _is_tagged(model: type[Section], tag: str | int) -> bool:
    return any(tag in _literals(field) for field in model.model_fields.values())


def _sections(annotation: Any) -> list[type[Section]]:
    """Returns all sections in an annotation, including those that a registry chooses."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    if isinstance(annotation, FieldInfo):
        parts = [annotation.annotation, *annotation.metadata]
    elif isinstance(annotation, ValidatedAs):
        parts = [annotation.annotation]
    else:
        parts = [*get_args(annotation), *getattr(annotation, "__metadata__", ())]
    registered = [part for part in parts if isinstance(part, ValidatedAs)]
    return [section for part in registered or parts for section in _sections(part)]


def _literals(field: FieldInfo) -> tuple[Any, ...]:
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
