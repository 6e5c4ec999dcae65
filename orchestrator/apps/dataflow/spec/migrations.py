"""Defines an entry of ``migrations``: when an operator moves to another node, and how."""

from typing import Literal

from pydantic import Field

from orchestrator.spec.base import Section
from orchestrator.spec.units import Duration, PositiveDuration


class MigrationEntry(Section):
    """An operator moves to another node while tuples flow."""

    at: Duration = Field(description="From the beginning of the measurement")
    operator: str
    to: str = Field(description="The node that it moves to")
    method: Literal["live", "stop_and_copy"] = Field(
        default="live", description="live: it works on until all is at the new node; or it stops first"
    )
    give_up: PositiveDuration = Field(
        default=120.0, description="When an unfinished migration ends, and the operator stays"
    )
