"""Reads the station table of a wireless card from the kernel (nl80211), over a plain netlink socket.

The layouts are those of linux/nl80211.h and linux/genetlink.h; tested with constructed messages, not tried on
a card.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct, error, unpack_from

from node_agent.model.link_layer import LinkReading, Readings

_GENERIC = 16  # NETLINK_GENERIC
_MESSAGE = Struct("=IHHII")  # length, type, flags, sequence, port
_COMMAND = Struct("=BBxx")
_ATTRIBUTE = Struct("=HH")
_TYPE_MASK = 0x3FFF  # without the flags for nesting and byte order
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_CONTROL, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_GET_STATION, _NEW_STATION = 17, 19
_IF_INDEX, _MAC, _STA_INFO = 3, 6, 21
_INACTIVE_MS, _SIGNAL, _RX_PACKETS, _TX_PACKETS, _TX_RETRIES, _TX_FAILED = 1, 7, 9, 10, 11, 12
_ANSWER_WITHIN_S = 0.1
_LARGEST = 1 << 16


class NoStations(Exception):
    """The kernel has no nl80211, or does not answer."""


class Nl80211Stations:
    """A ``LinkLayer`` of one interface. ``sensitivity_dbm``: as its data sheet says; None: not known."""

    def __init__(self, index: int, sensitivity_dbm: float | None = None) -> None:
        """Raises NoStations."""
        self.sensitivity_dbm = sensitivity_dbm
        self._index = index
        self._sequence = 0
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _GENERIC)
        except OSError as failure:
            raise NoStations(f"no generic netlink: {failure.strerror}") from None
        try:
            self._socket.settimeout(_ANSWER_WITHIN_S)
            self._family = self._find_family()
        except BaseException:
            self._socket.close()
            raise

    def read(self) -> Readings:
        """Returns nothing if the kernel does not answer in time."""
        readings: dict[bytes, LinkReading] = {}
        with suppress(OSError, error):
            request = _attribute(_IF_INDEX, self._index.to_bytes(4, sys.byteorder))
            for kind, body in self._ask(self._family, _DUMP, _GET_STATION, request):
                if kind == self._family and (found := station(body)):
                    readings[found[0]] = found[1]
        return readings

    def close(self) -> None:
        self._socket.close()

    def _find_family(self) -> int:
        name = _attribute(_FAMILY_NAME, b"nl80211\0")
        try:
            for kind, body in self._ask(_CONTROL, 0, _GET_FAMILY, name):
                if kind == _CONTROL and (number := dict(attributes(body[_COMMAND.size :])).get(_FAMILY_ID)):
                    return int.from_bytes(number[:2], sys.byteorder)
        except (OSError, error) as failure:
            raise NoStations(f"no answer about nl80211: {failure}") from None
        raise NoStations("the kernel has no nl80211")

    def _ask(self, family: int, flags: int, command: int, attribute: bytes) -> Iterator[tuple[int, bytes]]:
        self._sequence += 1
        body = _COMMAND.pack(command, 1) + attribute
        header = _MESSAGE.pack(_MESSAGE.size + len(body), family, _REQUEST | flags, self._sequence, 0)
        self._socket.sendto(header + body, (0, 0))
        while True:
            for kind, sequence, answer in messages(self._socket.recv(_LARGEST)):
                if sequence != self._sequence:
                    continue  # of a question that was given up
                if kind == _ERROR and (code := unpack_from("=i", answer)[0]):
                    raise OSError(-code, os.strerror(-code))
                if kind in (_ERROR, _DONE):
                    return
                yield kind, answer
                if not flags & _DUMP:
                    return


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields type, sequence number and body of the netlink messages in ``data``, as far as they are whole."""
    start = 0
    while start + _MESSAGE.size <= len(data):
        length, kind, _, sequence, _ = _MESSAGE.unpack_from(data, start)
        if not _MESSAGE.size <= length <= len(data) - start:
            return
        yield kind, sequence, data[start + _MESSAGE.size : start + length]
        start += (length + 3) & ~3


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, start)
        if not _ATTRIBUTE.size <= length <= len(data) - start:
            return
        yield kind & _TYPE_MASK, data[start + _ATTRIBUTE.size : start + length]
        start += (length + 3) & ~3


def station(body: bytes) -> tuple[bytes, LinkReading] | None:
    """Reads one station from a message's body; None if it is not one."""
    if len(body) < _COMMAND.size or body[0] != _NEW_STATION:
        return None
    outer = dict(attributes(body[_COMMAND.size :]))
    hardware, info = outer.get(_MAC, b""), outer.get(_STA_INFO)
    if len(hardware) != 6 or info is None:
        return None
    inner = dict(attributes(info))

    def count(kind: int) -> int:
        return int.from_bytes(inner.get(kind, b"")[:4], sys.byteorder)

    signal = inner.get(_SIGNAL)
    sent, failed = count(_TX_PACKETS), count(_TX_FAILED)
    return hardware, LinkReading(
        received=count(_RX_PACKETS),
        acknowledged=max(0, sent - failed),
        retries=count(_TX_RETRIES),
        failed=failed,
        signal_dbm=float(int.from_bytes(signal[:1], sys.byteorder, signed=True)) if signal else None,
        age_s=count(_INACTIVE_MS) / 1000,
    )


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)
