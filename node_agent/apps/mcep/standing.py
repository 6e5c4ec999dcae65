"""Where an operator stands between two messages: what another machine needs to go on from there."""

from collections.abc import Mapping
from typing import NamedTuple

from node_agent.apps.mcep.channel import ChannelId, Marker
from node_agent.apps.mcep.model import Event, Mark, Value

PartName = Value | tuple[int, int] | None
"""Of a partition: a source, an attribute or a square; None if there are no partitions."""


class GateStanding(NamedTuple):
    """``passed``: producer and key of the last event. ``inlets``: epoch and watermark of each."""

    epoch: int
    passed: tuple[str, Mark]
    inlets: Mapping[ChannelId, tuple[int, Mark]]


class PartStanding(NamedTuple):
    """A restriction window and the events in its buffers. ``to_begin``: it has not been placed yet."""

    name: PartName
    begun: bool
    end: Mark
    end_t: float
    to_begin: bool
    buffers: Mapping[str, list[Event]]


class Standing(NamedTuple):
    """``marker``: that of the epoch. ``point``: where its output began. ``said``: the last heartbeat or
    output. ``stamped``: time of the last output, and how many have that time. ``reach``: see
    ``Execution``."""

    gate: GateStanding
    marker: Marker | None
    point: float
    said: Mark
    stamped: tuple[float, int]
    reach: Mapping[str, float]
    parts: tuple[PartStanding, ...]
