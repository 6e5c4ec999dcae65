"""What one process registers is also there in the processes that it starts, by an environment variable.

It holds references, ``{"rove.mobility_models": {"mine": "/home/me/experiment.py:Model"}}``: a child imports
the file that defines the extension. What is not defined at the top of a file stays in its own process.
"""

import inspect
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

VARIABLE = "ROVE_EXTENSIONS"


def hand_on(group: str, name: str, value: object, defined_in: Mapping[str, Any]) -> None:
    """``defined_in``: the globals of the module that registers it."""
    reference = _reference(value, defined_in)
    if reference is not None:
        _write(_read() | {group: inherited(group) | {name: reference}})


def take_back(group: str, name: str) -> None:
    _write(_read() | {group: {key: value for key, value in inherited(group).items() if key != name}})


def inherited(group: str) -> dict[str, str]:
    """References by name."""
    return _read().get(group, {})


def _read() -> dict[str, dict[str, str]]:
    try:
        found = json.loads(os.environ.get(VARIABLE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _write(extensions: dict[str, dict[str, str]]) -> None:
    os.environ[VARIABLE] = json.dumps({group: names for group, names in extensions.items() if names})


def _reference(value: object, defined_in: Mapping[str, Any]) -> str | None:
    file, name = defined_in.get("__file__"), None
    if inspect.isclass(value) or inspect.isfunction(value):
        with suppress(TypeError, OSError):
            file, name = inspect.getsourcefile(value), value.__qualname__
    else:
        name = next((key for key, there in defined_in.items() if there is value), None)
    return f"{os.path.abspath(file)}:{name}" if file and name and name.isidentifier() else None  # noqa: PTH100
