"""Encodes times in one byte (RFC 3626, section 18.3): five bits and an exponent, in units of 1/256 s.

The encoder truncates like olsrd's, so 300 s are sent as 288 s.
"""

_SHORTEST = 0x10  # what olsrd sends for anything below 125 ms
_LONGEST = 0xFF

_SECONDS = tuple(((16 + (code >> 4)) << (code & 0x0F)) / 256 for code in range(256))
NANOSECONDS = tuple(int(seconds * 1e9) for seconds in _SECONDS)
"""By code."""


def encode(seconds: float) -> int:
    if seconds < 0.125:
        return _SHORTEST
    if seconds >= _SECONDS[_LONGEST]:
        return _LONGEST
    units = int(seconds * 256)
    exponent = units.bit_length() - 5
    return ((units >> exponent) - 16) << 4 | exponent


def seconds(code: int) -> float:
    return _SECONDS[code]
