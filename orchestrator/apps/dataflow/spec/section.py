"""Defines the section of one dataflow in an experiment file: ``query``, its replicas, placement and
switching.
"""

from typing import Annotated, Any

from pydantic import Field, field_serializer

from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.spec.delivery import Delivery
from orchestrator.apps.dataflow.spec.migrations import MigrationEntry
from orchestrator.apps.dataflow.spec.placement import Placement, RandomPlacement, Replicas
from orchestrator.apps.dataflow.spec.query import QueryField
from orchestrator.apps.dataflow.spec.switching import Switching, threshold_of
from orchestrator.spec.application import AppSection
from orchestrator.spec.base import Section


class DataflowSection(AppSection):
    """A query, and how many replicas of its operators run where."""

    query: QueryField = Field(examples=["synthetic_chain"])
    replicas: Replicas = 1
    placement: Placement = RandomPlacement()
    switching: Switching = Switching()
    delivery: Delivery = Delivery()
    migrations: tuple[MigrationEntry, ...] = Field(
        default=(),
        description="Operators that move to other nodes while tuples flow",
        examples=[[{"at": "30s", "operator": "recognise", "to": "n07"}]],
    )

    def dataflow(self) -> Query:
        return self.query.build()

    def rule(self, seed: int) -> Rule:
        switching = self.switching
        return Rule(switching.policy, threshold_of(switching.threshold), switching.exponent, seed)

    @field_serializer("query")
    def _whole_query(self, query: Section) -> dict[str, Any]:
        return query.model_dump(mode="json")


class ReplicaTarget(Section):
    """The target of a fault in a dataflow: an operator's replica."""

    operator: str | None = None
    replica: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        default=None, description="Of that operator, counted from 0; the first if not given"
    )
    in_use: bool = Field(
        default=False, strict=True, description="Whichever of its replicas the stream flows through then"
    )
