"""Defines the section ``delivery``: how much a query with delivery guarantees buffers, and what happens when
that is full.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Overflow
from orchestrator.apps.dataflow.spec.dataflow import MAX_BUFFER
from orchestrator.spec.base import Section
from orchestrator.spec.units import DURATION, ROOM

_MIB = 1024**2


class Delivery(Section):
    """Limits of queries whose reliability is at_least_once or exactly_once."""

    other_names: ClassVar[dict[str, str]] = {
        "items": "buffer",
        "buffers": "buffer",
        "bytes": "buffer_bytes",
        "spill_bytes": "spill",
        "source": "sources",
        "timeout": "unacknowledged",
    }

    buffer: Annotated[int, Field(strict=True, ge=1, le=MAX_BUFFER)] = Field(
        default=4096, description="Tuples of a stream that a replica keeps for a downstream operator"
    )
    buffer_bytes: Annotated[int, ROOM.within(ge=1, le=64 * 1024 * _MIB)] = Field(
        default=64 * _MIB, description="And their payloads in memory"
    )
    overflow: Literal["block", "spill", "drop_oldest"] = Field(
        default="block",
        description="When that is full: push back, put the oldest payloads into a file, or drop them",
    )
    spill: Annotated[int, ROOM] = Field(
        default=1024 * _MIB, description="How long a node's spill file may become; then as block"
    )
    sources: Literal["wait", "drop"] = Field(
        default="wait", description="Pushed back, a source waits, or drops its oldest unsent tuple"
    )
    in_flight: Annotated[int, Field(strict=True, ge=1, le=MAX_BUFFER)] = Field(
        default=64, description="Tuples on their way to a replica that has not taken them"
    )
    unacknowledged: Annotated[float, DURATION.within(ge=0.1, le=3600.0)] = Field(
        default=2.0, description="Age at which what the route has left behind is sent again"
    )

    def limits(self) -> DeliveryLimits:
        return DeliveryLimits(
            items=self.buffer,
            bytes=self.buffer_bytes,
            spill_bytes=self.spill,
            overflow=Overflow(self.overflow),
            in_flight=self.in_flight,
            unacknowledged=self.unacknowledged,
            longest_pause=max(16.0, self.unacknowledged),
            sources_wait=self.sources == "wait",
        )
