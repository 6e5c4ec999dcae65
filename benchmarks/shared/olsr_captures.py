"""Packets that olsrd sent in a lossy mesh of five nodes: the payloads of captures kept with the tests."""

import gzip
from pathlib import Path
from struct import Struct

CAPTURES = Path(__file__).parents[2] / "tests" / "data" / "olsrd"

_FILE_HEADER_SIZE = 24
_RECORD = Struct("<8xII")  # bytes kept, bytes there were
_BEFORE_PAYLOAD = 14 + 20 + 8  # Ethernet, IPv4 without options, UDP


def payloads(name: str) -> list[bytes]:
    """Returns the payloads. ``name`` is "etx_ff" (messages with link quality) or "rfc" (RFC 3626's)."""
    data = gzip.decompress((CAPTURES / f"{name}.pcap.gz").read_bytes())
    found = []
    start = _FILE_HEADER_SIZE
    while start < len(data):
        kept, _ = _RECORD.unpack_from(data, start)
        start += _RECORD.size
        found.append(data[start + _BEFORE_PAYLOAD : start + kept])
        start += kept
    return found
