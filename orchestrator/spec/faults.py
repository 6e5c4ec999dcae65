"""Defines the section ``faults``: which faults happen during a run, and when.

`rove set` uses the same words for what is done to a network by hand.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model, model_validator

from orchestrator.errors import BadInput
from orchestrator.spec.application import APPLICATIONS
from orchestrator.spec.base import Section, ValidatedAs
from orchestrator.spec.problems import Finding, Unusable, listed, shown, unusable
from orchestrator.spec.units import LENGTH, LEVEL, Duration, PositiveDuration

Kind = Literal["crash", "silence", "partition", "cut", "degrade", "move"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ONE = "write it like {operator: detect, replica: 0}"
_EXAMPLE = "write it like {at: 40s, for: 10s, crash: {operator: detect, replica: 0}}"

TARGETS: dict[str, type[Section]] = {
    kind: target for kind in APPLICATIONS if (target := APPLICATIONS[kind].target) is not None
}
"""The targets that a fault can name, by kind of application. The first key is required."""


class NamedTarget(Section):
    """The target of a fault: a node by name, or the node of a part of an application."""

    node: str | None = None
    app: str | None = Field(
        default=None, description="The application it belongs to; needed only if several have such parts"
    )

    @classmethod
    def known_keys(cls) -> list[str]:
        parts = [key for key in cls.model_fields if key not in NamedTarget.model_fields]
        return [*parts, *NamedTarget.model_fields]

    def kind(self) -> str | None:
        """Returns the kind of application whose part is named; None if a node is named."""
        return next((kind for kind in TARGETS if getattr(self, _leading(kind)) is not None), None)

    def part(self, kind: str) -> dict[str, Any]:
        """Returns the named part of an application of this kind."""
        return {key: getattr(self, key) for key in TARGETS[kind].model_fields}

    @model_validator(mode="after")
    def _is_one(self) -> "NamedTarget":
        parts = [kind for kind in TARGETS if getattr(self, _leading(kind)) is not None]
        if len(parts) + (self.node is not None) != 1:
            words = [APPLICATIONS[kind].target_in_words for kind in TARGETS]
            raise unusable(f"name either {listed([*words, 'a node'])}", _ONE)
        if self.node is not None and self.app is not None:
            raise unusable("a node belongs to no application", "leave app out", at=("app",))
        return self


def _leading(kind: str) -> str:
    return next(iter(TARGETS[kind].model_fields))


def _target_model() -> type[NamedTarget]:
    fields: dict[str, Any] = {}
    for kind, target in TARGETS.items():
        for key, field in target.model_fields.items():
            if key in fields or key in NamedTarget.model_fields:
                raise BadInput(
                    f"the application {kind!r} names its parts by {key}, which is taken: rename it"
                )
            fields[key] = (field.annotation, field)
    return create_model("Target", __base__=NamedTarget, __doc__=NamedTarget.__doc__, **fields)


Target = Annotated[NamedTarget, ValidatedAs(_target_model())]

APART = "apart"
"""The name of the one group that a partition without names has."""
_SPLIT = "write it like {west: [n01, n02], east: [n03]}, or [n01, n02] for these apart from the rest"


def _read_partition(value: Any) -> dict[str, tuple[str, ...]]:
    """Reads groups of nodes by name; a node or a list of nodes is one group, apart from the rest."""
    if isinstance(value, str | list | tuple):
        value = {APART: value}
    if not isinstance(value, dict) or not value:
        raise unusable(f"{shown(value)} does not say which nodes are apart", _SPLIT)
    findings, groups = [], {}
    for name, nodes in value.items():
        named = [nodes] if isinstance(nodes, str) else nodes
        if not isinstance(named, list | tuple) or not all(isinstance(node, str) for node in named):
            findings.append(Finding((name,), f"{shown(nodes)} is not a list of nodes", _SPLIT))
        else:
            groups[str(name)] = tuple(named)
    if findings:
        raise Unusable(*findings)
    return groups


_NAMES = {"type": "array", "items": {"type": "string"}}
Partition = Annotated[
    dict[str, tuple[str, ...]],
    BeforeValidator(_read_partition),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                _NAMES,
                {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"anyOf": [{"type": "string"}, _NAMES]},
                },
            ]
        }
    ),
]


def _read_link(value: Any) -> tuple[str, str]:
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(isinstance(n, str) for n in value):
        raise unusable(f"{shown(value)} is not a link", "name its two nodes: [n01, n02]")
    if value[0] == value[1]:
        raise unusable(f"{shown(value[0])} has no link to itself", "name two nodes")
    return value[0], value[1]


Link = Annotated[
    tuple[str, str],
    BeforeValidator(_read_link),
    WithJsonSchema({**_NAMES, "minItems": 2, "maxItems": 2}),
]


class Degraded(Section):
    """A link that loses more than it would, in both directions."""

    link: Link = Field(examples=[["n01", "n02"]])
    by: Annotated[float, LEVEL.within(ge=0.1, le=200)] = Field(examples=["10 dB"])


def _read_place(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise unusable(f"{shown(value)} is not a position", "write it like [100 m, 250 m]")
    return LENGTH.read(value[0]), LENGTH.read(value[1])


class Moved(Section):
    """A node that is at another place than it would be, and stays there."""

    node: str
    to: Annotated[
        tuple[float, float],
        BeforeValidator(_read_place),
        WithJsonSchema(
            {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}}
        ),
    ] = Field(examples=[["100 m", "250 m"]])


# ``for`` is a Python keyword and cannot be a field name in a class body.
_lasting: dict[str, Any] = {
    "for": (PositiveDuration | None, Field(default=None, description="To the end of the run, if not given"))
}
_Lasting = create_model("_Lasting", __base__=Section, **_lasting)


class Fault(_Lasting):  # type: ignore[valid-type, misc]
    """One fault: a crash, a silence, a partition, a link that is cut or degraded, or a node that is moved."""

    at: Duration = Field(examples=["40s"], description="Since the measurement began")
    crash: Target | None = Field(default=None, description="Its agent is killed, and started anew afterwards")
    silence: Target | None = Field(default=None, description="Its radio neither sends nor receives")
    partition: Partition | None = Field(
        default=None,
        description="Groups of nodes between which no frame passes; nodes in no group are a further one",
        examples=[{"west": ["n01", "n02"], "east": ["n03", "n04"]}],
    )
    cut: Link | None = Field(
        default=None, description="Two nodes that do not hear each other", examples=[["n01", "n02"]]
    )
    degrade: Degraded | None = Field(default=None, description="A link that loses more than it would")
    move: Moved | None = Field(default=None, description="A node that is elsewhere, and back afterwards")

    @model_validator(mode="after")
    def _is_one(self) -> "Fault":
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise unusable(f"a fault is one of {', '.join(KINDS)}", _EXAMPLE)
        return self

    @property
    def kind(self) -> Kind:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def target(self) -> NamedTarget | None:
        """Returns the target of a crash or a silence; None of other faults."""
        return self.crash or self.silence

    @property
    def seconds(self) -> float | None:
        """Returns how long the fault lasts; None: to the end of the run."""
        lasts: float | None = getattr(self, "for")
        return lasts
