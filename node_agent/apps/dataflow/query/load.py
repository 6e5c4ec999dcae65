"""Queries and operators out of a user's file or an installed package: code runs, on the user's word."""

import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from node_agent.apps.dataflow.model import query as model
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.build import Query
from node_agent.apps.dataflow.query.errors import QueryError, failed_at, place

ENTRY_POINTS = "rove.operators"
"""Modules that register operators when they are imported: [project.entry-points."rove.operators"]."""


def load_module(path: Path) -> ModuleType:
    """Import the Python file ``path``, once for each content that it has had. Raises QueryError."""
    try:
        return _load(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise QueryError(f"{path.name}: {(error.strerror or 'cannot be read').lower()}") from None


@cache
def _load(path: Path, changed_ns: int) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise QueryError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    hidden = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except QueryError:
        raise
    except SyntaxError as error:
        raise QueryError(f"{place(str(path), error.lineno or 0)}: {error.msg}") from error
    except Exception as error:
        raise QueryError(_told(error, path)) from error
    finally:
        if hidden is not None:
            sys.modules[path.stem] = hidden
    return module


def load_query(path: Path, function: str, params: Mapping[str, Any]) -> model.Query:
    """What ``function`` of the file makes of ``params``. Raises QueryError."""
    module = load_module(path)
    build = getattr(module, function, None)
    if build is None:
        raise QueryError(f"{path.name} has no {function}")
    try:
        made = build(**params) if callable(build) else build
    except QueryError:
        raise
    except Exception as error:
        raise QueryError(_told(error, path)) from error
    if isinstance(made, Query):
        made = made.build()
    if not isinstance(made, model.Query):
        raise QueryError(f"{function} of {path.name} gives {type(made).__name__}, not a Query")
    return structs.replace(made, module=str(path))


def load_for(query: model.Query) -> None:
    """See to it that the operators of ``query`` are known. Raises QueryError."""
    load_installed()
    if query.module is not None:
        load_module(Path(query.module))


@cache
def load_installed() -> tuple[str, ...]:
    """Import what installed packages offer: the kinds of operators that come with it. Raises QueryError."""
    known = frozenset(OPERATORS)
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            entry.load()
        except Exception as error:
            text = f"the operators {entry.name} ({entry.value}) of an installed package cannot be loaded"
            raise QueryError(f"{text}: {type(error).__name__}: {error}") from error
    return tuple(kind for kind in OPERATORS if kind not in known)


def _told(error: Exception, path: Path) -> str:
    at = failed_at(error, str(path)) or path.name
    return f"{at}: {type(error).__name__}: {error}"
