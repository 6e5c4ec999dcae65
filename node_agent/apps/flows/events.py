"""What a node reports of its flows: once a second, what was sent and what has arrived.

Counters grow from the start of the agent, and a second is reported again in the records that follow: what
one record lost, the next one has. Seconds are counted from the moment the node began to send, for received
packets both by their source's seconds (which packets of a second arrived, and how late) and by the sink's own
(how much arrived in a second).
"""

from typing import Annotated

from msgspec import Meta, Struct

from node_agent.apps.flows.delays import MOST_BUCKETS
from node_agent.model.checked import Count, Long, Moment
from node_agent.model.telemetry import Event

SECOND_NS = 1_000_000_000
MOST_SECONDS = 2**31
MOST_LISTED = 1024
"""Seconds that one record lists."""

Second = Annotated[int, Meta(ge=0, le=MOST_SECONDS)]
Bucket = Annotated[int, Meta(ge=-MOST_BUCKETS, le=MOST_BUCKETS)]


class Amount(Struct, frozen=True, array_like=True):
    """Packets and bytes of one second."""

    second: Second
    packets: Count
    bytes: Count


class Heard(Struct, frozen=True, array_like=True):
    """Packets that were sent in one second of their source and have arrived, with their delays.

    ``sum_ns``, ``least_ns``, ``most_ns`` and ``delays`` are of the differences to ``base_ns``; ``delays`` has
    pairs of bucket and count (``delays.bucket_of``). ``jitter_ns``: RFC 3550's, after the last packet.
    """

    second: Second
    packets: Count
    bytes: Count
    jitter_ns: Count
    base_ns: Long
    sum_ns: Long
    least_ns: Long
    most_ns: Long
    delays: tuple[tuple[Bucket, Count], ...] = ()


class FlowSent(Event, tag="flow_sent", frozen=True):
    """By the source. ``opened_ns``: when its second 0 began.

    ``skipped``: packets that came due while the node was too busy to send them within a second. Of TCP:
    ``acknowledged`` bytes by the sink's application, ``connections`` made, ``failures`` to make or keep one.
    """

    flow: str
    opened_ns: Moment
    packets: Count
    bytes: Count
    skipped: Count
    acknowledged: Count
    connections: Count
    failures: Count
    seconds: Annotated[tuple[Amount, ...], Meta(max_length=MOST_LISTED)]


class FlowReceived(Event, tag="flow_received", frozen=True):
    """By the sink. ``source_boot``: which start of the source sent them. ``opened_ns``: as of the sink.

    ``late``: packets that came so late that nobody can say whether they are duplicates; they do not count as
    received. ``heard``: by seconds of the source; ``arrived``: by those of the sink.
    """

    flow: str
    source_boot: Count
    opened_ns: Moment
    packets: Count
    bytes: Count
    duplicates: Count
    reordered: Count
    late: Count
    heard: Annotated[tuple[Heard, ...], Meta(max_length=MOST_LISTED)]
    arrived: Annotated[tuple[Amount, ...], Meta(max_length=MOST_LISTED)]


class FlowPacketSent(Event, tag="flow_packet_sent", frozen=True):
    """One packet, where ``records: packets`` asks for it."""

    flow: str
    number: Count
    size: Count


class FlowPacketReceived(Event, tag="flow_packet_received", frozen=True):
    flow: str
    source_boot: Count
    number: Count
    size: Count
    sent_ns: Moment


KINDS: tuple[type[Event], ...] = (FlowSent, FlowReceived, FlowPacketSent, FlowPacketReceived)
