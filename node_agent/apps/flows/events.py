"""What a node reports of its flows: once a second, what was sent and what has arrived.

Counters grow from the start of the agent, and a second is reported again in the records that follow: what
one record lost, the next one has. Seconds are counted from the moment the node began to send, for received
packets both by their source's seconds (which packets of a second arrived, and how late) and by the sink's own
(how much arrived in a second).

A list of seconds has rows of whole numbers: ``Amount`` and ``Heard`` say what they are. ``now_ns`` is the
node's clock when the record was made; with the time of the record, which the analysis corrects, it tells how
far that clock was off.
"""

from collections.abc import Sequence
from typing import NamedTuple

from node_agent.model.telemetry import Event

SECOND_NS = 1_000_000_000
MOST_SECONDS = 2**31
MOST_LISTED = 1024
"""Seconds that one record lists."""

Rows = tuple[tuple[int, ...], ...]


class Amount(NamedTuple):
    """Packets and bytes of one second."""

    second: int
    packets: int
    bytes: int

    @classmethod
    def of(cls, row: Sequence[int]) -> "Amount":
        return cls(*row)


class Heard(NamedTuple):
    """Packets that were sent in one second of their source and have arrived, with their delays.

    ``sum_ns``, ``least_ns``, ``most_ns`` and ``delays`` are of the differences to ``base_ns``; ``delays`` has
    pairs of bucket and count (``delays.bucket_of``), which in a row follow one another. ``jitter_ns``: RFC
    3550's, after the last packet.
    """

    second: int
    packets: int
    bytes: int
    jitter_ns: int
    base_ns: int
    sum_ns: int
    least_ns: int
    most_ns: int
    delays: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, row: Sequence[int]) -> "Heard":
        first = len(cls._fields) - 1
        delays = tuple(zip(row[first::2], row[first + 1 :: 2], strict=True))
        return cls._make((*row[:first], delays))

    def row(self) -> tuple[int, ...]:
        return *self[:-1], *(value for pair in self.delays for value in pair)


class FlowSent(Event, tag="flow_sent", frozen=True):
    """By the source. ``opened_ns``: when its second 0 began. ``seconds`` has rows of ``Amount``.

    ``skipped``: packets that came due while the node was too busy to send them within a second. Of TCP:
    ``acknowledged`` bytes by the sink's application, ``connections`` made, ``failures`` to make or keep one.
    """

    flow: str
    opened_ns: int
    now_ns: int
    packets: int
    bytes: int
    skipped: int
    acknowledged: int
    connections: int
    failures: int
    seconds: Rows


class FlowReceived(Event, tag="flow_received", frozen=True):
    """By the sink. ``source_boot``: which start of the source sent them. ``opened_ns``: as of the sink.

    ``late``: packets that came so late that nobody can say whether they are duplicates; they do not count as
    received. ``heard``: by seconds of the source, rows of ``Heard``; ``arrived``: by those of the sink, rows
    of ``Amount``.
    """

    flow: str
    source_boot: int
    opened_ns: int
    now_ns: int
    packets: int
    bytes: int
    duplicates: int
    reordered: int
    late: int
    heard: Rows
    arrived: Rows


class FlowPacketSent(Event, tag="flow_packet_sent", frozen=True):
    """One packet, where ``records: packets`` asks for it."""

    flow: str
    number: int
    size: int


class FlowPacketReceived(Event, tag="flow_packet_received", frozen=True):
    """One packet at its sink; ``sent_ns`` by the clock of its source."""

    flow: str
    source_boot: int
    number: int
    size: int
    sent_ns: int


KINDS: tuple[type[Event], ...] = (FlowSent, FlowReceived, FlowPacketSent, FlowPacketReceived)
