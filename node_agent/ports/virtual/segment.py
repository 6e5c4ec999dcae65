"""What two stream machines say to each other, and what both must know beforehand."""

from typing import NamedTuple

from msgspec import Struct

SEGMENT_HEADER = 32
"""20 bytes of TCP and 12 of its timestamp option, which the round-trip times come from."""


# Plain integers, for an IntFlag costs a microsecond at each test.
SYN = 1
FIN = 2
RST = 4


class Segment(NamedTuple):
    """SYN and FIN count for one byte each in ``sequence``. ``ack`` is None until the peer was heard."""

    source_port: int
    destination_port: int
    sequence: int
    ack: int | None
    window: int
    flags: int
    data: bytes
    sent_ns: int
    echo_ns: int

    @property
    def size(self) -> int:
        return SEGMENT_HEADER + len(self.data)

    @property
    def end(self) -> int:
        flags = self.flags
        return self.sequence + len(self.data) + ((flags & SYN) != 0) + ((flags & FIN) != 0)


class StreamConfig(Struct, frozen=True):
    """Defaults follow Linux; sizes in bytes, times in nanoseconds."""

    mss: int = 1448
    initial_window: int = 10
    send_buffer: int = 128 * 1024
    receive_buffer: int = 256 * 1024
    initial_rto_ns: int = 1_000_000_000
    min_rto_ns: int = 200_000_000
    max_rto_ns: int = 60_000_000_000
    delayed_ack_ns: int = 40_000_000
    give_up_ns: int = 6_000_000_000
    """After so long without an acknowledgement, or an answer to probes, the path is dead."""
    idle_ns: int = 6_000_000_000
    """Silence after which an idle peer is probed, so that a reader does not wait for a node that is gone."""


def reset_in_answer_to(segment: Segment) -> Segment | None:
    """What a host says to a segment of no stream it knows. Nothing to a reset, or two hosts would duel."""
    if segment.flags & RST:
        return None
    return Segment(
        source_port=segment.destination_port,
        destination_port=segment.source_port,
        sequence=segment.ack or 0,
        ack=segment.end,
        window=0,
        flags=RST,
        data=b"",
        sent_ns=0,
        echo_ns=0,
    )
