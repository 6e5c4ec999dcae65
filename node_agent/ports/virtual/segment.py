"""Segments that two stream machines exchange, and their common configuration."""

from msgspec import Struct

SEGMENT_HEADER = 32
"""20 bytes of TCP and 12 of its timestamp option, which gives the round-trip times."""


# Plain integers: an IntFlag costs a microsecond at each test.
SYN = 1
FIN = 2
RST = 4


class Segment(Struct, frozen=True, gc=False):
    """SYN and FIN count one byte each in ``sequence``. ``ack`` is None until the peer has sent something."""

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
    """Defaults follow Linux; sizes are in bytes, times in nanoseconds."""

    mss: int = 1448
    initial_window: int = 10
    send_buffer: int = 128 * 1024
    receive_buffer: int = 256 * 1024
    initial_rto_ns: int = 1_000_000_000
    min_rto_ns: int = 200_000_000
    max_rto_ns: int = 60_000_000_000
    delayed_ack_ns: int = 40_000_000
    give_up_ns: int = 6_000_000_000
    """The path is dead after so long without an acknowledgement, or an answer to probes."""
    idle_ns: int = 6_000_000_000
    """Silence after which an idle peer is probed, so that a reader does not wait for a node that is gone."""


def reset_in_answer_to(segment: Segment) -> Segment | None:
    """Returns a host's answer to a segment of no known stream. None for a
    reset, or two hosts would answer forever."""
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
