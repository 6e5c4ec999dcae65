"""Records what everybody on the medium can hear: the packets between agents on the loopback device. Needs
root.
"""

import socket
import struct
import threading
from collections.abc import Collection
from typing import NamedTuple

MOST_DATAGRAMS = 2000
MOST_BYTES_A_FLOW = 256 * 1024
MOST_FLOWS = 200
_ETH_P_IP = 0x0800
_TCP, _UDP = 6, 17


class Datagram(NamedTuple):
    source: str
    destination: str
    port: int
    data: bytes


class Flow(NamedTuple):
    source: str
    source_port: int
    destination: str
    port: int


class Heard:
    """The recorded datagrams and connections."""

    def __init__(self) -> None:
        self.datagrams: list[Datagram] = []
        self.flows: dict[Flow, bytearray] = {}

    def copy(self) -> "Heard":
        other = Heard()
        other.datagrams = list(self.datagrams)
        other.flows = {flow: bytearray(data) for flow, data in list(self.flows.items())}
        return other


class Recorder(Heard):
    """Records packets between ``hosts`` only. Must be closed."""

    def __init__(self, hosts: Collection[str]) -> None:
        """Raises PermissionError without root."""
        super().__init__()
        self._hosts = frozenset(hosts)
        self._seen: dict[Flow, int] = {}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP))
        self._socket.bind(("lo", _ETH_P_IP))
        self._socket.settimeout(0.2)
        self._over = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over = True
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._over:
            try:
                packet, (_, _, kind, _, _) = self._socket.recvfrom(65535)
            except TimeoutError:
                continue
            if kind != socket.PACKET_OUTGOING:  # each packet of the loopback device is received twice
                self._take(packet)

    def _take(self, packet: bytes) -> None:
        length = (packet[0] & 15) * 4
        source, destination = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
        if source not in self._hosts or destination not in self._hosts:
            return
        source_port, port = struct.unpack("!HH", packet[length : length + 4])
        if packet[9] == _UDP and len(self.datagrams) < MOST_DATAGRAMS:
            self.datagrams.append(Datagram(source, destination, port, packet[length + 8 :]))
        elif packet[9] == _TCP:
            flow = Flow(source, source_port, destination, port)
            number = struct.unpack("!I", packet[length + 4 : length + 8])[0]
            body = packet[length + (packet[length + 12] >> 4) * 4 :]
            if body and (flow in self.flows or len(self.flows) < MOST_FLOWS):
                kept = self.flows.setdefault(flow, bytearray())
                if self._seen.get(flow) != number and len(kept) < MOST_BYTES_A_FLOW:
                    kept += body
                self._seen[flow] = number
