"""The ``query`` section: a registered query with its parameters, or a dataflow written out in the file.

The models are made from the agents' registry, so that a new operator kind or query is at once valid in files,
with its parameters, their bounds and their units.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args

import msgspec
from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

import node_agent.dataflow.synthetic  # noqa: F401  registers its operators and queries
from node_agent.dataflow.registry import OPERATORS, QUERIES
from node_agent.model.query import OperatorSpec, Query
from orchestrator.spec.base import Name, Section
from orchestrator.spec.dataflow import Vertex, graph_findings
from orchestrator.spec.problems import Finding, Unusable, listed, shown, unusable
from orchestrator.spec.units import DURATION, RATE, SIZE, Quantity

_UNIT_OF: Mapping[str, Quantity] = {"rate": RATE, "payload": SIZE, "output": SIZE, "cpu": DURATION}
_MAX_WHOLE = 1_000_000_000


def _read_after(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise unusable(f"{shown(value)} is not an operator's name or a list of them", "after: camera")
    return tuple(names)


After = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_after),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "The operator(s) whose output this one consumes",
        }
    ),
]


class Operator(Section):
    """One operator of a dataflow: its kind, whose output it consumes, and the parameters of its kind."""

    kind: str
    after: After = ()

    def params(self) -> dict[str, Any]:
        names = [name for name in type(self).model_fields if name not in ("kind", "after")]
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class ValidatedAs:
    """Annotation for a type that the registry decides on and the type checker therefore cannot see."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.annotation)


def _one_of(models: Iterable[type[Section]], key: str) -> Any:
    choices = tuple(models)
    return Annotated[Union[choices], Field(discriminator=key)] if len(choices) > 1 else choices[0]  # noqa: UP007


def _limits(annotation: Any) -> dict[str, float]:
    """The bounds that a parameter's struct states, wherever in the annotation they stand."""
    if isinstance(annotation, msgspec.Meta):
        stated = {name: getattr(annotation, name) for name in ("gt", "ge", "le")}
        return {name: bound for name, bound in stated.items() if bound is not None}
    return {name: bound for part in get_args(annotation) for name, bound in _limits(part).items()}


def _parameter(name: str, annotation: Any, default: Any) -> tuple[Any, Any]:
    """A parameter as a field of a file: with a unit if its name has one, else a whole number."""
    limits = _limits(annotation)
    field: Any
    if quantity := _UNIT_OF.get(name):
        field = Annotated[int if quantity.whole else float, quantity.within(**limits)]
    else:
        bounds: dict[str, Any] = {"ge": 0, "le": _MAX_WHOLE, **limits}
        field = Annotated[int, Field(strict=True, **bounds)]
    return (field | None, default) if type(None) in get_args(annotation) else (field, default)


def _choice(word: str) -> tuple[Any, Any]:
    only: Any = Literal[word]
    return only, Field(examples=[word])


def _operator_model(kind: str) -> type[Operator]:
    params = msgspec.structs.fields(OPERATORS[kind].params)
    fields: dict[str, Any] = {p.name: _parameter(p.name, p.type, p.default) for p in params}
    return create_model(f"operator_{kind}", __base__=Operator, kind=_choice(kind), **fields)


_OPERATOR_MODELS = {kind: _operator_model(kind) for kind in OPERATORS}


class Dataflow(Section):
    """A query written out: operators by name."""

    operators: dict[Name, Annotated[Operator, ValidatedAs(_one_of(_OPERATOR_MODELS.values(), "kind"))]]

    def build(self) -> Query:
        return Query(
            "dataflow",
            tuple(OperatorSpec(name, o.kind, o.after, o.params()) for name, o in self.operators.items()),
        )

    @model_validator(mode="after")
    def _can_flow(self) -> "Dataflow":
        graph = {name: Vertex(OPERATORS[o.kind].role, o.after) for name, o in self.operators.items()}
        findings = graph_findings(graph)
        if findings:
            raise Unusable(*(Finding(("operators", *f.at), f.message, f.hint) for f in findings))
        return self


class RegisteredQuery(Section):
    """A query the agents know by name, with its parameters."""

    name: str

    def params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields if name != "name"}

    def build(self) -> Query:
        return QUERIES[self.name](**self.params())

    @model_validator(mode="after")
    def _can_be_built(self) -> "RegisteredQuery":
        try:
            query = self.build()
        except ValueError as error:
            raise unusable(str(error)) from None
        for operator in query.operators:
            document = {"kind": operator.kind, "after": operator.after, **operator.params}
            _OPERATOR_MODELS[operator.kind].model_validate(document)
        return self


def _query_model(name: str) -> type[RegisteredQuery]:
    fields: dict[str, Any] = {
        p.name: _parameter(p.name, p.annotation, p.default)
        for p in inspect.signature(QUERIES[name]).parameters.values()
    }
    return create_model(f"query_{name}", __base__=RegisteredQuery, name=_choice(name), **fields)


def _shape(value: Any) -> str:
    """Which of the two forms is meant; ``operators`` may also be a parameter of a registered query."""
    written_out = isinstance(value, dict) and "name" not in value
    return "dataflow" if written_out or isinstance(value, Dataflow) else "named"


def _read_query(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, RegisteredQuery | Dataflow):
        return value
    if not isinstance(value, dict) or not ("name" in value or "operators" in value):
        raise unusable(
            f"{shown(value)} is neither a query's name nor a dataflow",
            f"write query: {listed(QUERIES)}, or query: {{operators: {{…}}}}",
        )
    return value


class _QueryForms(ValidatedAs):
    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        forms = handler(schema)
        return {"anyOf": [{"enum": list(QUERIES)}, *forms.get("oneOf", [forms])]}


_NAMED: Any = Annotated[_one_of(map(_query_model, QUERIES), "name"), Tag("named")]
_FORMS: Any = Annotated[_NAMED | Annotated[Dataflow, Tag("dataflow")], Discriminator(_shape)]
QueryField = Annotated[RegisteredQuery | Dataflow, _QueryForms(_FORMS), BeforeValidator(_read_query)]
