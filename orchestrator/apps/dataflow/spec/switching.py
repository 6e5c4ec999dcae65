"""Defines the section ``switching``: when a replica sends to another downstream replica than before."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from node_agent.apps.dataflow.model.decision import Threshold
from node_agent.apps.dataflow.switching.chooser import try_policy
from node_agent.apps.dataflow.switching.policy import DEFAULT, POLICIES
from node_agent.extensions import ExtensionError
from node_agent.extensions.files import short_name
from orchestrator.spec.base import Section
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.registered import RegisteredName
from orchestrator.spec.units import PositiveDuration

MAX_THRESHOLD = 1e6
_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*", re.ASCII)
_THRESHOLD_HINT = "write it like 1 (in units of cost) or 10% (of the cost of the way in use)"


def read_threshold(value: Any) -> float | str:
    """Reads a gain in units of cost, or a share of the present cost such as ``10%``;
    returns it normalised.
    """
    share = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if share:
        percent = float(share[1])
        if percent > 100:
            raise unusable(f"{shown(value)} is too large: nothing can gain more than 100%")
        return f"{percent:g}%"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unusable(f"{shown(value)} is not a threshold", _THRESHOLD_HINT)
    if not 0 <= value <= MAX_THRESHOLD:
        raise unusable(f"{shown(value)}: a threshold is between 0 and {MAX_THRESHOLD:,.0f}", _THRESHOLD_HINT)
    return float(value)


def threshold_of(read: float | str) -> Threshold:
    return Threshold(read) if not isinstance(read, str) else Threshold(float(read[:-1]) / 100, relative=True)


ThresholdField = Annotated[
    float | str,
    BeforeValidator(read_threshold),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": MAX_THRESHOLD},
                {"type": "string", "pattern": r"^\s*(\d+(\.\d*)?|\.\d+)\s*%\s*$"},
            ],
            "description": "The gain that a switch must exceed, in units of cost or of the present cost",
            "examples": [1, "10%"],
        }
    ),
]


def _tried(name: str) -> str:
    """Tries a policy that others wrote in a few sample situations, before anything is created."""
    if not POLICIES.is_builtin(name):
        try:
            try_policy(name, POLICIES[name])
        except ExtensionError as error:
            raise unusable(f"the policy {short_name(name)} cannot be used: {error}") from None
    return name


PolicyField = Annotated[
    str,
    RegisteredName(POLICIES),
    AfterValidator(_tried),
    Field(description="Which replica downstream is taken: one of these, or my_policy.py:decide"),
]


class Switching(Section):
    """When a replica sends to another downstream replica than before."""

    policy: PolicyField = DEFAULT
    mode: Literal["link_state", "exchange"] = Field(
        default="link_state",
        description="Whether the network layer tells what whole ways cost, or replicas tell each other",
    )
    period: PositiveDuration = 2.0
    threshold: ThresholdField = 0.0
    exponent: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = Field(
        default=2.0, description="weighted and backpressure weigh by 1/cost^exponent"
    )

    def summary(self) -> str:
        """Describes the policy in one line."""
        source = {"link_state": "the network layer", "exchange": "each other (exchange)"}[self.mode]
        threshold = threshold_of(self.threshold)
        adapted = f"{short_name(self.policy)} every {self.period:g} s, threshold {threshold}"
        return f"{adapted}; costs are known from {source}"
