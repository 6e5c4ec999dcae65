"""Defines the section ``query``: a registered query, a dataflow written out in the file, or a user's Python
file.

The models are made from the agents' registry, so that a new operator kind or query is at once valid in files,
with its parameters, their bounds and their units.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import msgspec
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from node_agent.apps.dataflow.model.query import Query, Reliability
from node_agent.apps.dataflow.model.query_problems import query_problems
from node_agent.apps.dataflow.operators.pace import SATURATE, Saturate
from node_agent.apps.dataflow.operators.registry import OPERATORS, QUERIES, Build, OperatorKind
from node_agent.extensions.files import is_reference
from orchestrator.apps.dataflow.spec.dataflow import Operator
from orchestrator.apps.dataflow.spec.named_path import path_reader, what_it_names
from orchestrator.apps.dataflow.spec.python_query import PYTHON_PATTERN, PythonQuery
from orchestrator.spec.base import Name, Section, ValidatedAs
from orchestrator.spec.problems import Finding, Unusable, listed, shown, unusable
from orchestrator.spec.registered import Registered, look_up
from orchestrator.spec.units import DURATION, RATE, SIZE, OrWord, Quantity

_UNIT_OF: Mapping[str, Quantity] = {
    "rate": RATE,
    "payload": SIZE,
    "output": SIZE,
    "state": SIZE,
    "cpu": DURATION,
}
_MAX_WHOLE = 1_000_000_000


def _limits(annotation: Any) -> dict[str, float]:
    """Returns the bounds that a parameter's struct states, anywhere in the annotation."""
    if isinstance(annotation, msgspec.Meta):
        stated = {name: getattr(annotation, name) for name in ("gt", "ge", "le")}
        return {name: bound for name, bound in stated.items() if bound is not None}
    return {name: bound for part in get_args(annotation) for name, bound in _limits(part).items()}


def _parameter(name: str, annotation: Any, default: Any) -> tuple[Any, Any]:
    """Returns a parameter as a field of a file: with a unit if its name has one, else of its plain type."""
    limits = _limits(annotation)
    field: Any
    plain = _plain(annotation)
    if get_origin(plain) is Literal:
        field = plain
    elif named := what_it_names(annotation):
        field = Annotated[str, Field(strict=True), AfterValidator(path_reader(named))]
    elif plain in (str, bool):
        field = Annotated[plain, Field(strict=True)]
    elif plain is float and name not in _UNIT_OF:
        within: dict[str, Any] = {**limits}
        field = Annotated[float, Field(strict=True, allow_inf_nan=False, **within)]
    elif Saturate in get_args(annotation):
        field = Annotated[float | Saturate, OrWord(RATE.within(**limits), SATURATE)]
    elif quantity := _UNIT_OF.get(name):
        field = Annotated[int if quantity.whole else float, quantity.within(**limits)]
    else:
        bounds: dict[str, Any] = {"ge": 0, "le": _MAX_WHOLE, **limits}
        field = Annotated[int, Field(strict=True, **bounds)]
    default = ... if default in (msgspec.NODEFAULT, inspect.Parameter.empty) else default
    return (field | None, default) if type(None) in get_args(annotation) else (field, default)


def _plain(annotation: Any) -> Any:
    """Returns the type without bounds and without None."""
    if get_origin(annotation) is Literal or not get_args(annotation):
        return annotation
    return _plain(next(part for part in get_args(annotation) if part is not type(None)))


def _choice(word: str) -> tuple[Any, Any]:
    only: Any = Literal[word]
    return only, Field(examples=[word])


@cache
def _operator_model(kind: OperatorKind) -> type[Operator]:
    params = msgspec.structs.fields(kind.params)
    fields: dict[str, Any] = {p.name: _parameter(p.name, p.type, p.default) for p in params}
    return create_model(f"operator_{kind.name}", __base__=Operator, kind=_choice(kind.name), **fields)


class _AnyQuery(Registered):
    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"oneOf": super().__get_pydantic_json_schema__(schema, handler)["oneOf"][:-1]}


class _AnyOperator(_AnyQuery):
    """A mapping whose ``kind`` is one of ours or of an installed package."""

    def read(self, value: Any, info: ValidationInfo) -> Section:
        if isinstance(value, dict) and is_reference(str(value.get("kind"))):
            hint = "build the whole query in that file: query: my_query.py:build"
            raise unusable(f"{shown(value['kind'])}: operators of a file are named by its own queries", hint)
        return super().read(value, info)


class Dataflow(Section):
    """A query written out: operators by name."""

    reliability: Reliability = "best_effort"
    operators: dict[Name, Annotated[Operator, _AnyOperator(OPERATORS, "kind", section=_operator_model)]]

    def build(self) -> Query:
        operators = tuple(operator.spec(name) for name, operator in self.operators.items())
        return Query("dataflow", operators, self.reliability)

    @model_validator(mode="after")
    def _can_flow(self) -> "Dataflow":
        both = [name for name, o in self.operators.items() if o.window is not None and o.join is not None]
        findings = [
            Finding(("operators", name, "join"), "there is a window, too", "keep one of them")
            for name in both
        ]
        roles = {name: OPERATORS[operator.kind].role for name, operator in self.operators.items()}
        for problem in query_problems(self.build(), roles):
            findings.append(Finding(("operators", *problem.at), problem.message, problem.hint))
        if findings:
            raise Unusable(*findings)
        return self


class RegisteredQuery(Section):
    """A query the agents know by name, with its parameters."""

    other_names: ClassVar[dict[str, str]] = {"pace": "rate", "saturate": "rate"}

    name: str
    reliability: Reliability = "best_effort"

    def params(self) -> dict[str, Any]:
        names = [name for name in type(self).model_fields if name not in RegisteredQuery.model_fields]
        return {name: getattr(self, name) for name in names}

    def build(self) -> Query:
        return msgspec.structs.replace(QUERIES[self.name](**self.params()), reliability=self.reliability)

    @model_validator(mode="after")
    def _can_be_built(self) -> "RegisteredQuery":
        try:
            query = self.build()
        except ValueError as error:
            raise unusable(str(error)) from None
        for operator in query.operators:
            document = {"kind": operator.kind, "after": operator.after, **operator.params}
            _operator_model(OPERATORS[operator.kind]).model_validate(document)
        return self


@cache
def _query_model(build: Build) -> type[RegisteredQuery]:
    name = next(name for name in QUERIES if QUERIES[name] is build)
    fields: dict[str, Any] = {
        p.name: _parameter(p.name, p.annotation, p.default)
        for p in inspect.signature(build).parameters.values()
    }
    return create_model(f"query_{name}", __base__=RegisteredQuery, name=_choice(name), **fields)


def _shape(value: Any) -> str:
    """Decides which of the forms is meant; ``operators`` may also be a parameter of a registered query."""
    if isinstance(value, PythonQuery) or (isinstance(value, dict) and "python" in value):
        return "user_file"
    written_out = isinstance(value, dict) and "name" not in value
    return "dataflow" if written_out or isinstance(value, Dataflow) else "named"


def _read_query(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        if ".py" in value:
            return {"python": value}
        return {"name": look_up(QUERIES, value, info)[0]}
    if isinstance(value, RegisteredQuery | Dataflow | PythonQuery):
        return value
    if not isinstance(value, dict) or not any(key in value for key in ("name", "operators", "python")):
        raise unusable(
            f"{shown(value)} is neither a query's name nor a dataflow",
            f"write query: {listed(QUERIES)}, query: {{operators: {{…}}}}, or query: my_query.py:build",
        )
    return value


class _QueryForms(ValidatedAs):
    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        forms = handler(schema)
        python = {
            "type": "string",
            "pattern": PYTHON_PATTERN,
            "description": "A Python file and its function",
        }
        return {"anyOf": [{"enum": list(QUERIES)}, python, *forms.get("oneOf", [forms])]}


_NAMED: Any = Annotated[RegisteredQuery, _AnyQuery(QUERIES, "name", section=_query_model), Tag("named")]
_FORMS: Any = Annotated[
    _NAMED | Annotated[Dataflow, Tag("dataflow")] | Annotated[PythonQuery, Tag("user_file")],
    Discriminator(_shape),
]
QueryField = Annotated[
    RegisteredQuery | Dataflow | PythonQuery, _QueryForms(_FORMS), BeforeValidator(_read_query)
]
