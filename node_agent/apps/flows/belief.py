"""Whose word about a flow is believed: its source says what was sent, its sink what was received."""

from collections.abc import Iterable

from msgspec import Struct

from node_agent.apps.flows.account import FARTHEST_NS
from node_agent.apps.flows.delays import bucket_of
from node_agent.apps.flows.events import (
    KINDS,
    MOST_SECONDS,
    FlowPacketReceived,
    FlowPacketSent,
    FlowReceived,
    FlowSent,
)
from node_agent.apps.flows.model import Flow
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.kinds import COUNTER, SIZE, TIME_NS, RecordKinds, RowRule, Rule, tags_of

_COUNTERS = (
    "packets",
    "bytes",
    "skipped",
    "acknowledged",
    "connections",
    "failures",
    "duplicates",
    "reordered",
    "late",
    "number",
    "source_boot",
)

_SECOND = (0, MOST_SECONDS)
_PACKETS, _BYTES = (0, 2**32), (0, 2**40)
"""Of one second; the fastest flow sends 2**37 bytes. Sums over millions of seconds fit 64 bits."""
_DIFFERENCE = (-(2**62), 2**62)
_FAR = (-FARTHEST_NS, FARTHEST_NS)
_BUCKET = bucket_of(-FARTHEST_NS), bucket_of(FARTHEST_NS)
_AMOUNT = RowRule((_SECOND, _PACKETS, _BYTES))
_HEARD = RowRule(
    (_SECOND, (1, 2**32), _BYTES, TIME_NS, _DIFFERENCE, _DIFFERENCE, _FAR, _FAR),
    groups=(_BUCKET, (1, 2**32)),
    most=8 + 2 * (_BUCKET[1] - _BUCKET[0] + 1),
)


class Scope(Struct, frozen=True):
    """What a node can tell of a flow that begins or ends there: its own name, under what it does."""

    sends: tuple[str, ...] = ()
    receives: tuple[str, ...] = ()


RECORDS = RecordKinds(
    events=KINDS,
    bounds={
        **dict.fromkeys(_COUNTERS, COUNTER),
        **dict.fromkeys(("opened_ns", "now_ns", "sent_ns"), TIME_NS),
        "size": SIZE,
    },
    rows={"seconds": _AMOUNT, "heard": _HEARD, "arrived": _AMOUNT},
    subject="flow",
    rules=(
        Rule("source", tags_of(FlowSent, FlowPacketSent), "flow", "sends"),
        Rule("sink", tags_of(FlowReceived, FlowPacketReceived), "flow", "receives"),
    ),
    words={
        "flow": "name a flow that neither begins nor ends there",
        "source": "say what was sent of a flow that does not begin there",
        "sink": "deliver where there is no sink",
    },
)


def scopes_of(flows: Iterable[Flow]) -> AppScopes:
    scopes: dict[str, dict[str, Struct]] = {}
    for flow in flows:
        scopes.setdefault(flow.source, {})[flow.name] = Scope(sends=(flow.name,))
        scopes.setdefault(flow.sink, {})[flow.name] = Scope(receives=(flow.name,))
    return AppScopes("flows", scopes)
