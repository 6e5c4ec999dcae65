"""Passes what one process registers on to the processes that it starts, in an environment variable.

It holds references, ``{"rove.mobility_models": {"mine": "/home/me/experiment.py:Model"}}``: a child imports
the file that defines the extension. What is not defined at the top level of a file stays in its own process.
"""

import inspect
import json
import os
import sys
from contextlib import suppress

VARIABLE = "ROVE_EXTENSIONS"


def hand_on(group: str, name: str, value: object) -> None:
    reference = _reference(value)
    if reference is not None:
        _write(_read() | {group: inherited(group) | {name: reference}})


def take_back(group: str, name: str) -> None:
    _write(_read() | {group: {key: value for key, value in inherited(group).items() if key != name}})


def inherited(group: str) -> dict[str, str]:
    """Returns references by name."""
    return _read().get(group, {})


def _read() -> dict[str, dict[str, str]]:
    try:
        found = json.loads(os.environ.get(VARIABLE, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _write(extensions: dict[str, dict[str, str]]) -> None:
    os.environ[VARIABLE] = json.dumps({group: names for group, names in extensions.items() if names})


def _reference(value: object) -> str | None:
    if inspect.isclass(value) or inspect.isfunction(value):
        with suppress(TypeError, OSError):
            return _joined(inspect.getsourcefile(value), value.__qualname__)
        return None
    for module in list(sys.modules.values()):
        for name, there in list(getattr(module, "__dict__", {}).items()):
            if there is value:
                return _joined(getattr(module, "__file__", None), name)
    return None


def _joined(file: str | None, name: str) -> str | None:
    return f"{os.path.abspath(file)}:{name}" if file and name.isidentifier() else None  # noqa: PTH100
