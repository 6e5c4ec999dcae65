"""Loads queries and operators from a user's file. Naming the file in an experiment permits to run it."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import structs

from node_agent.apps.dataflow.model import query as model
from node_agent.apps.dataflow.query.build import Query
from node_agent.apps.dataflow.query.errors import QueryError, failed_at, place
from node_agent.extensions import ExtensionError, files


def load_module(path: Path) -> ModuleType:
    """Imports the Python file ``path``, once for each content that it has had. Raises QueryError."""
    try:
        return files.load_module(path)
    except ExtensionError as error:
        match error.__cause__:
            case QueryError() as cause:
                raise cause from None
            case SyntaxError() as cause:
                raise QueryError(f"{place(str(path), cause.lineno or 0)}: {cause.msg}") from cause
            case Exception() as cause:
                raise QueryError(_located(cause, path)) from cause
        raise QueryError(str(error)) from None


def load_query(path: Path, function: str, params: Mapping[str, Any]) -> model.Query:
    """Returns the query that ``function`` of the file makes of ``params``. Raises QueryError."""
    module = load_module(path)
    build = getattr(module, function, None)
    if build is None:
        raise QueryError(f"{path.name} has no {function}")
    try:
        made = build(**params) if callable(build) else build
    except QueryError:
        raise
    except Exception as error:
        raise QueryError(_located(error, path)) from error
    if isinstance(made, Query):
        made = made.build()
    if not isinstance(made, model.Query):
        raise QueryError(f"{function} of {path.name} gives {type(made).__name__}, not a Query")
    return structs.replace(made, module=str(path))


def load_for(query: model.Query) -> None:
    """Makes sure that the operators of ``query`` are registered. Raises QueryError."""
    if query.module is not None:
        load_module(Path(query.module))


def _located(error: Exception, path: Path) -> str:
    at = failed_at(error, str(path)) or path.name
    return f"{at}: {type(error).__name__}: {error}"
