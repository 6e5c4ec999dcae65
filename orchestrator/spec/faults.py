"""Defines the section ``faults``: which faults happen during a run, and when."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from orchestrator.errors import BadInput
from orchestrator.spec.application import APPLICATIONS
from orchestrator.spec.base import Section, ValidatedAs
from orchestrator.spec.problems import listed, unusable
from orchestrator.spec.units import Duration, PositiveDuration

Kind = Literal["crash", "silence"]
KINDS: tuple[Kind, ...] = ("crash", "silence")
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

# ``for`` is a Python keyword and cannot be a field name in a class body.
_lasting: dict[str, Any] = {
    "for": (PositiveDuration | None, Field(default=None, description="To the end of the run, if not given"))
}
_Lasting = create_model("_Lasting", __base__=Section, **_lasting)


class Fault(_Lasting):  # type: ignore[valid-type, misc]
    """One fault: an agent is killed (crash), or a node's radio is off (silence)."""

    at: Duration = Field(examples=["40s"], description="Since the measurement began")
    crash: Target | None = Field(default=None, description="Its agent is killed, and started anew afterwards")
    silence: Target | None = Field(default=None, description="Its radio neither sends nor receives")

    @model_validator(mode="after")
    def _is_one(self) -> "Fault":
        if (self.crash is None) is (self.silence is None):
            raise unusable("a fault is either a crash or a silence", _EXAMPLE)
        return self

    @property
    def kind(self) -> Kind:
        return "silence" if self.crash is None else "crash"

    @property
    def target(self) -> NamedTarget:
        target: NamedTarget | None = self.silence if self.crash is None else self.crash
        assert target is not None, "validated"
        return target

    @property
    def seconds(self) -> float | None:
        """Returns how long the fault lasts; None: to the end of the run."""
        lasts: float | None = getattr(self, "for")
        return lasts
