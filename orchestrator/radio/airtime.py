"""Computes durations on an 802.11b channel, in whole nanoseconds.

The duration of a payload is rounded up to a microsecond, like the LENGTH field of the PLCP header.
"""

from orchestrator.errors import BadInput
from orchestrator.radio.settings import Mac

US = 1000
ETHERNET_HEADER = 14
LARGEST_FRAME = 2304 - 8 + ETHERNET_HEADER
"""Bytes of an Ethernet frame whose payload and LLC/SNAP header fit an 802.11 frame body."""

DOT11_OVERHEAD = 24 + 8 + 4 - ETHERNET_HEADER
"""Bytes that 802.11 adds: without the Ethernet header, with MAC header, LLC/SNAP and FCS."""

ACK_BYTES = CTS_BYTES = 14
RTS_BYTES = 20


def preamble_ns(rate: float, short: bool) -> int:
    """Returns the duration of PLCP preamble and header. The short preamble cannot carry 1 Mb/s."""
    return (96 if short and rate > 1 else 192) * US


def psdu_ns(length: int, rate: float) -> int:
    tenths = round(rate * 10)
    return -(-length * 80 // tenths) * US


class Airtime:
    """The durations that follow from a MAC's settings. Data frames are looked up by their Ethernet size."""

    def __init__(self, mac: Mac) -> None:
        short = mac.short_preamble
        self.slot = mac.slot_us * US
        self.sifs = mac.sifs_us * US
        self.difs = self.sifs + 2 * self.slot
        control = mac.control_rate
        self.control_preamble = preamble_ns(control, short)
        self.ack = self.control_preamble + psdu_ns(ACK_BYTES, control)
        self.cts = self.control_preamble + psdu_ns(CTS_BYTES, control)
        self.rts = self.control_preamble + psdu_ns(RTS_BYTES, control)
        self.eifs = self.sifs + preamble_ns(1.0, False) + psdu_ns(ACK_BYTES, 1.0) + self.difs
        self.unicast_preamble = preamble_ns(mac.unicast_rate, short)
        self.broadcast_preamble = preamble_ns(mac.broadcast_rate, short)
        self.unicast = self._data(mac.unicast_rate, self.unicast_preamble)
        self.broadcast = self._data(mac.broadcast_rate, self.broadcast_preamble)
        self.shortest = min(self.unicast[0], self.broadcast[0], self.rts)
        """Shorter than every frame that can begin an exchange."""
        # A response whose preamble has not ended by then does not come.
        self.response_timeout = self.sifs + self.slot + self.control_preamble

    def _data(self, rate: float, preamble: int) -> list[int]:
        return [preamble + psdu_ns(size + DOT11_OVERHEAD, rate) for size in range(LARGEST_FRAME + 1)]


def check_size(size: int) -> int:
    if not ETHERNET_HEADER <= size <= LARGEST_FRAME:
        limits = f"{ETHERNET_HEADER} to {LARGEST_FRAME}"
        raise BadInput(f"an Ethernet frame of {size} bytes does not fit the channel: {limits} bytes do")
    return size
