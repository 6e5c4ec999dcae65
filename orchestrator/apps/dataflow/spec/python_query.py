"""Reads a query from a Python file, ``query: checkpoint.py:build``. By naming the file, the user permits to
run it.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from node_agent.apps.dataflow.model.query import Query, Reliability
from node_agent.apps.dataflow.model.query_problems import query_problems
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.errors import QueryError
from node_agent.apps.dataflow.query.load import load_query
from orchestrator.spec.base import Section
from orchestrator.spec.file_reference import FOLDER, FileReference
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.source_file import Unreadable

PYTHON_PATTERN = r"\.py:[A-Za-z_][A-Za-z0-9_]*$"
_EXAMPLE = "write it like my_query.py:build"


@dataclass(frozen=True)
class PythonFunction(FileReference):
    function: str

    def written(self, file: str) -> str:
        return f"{file}:{self.function}"

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"


def _read(value: Any, info: ValidationInfo) -> PythonFunction:
    if isinstance(value, PythonFunction):
        return value
    file, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not (colon and file.endswith(".py") and function.isidentifier()):
        raise unusable(f"{shown(value)} is not a function of a Python file", _EXAMPLE)
    path = ((info.context or {}).get(FOLDER, Path()).absolute() / file).resolve()
    try:
        (content,) = FileReference(path, "").contents().values()
    except Unreadable as error:
        raise unusable(f"{shown(file)}: {error.message}", error.hint) from None
    return PythonFunction(path, hashlib.sha256(content).hexdigest(), function)


def _read_argument(value: Any) -> int | float | str | bool:
    if isinstance(value, int | float | str):
        return value
    raise unusable(f"{shown(value)} is not a single value")


class PythonQuery(Section):
    """A query that a function of a Python file builds; the file is imported here and by the agents."""

    python: Annotated[
        PythonFunction,
        PlainValidator(_read),
        PlainSerializer(str),
        WithJsonSchema({"type": "string", "pattern": PYTHON_PATTERN}),
    ] = Field(examples=["my_query.py:build"])
    arguments: dict[str, Annotated[int | float | str | bool, BeforeValidator(_read_argument)]] = Field(
        default={}, description="What the function is given"
    )
    reliability: Reliability | None = Field(
        default=None, description="In place of what the query says itself"
    )

    def build(self) -> Query:
        """Builds the query. Raises QueryError."""
        query = load_query(self.python.path, self.python.function, self.arguments)
        if self.reliability is None:
            return query
        return msgspec.structs.replace(query, reliability=self.reliability)

    @model_validator(mode="after")
    def _can_be_built(self) -> "PythonQuery":
        try:
            query = self.build()
        except QueryError as error:
            raise unusable(str(error).replace("\n", "\n    "), at=("python",)) from None
        roles = {operator.name: OPERATORS[operator.kind].role for operator in query.operators}
        for problem in query_problems(query, roles):
            raise unusable(": ".join([*problem.at, problem.message]), problem.hint, at=("python",))
        return self
