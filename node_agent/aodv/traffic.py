"""Watches packets to see which routes are in use: the kernel forwards without reporting it.

A packet socket with a filter in the kernel sees the headers on the radio interface. It reports each pair of
source and destination once a period and filters it out for the rest of it, so that the cost grows with the
number of conversations, not of packets.
"""

import ctypes
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ETH_P_ALL, _ETH_P_IP = 0x0003, 0x0800
_ATTACH_FILTER = 26
_LOAD_WORD, _LOAD_HALF, _LOAD_BYTE, _IF_EQUAL, _RETURN = 0x20, 0x28, 0x30, 0x15, 0x06
_PROTOCOL, _PACKET_TYPE = 0xFFFFF000, 0xFFFFF004
_TO_US, _OUTGOING = 0, 4
_SOURCE, _DESTINATION = 12, 16
_HEADER_SIZE = 20
_BUFFER = 1 << 16
MOST_PAIRS = 256
"""Limit for one period; once it is reached, nothing more is reported until the next period."""
_AT_ONCE = 256


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    value: int


class Pair(NamedTuple):
    source: int
    destination: int


def program(ignored: Sequence[Pair]) -> list[Instruction]:
    """Builds a classic BPF program that passes the header of every IPv4 packet to or
    from this node, except those of ``ignored`` pairs."""
    instructions = [
        Instruction(_LOAD_HALF, 0, 0, _PROTOCOL),
        Instruction(_IF_EQUAL, 1, 0, _ETH_P_IP),
        Instruction(_RETURN, 0, 0, 0),
        Instruction(_LOAD_BYTE, 0, 0, _PACKET_TYPE),
        Instruction(_IF_EQUAL, 2, 0, _TO_US),
        Instruction(_IF_EQUAL, 1, 0, _OUTGOING),
        Instruction(_RETURN, 0, 0, 0),
    ]
    for source, destination in ignored:
        instructions += [
            Instruction(_LOAD_WORD, 0, 0, _SOURCE),
            Instruction(_IF_EQUAL, 0, 3, source),
            Instruction(_LOAD_WORD, 0, 0, _DESTINATION),
            Instruction(_IF_EQUAL, 0, 1, destination),
            Instruction(_RETURN, 0, 0, 0),
        ]
    return [*instructions, Instruction(_RETURN, 0, 0, _HEADER_SIZE)]


class TrafficWatch:
    """Calls ``seen`` from ``read``. The owner calls ``read`` when ``fileno()`` is readable."""

    def __init__(self, interface: str, seen: Callable[[Pair], None]) -> None:
        self._seen = seen
        self._pairs: dict[Pair, None] = {}
        # Protocol 0 receives nothing until it is bound, so the filter is attached first.
        self._socket = socket.socket(
            socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0
        )
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._attach()
            self._socket.bind((interface, _ETH_P_ALL))
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> None:
        known = len(self._pairs)
        for _ in range(_AT_ONCE):
            try:
                header = self._socket.recv(_HEADER_SIZE)
            except OSError:  # nothing more waits, or the interface was switched off
                break
            pair = Pair(*struct.unpack_from("!II", header, _SOURCE))
            if pair not in self._pairs and len(self._pairs) < MOST_PAIRS:
                self._pairs[pair] = None
                self._seen(pair)
        if len(self._pairs) > known:
            self._attach()

    def next_period(self) -> None:
        """Starts a new period: every pair is reported again."""
        if self._pairs:
            self._pairs.clear()
            self._attach()

    def close(self) -> None:
        self._socket.close()

    def _attach(self) -> None:
        full = len(self._pairs) >= MOST_PAIRS
        instructions = [Instruction(_RETURN, 0, 0, 0)] if full else program(tuple(self._pairs))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in instructions))
        described = struct.pack("@HP", len(instructions), ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, described)
