"""What is to go wrong during a run, and when: the section ``faults``."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from orchestrator.spec.base import Section
from orchestrator.spec.problems import unusable
from orchestrator.spec.units import Duration, PositiveDuration

Kind = Literal["crash", "silence"]
KINDS: tuple[Kind, ...] = ("crash", "silence")
_ONE = "write it like {operator: detect, replica: 0}"
_EXAMPLE = "write it like {at: 40s, for: 10s, crash: {operator: detect, replica: 0}}"


class Victim(Section):
    """The node that it happens to: that of a replica, or any by its name."""

    operator: str | None = None
    replica: Annotated[int, Field(strict=True, ge=0)] = Field(
        default=0, description="Of that operator, counted from 0"
    )
    node: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "Victim":
        if (self.operator is None) is (self.node is None):
            raise unusable("name either an operator's replica or a node", _ONE)
        return self


# ``for`` is a word of Python's own: as a field it cannot be written into a class.
_lasting: dict[str, Any] = {
    "for": (PositiveDuration | None, Field(default=None, description="To the end of the run, if not given"))
}
_Lasting = create_model("_Lasting", __base__=Section, **_lasting)


class Fault(_Lasting):  # type: ignore[valid-type, misc]
    """One thing that goes wrong: an agent is killed (crash), or a node's radio is off (silence)."""

    at: Duration = Field(examples=["40s"], description="Since the measurement began")
    crash: Victim | None = Field(default=None, description="Its agent is killed, and started anew afterwards")
    silence: Victim | None = Field(default=None, description="Its radio neither sends nor receives")

    @model_validator(mode="after")
    def _is_one(self) -> "Fault":
        if (self.crash is None) is (self.silence is None):
            raise unusable("a fault is either a crash or a silence", _EXAMPLE)
        return self

    @property
    def kind(self) -> Kind:
        return "silence" if self.crash is None else "crash"

    @property
    def victim(self) -> Victim:
        victim = self.silence if self.crash is None else self.crash
        assert victim is not None, "validated"
        return victim

    @property
    def seconds(self) -> float | None:
        """None: to the end of the run."""
        lasts: float | None = getattr(self, "for")
        return lasts
