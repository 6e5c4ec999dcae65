"""A reliable byte stream like TCP, as a state machine without I/O.

It takes segments and the time, and puts segments into ``outbox``. Its owner delivers them, calls ``on_timer``
no earlier than ``deadline_ns``, and reads ``phase`` and ``ending`` afterwards.
"""

from enum import Enum, StrEnum

from node_agent.ports.virtual.congestion import CongestionWindow, RetransmissionTimeout
from node_agent.ports.virtual.reassembly import Reassembly
from node_agent.ports.virtual.segment import FIN, RST, SYN, Segment, StreamConfig

NO_ECHO = -1
FIRST_BYTE = 1  # the SYN has number 0
ACK_EVERY = 2
PROBES_BEFORE_GIVING_UP = 4


class Phase(Enum):
    CONNECTING = 1
    ACCEPTING = 2
    OPEN = 3
    TIME_WAIT = 4
    CLOSED = 5


class Ending(StrEnum):
    """Why a machine is CLOSED."""

    IN_ORDER = "closed"
    REFUSED = "refused by the peer"
    RESET = "reset by the peer"
    DEAD_PATH = "no progress: the path is dead"
    ABORTED = "aborted"


class StreamMachine:
    def __init__(
        self, config: StreamConfig, local_port: int, remote_port: int, phase: Phase, now_ns: int
    ) -> None:
        self.phase = phase
        self.ending: Ending | None = None
        self.eof = False
        """The peer has closed, and all its data has arrived."""
        self.closed_here = False
        self.outbox: list[Segment] = []
        self._config = config
        self._local_port = local_port
        self._remote_port = remote_port
        self._rto = RetransmissionTimeout(config)
        self._congestion = CongestionWindow(config)

        # Sending: the buffer starts at the first byte that is not acknowledged.
        self._buffer = bytearray()
        self._buffer_start = FIRST_BYTE
        self._unacknowledged = 0
        self._next = 0
        self._sent = 0  # one past the highest number ever sent; _next falls behind it after a timeout
        self._right_edge = 0  # how far the peer lets us send
        self._fin: int | None = None
        self._fin_acknowledged = False
        self._partial_seen = False

        # Receiving.
        self._received = Reassembly(config.receive_buffer)
        self.unread = self._received.in_order
        """What has arrived in order and was not read."""
        self._peer_fin: int | None = None
        self._heard = False
        self._echo_ns = NO_ECHO
        self._acknowledged = 0
        self._advertised_edge = 0
        self._unanswered = 0
        self._ack_now = False

        # Time: when to act, and since when nothing has moved.
        self._retransmit_at: int | None = None
        self._delayed_ack_at: int | None = None
        self._timeouts = 0
        self._progress_ns = now_ns
        self._heard_ns = now_ns
        self._probed_ns = now_ns

    @classmethod
    def connect(cls, config: StreamConfig, local_port: int, remote_port: int, now_ns: int) -> "StreamMachine":
        machine = cls(config, local_port, remote_port, Phase.CONNECTING, now_ns)
        machine._send_syn(now_ns)
        return machine

    @classmethod
    def accept(cls, config: StreamConfig, syn: Segment, now_ns: int) -> "StreamMachine":
        machine = cls(config, syn.destination_port, syn.source_port, Phase.ACCEPTING, now_ns)
        machine._hear_syn(syn)
        machine._send_syn(now_ns)
        return machine

    @property
    def has_room(self) -> bool:
        return len(self._buffer) <= self._config.send_buffer

    @property
    def unacknowledged(self) -> int:
        """Returns how many written bytes the peer has not acknowledged."""
        return len(self._buffer)

    @property
    def arrived(self) -> int:
        """Returns how many bytes have arrived in order so far."""
        return self._received.next

    @property
    def deadline_ns(self) -> int | None:
        if self.phase is Phase.CLOSED:
            return None
        resend, acknowledge = self._retransmit_at, self._delayed_ack_at
        next_step = self._liveness_at() if resend is None else resend
        return next_step if acknowledge is None else min(next_step, acknowledge)

    def write(self, data: bytes, now_ns: int) -> None:
        """Takes all of ``data``; the writer must wait while ``has_room`` is false."""
        self._buffer += data
        self._push(now_ns)

    def read(self, limit: int, now_ns: int) -> bytes:
        """Returns up to ``limit`` bytes that have arrived in order, maybe none."""
        data = self._received.take(limit)
        if data and self.phase is Phase.OPEN:
            # As in Linux: announce the window only when the peer's view of it has become poor.
            left = self._advertised_edge - self._received.next
            if 2 * left <= self._config.receive_buffer and self._received.window >= 2 * left:
                self._send_ack(now_ns)
        return data

    def read_part(self, limit: int) -> bytes:
        """Returns all that has arrived in order, if it is less than ``limit``, and reading it sends nothing;
        otherwise nothing.
        """
        received = self._received
        left = self._advertised_edge - received.next
        if len(received.in_order) >= limit or 2 * left <= self._config.receive_buffer:
            return b""
        return received.take(limit)

    def close(self, now_ns: int) -> None:
        if self.phase is Phase.CONNECTING:
            self._end(Ending.ABORTED)
        elif self.phase is not Phase.CLOSED and self._fin is None:
            self._fin = self._data_end
            self.closed_here = True
            self._received.discard()
            self._push(now_ns)

    def abort(self, now_ns: int) -> None:
        if self.phase in (Phase.ACCEPTING, Phase.OPEN):
            self._emit(self._sent, b"", RST, now_ns)
        if self.phase is not Phase.CLOSED:
            self._end(Ending.ABORTED)

    def on_segment(self, segment: Segment, now_ns: int) -> None:
        if self.phase is Phase.CLOSED:
            return
        self._heard_ns = now_ns
        if segment.flags & RST:
            self._on_reset(segment)
        elif segment.flags & SYN:
            self._on_syn(segment, now_ns)
        elif self.phase is not Phase.CONNECTING and segment.ack is not None:
            if self.phase is Phase.ACCEPTING and segment.ack >= FIRST_BYTE:
                self.phase = Phase.OPEN
            self._on_acknowledgement(segment, segment.ack, now_ns)
            self._on_data(segment, now_ns)
            if self.eof:
                self._finish()
        self._push(now_ns)
        if self._ack_now and self.phase is not Phase.CLOSED:
            self._send_ack(now_ns)

    def on_timer(self, now_ns: int) -> None:
        if self.phase is Phase.CLOSED:
            return
        if self._delayed_ack_at is not None and self._delayed_ack_at <= now_ns:
            self._send_ack(now_ns)
        if self._retransmit_at is not None:
            if self._retransmit_at <= now_ns:
                self._on_timeout(now_ns)
            return
        if self._liveness_at() > now_ns:
            return
        if self.phase is Phase.TIME_WAIT or self._fin_acknowledged:
            self._end(Ending.IN_ORDER)
        elif now_ns - self._heard_ns >= self._config.idle_ns + self._config.give_up_ns:
            self._end(Ending.DEAD_PATH)
        else:
            self._probe(now_ns)

    @property
    def _data_end(self) -> int:
        return self._buffer_start + len(self._buffer)

    def _liveness_at(self) -> int:
        """Returns when an idle stream probes its peer, or when a finished one is released."""
        config = self._config
        if self.phase is Phase.TIME_WAIT or self._fin_acknowledged:
            return self._progress_ns + config.give_up_ns
        first = self._heard_ns + config.idle_ns
        return max(first, self._probed_ns + config.give_up_ns // PROBES_BEFORE_GIVING_UP)

    # Receiving.

    def _on_reset(self, segment: Segment) -> None:
        if self.phase is Phase.CONNECTING:
            if segment.ack == FIRST_BYTE:
                self._end(Ending.REFUSED)
        elif 0 <= segment.sequence - self._received.next <= self._config.receive_buffer:
            self._end(Ending.IN_ORDER if self._fin_acknowledged else Ending.RESET)

    def _on_syn(self, segment: Segment, now_ns: int) -> None:
        if self.phase is Phase.CONNECTING and segment.ack == FIRST_BYTE:
            self._hear_syn(segment)
            self.phase = Phase.OPEN
            self._on_acknowledgement(segment, FIRST_BYTE, now_ns)
            self._ack_now = True
        elif self.phase is Phase.ACCEPTING:
            self._emit(0, b"", SYN, now_ns)
        elif self._heard:
            self._ack_now = True  # our answer to it was lost

    def _hear_syn(self, segment: Segment) -> None:
        self._heard = True
        self._received.next = FIRST_BYTE
        self._echo_ns = segment.sent_ns
        self._right_edge = FIRST_BYTE + segment.window

    def _on_acknowledgement(self, segment: Segment, ack: int, now_ns: int) -> None:
        edge = ack + segment.window
        if self._unacknowledged < ack <= self._sent:
            self._advance_to(ack, now_ns)
            if segment.echo_ns != NO_ECHO:
                self._rto.sample(now_ns - segment.echo_ns)
            if self._next == self._unacknowledged:
                self._retransmit_at = None
            elif not self._partial_seen:
                self._arm(now_ns)
            self._partial_seen = self._congestion.recovering
        elif (
            ack == self._unacknowledged < self._next
            and edge == self._right_edge
            and not segment.data
            and not segment.flags
            and self._congestion.duplicate(ack, self._sent)
        ):
            self._partial_seen = False
            self._retransmit_first(now_ns)
        if edge > self._right_edge:
            if self._next == self._unacknowledged:
                self._retransmit_at = None  # it was probing a closed window
            self._right_edge = edge

    def _advance_to(self, ack: int, now_ns: int) -> None:
        flight, count = self._next - self._unacknowledged, ack - self._unacknowledged
        self._unacknowledged = ack
        self._next = max(self._next, ack)
        through = min(ack, self._data_end) - self._buffer_start
        if through > 0:
            del self._buffer[:through]
            self._buffer_start += through
        if self._fin is not None and ack > self._fin:
            self._fin_acknowledged = True
        self._progress_ns = now_ns
        self._timeouts = 0
        if self._congestion.acknowledged(count, ack, flight):
            self._retransmit_first(now_ns)

    def _on_data(self, segment: Segment, now_ns: int) -> None:
        received = self._received
        if segment.sequence <= self._acknowledged and segment.sent_ns > self._echo_ns:
            self._echo_ns = segment.sent_ns
        if not segment.data and not segment.flags & FIN:
            self._ack_now |= segment.sequence < received.next  # a probe
            return
        before, had_gap = received.next, received.has_gap
        received.add(segment.sequence, segment.data)
        if segment.flags & FIN:
            self._peer_fin = segment.sequence + len(segment.data)
        if received.next == self._peer_fin and not self.eof:
            self.eof = True
            received.next += 1
        if self._fin is not None and received.discard() and self._fin_acknowledged:
            self.abort(now_ns)  # nobody will read this: the writer must know
            return
        self._unanswered += 1
        if received.next == before or had_gap or self.eof or self._unanswered >= ACK_EVERY:
            self._ack_now = True
        elif self._delayed_ack_at is None:
            self._delayed_ack_at = now_ns + self._config.delayed_ack_ns

    def _finish(self) -> None:
        if self.phase is Phase.OPEN and self._fin_acknowledged:
            self._retransmit_at = None
            # The end that sends the last acknowledgement stays a while, because it may be lost.
            if self._ack_now:
                self.phase = Phase.TIME_WAIT
            else:
                self._end(Ending.IN_ORDER)

    # Sending.

    def _send_syn(self, now_ns: int) -> None:
        self._next = FIRST_BYTE
        self._emit(0, b"", SYN, now_ns)
        self._arm(now_ns)

    def _push(self, now_ns: int) -> None:
        """Sends what congestion window and receiver allow, without Nagle's
        algorithm but without needlessly small segments."""
        if self.phase is not Phase.OPEN:
            return
        end = self._buffer_start + len(self._buffer)
        if self._next < end:
            self._send_up_to(end, now_ns)
        if self._next == end == self._fin:
            self._send_data(end, 0, now_ns)
        if self._retransmit_at is None and (self._next > self._unacknowledged or self._next < end):
            self._progress_ns = now_ns
            self._arm(now_ns)

    def _send_up_to(self, end: int, now_ns: int) -> None:
        limit = min(self._unacknowledged + self._congestion.size, self._right_edge)
        mss = self._config.mss
        while self._next < end:
            count = min(end - self._next, mss)
            room = limit - self._next
            if room < count:
                if room <= 0 or self._next > self._unacknowledged:
                    break
                count = room
            self._send_data(self._next, count, now_ns)

    def _send_data(self, sequence: int, count: int, now_ns: int) -> None:
        offset = sequence - self._buffer_start
        flags = FIN if sequence + count == self._fin else 0
        self._emit(sequence, bytes(self._buffer[offset : offset + count]), flags, now_ns)
        self._next = max(self._next, sequence + count + (flags == FIN))

    def _retransmit_first(self, now_ns: int) -> None:
        sequence = self._unacknowledged
        count = min(self._data_end, self._sent) - sequence
        self._send_data(sequence, max(min(count, self._config.mss), 0), now_ns)

    def _probe(self, now_ns: int) -> None:
        """Sends an old number, which makes the peer answer with its state."""
        self._probed_ns = now_ns
        self._emit(self._unacknowledged - 1, b"", 0, now_ns)

    def _send_ack(self, now_ns: int) -> None:
        self._emit(self._sent, b"", 0, now_ns)

    def _emit(self, sequence: int, data: bytes, flags: int, now_ns: int) -> None:
        acknowledged, window = self._received.next, self._received.window
        segment = Segment(
            self._local_port,
            self._remote_port,
            sequence,
            acknowledged if self._heard else None,
            window,
            flags,
            data,
            now_ns,
            self._echo_ns,
        )
        self.outbox.append(segment)
        end = segment.end if flags else sequence + len(data)
        if end > self._sent:
            self._sent = end
        self._acknowledged = acknowledged
        self._advertised_edge = acknowledged + window
        self._unanswered = 0
        self._ack_now = False
        self._delayed_ack_at = None

    # Time.

    def _arm(self, now_ns: int) -> None:
        wait = self._rto.current_ns
        if self._next == self._unacknowledged:
            wait = min(wait, self._config.give_up_ns // PROBES_BEFORE_GIVING_UP)
        self._retransmit_at = now_ns + wait
        if self.phase is not Phase.CONNECTING:
            dead_at = self._stalled_since() + self._config.give_up_ns
            self._retransmit_at = max(min(self._retransmit_at, dead_at), now_ns + 1)

    def _stalled_since(self) -> int:
        """Returns since when nothing has moved. A peer that answers but has closed its window is slow, not
        dead.
        """
        if self._next > self._unacknowledged:
            return self._progress_ns
        return max(self._progress_ns, self._heard_ns)

    def _on_timeout(self, now_ns: int) -> None:
        if self.phase is not Phase.CONNECTING and now_ns - self._stalled_since() >= self._config.give_up_ns:
            self._end(Ending.DEAD_PATH)
            return
        self._rto.back_off()
        self._arm(now_ns)
        if self.phase is not Phase.OPEN:
            self._emit(0, b"", SYN, now_ns)
        elif self._next == self._unacknowledged:
            self._probe(now_ns)
        else:
            self._congestion.timed_out(self._next - self._unacknowledged, self._sent, self._timeouts > 0)
            self._timeouts += 1
            self._next = self._unacknowledged
            self._push(now_ns)

    def _end(self, ending: Ending) -> None:
        self.phase = Phase.CLOSED
        self.ending = ending
        self.closed_here = self.closed_here or ending is Ending.ABORTED
        self._ack_now = False
        self._retransmit_at = None
        self._delayed_ack_at = None
        self._buffer.clear()
