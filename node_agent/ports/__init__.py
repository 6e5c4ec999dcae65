"""The clock and the network that an agent lives on: OS sockets, or virtual time.

Import the protocol from here; ``os_port`` and ``virtual`` implement it.
"""

from node_agent.ports.base import (
    Address,
    Buffer,
    ConnectionLost,
    DatagramSocket,
    EndOfStream,
    Listener,
    OnDatagram,
    OnStream,
    Port,
    PortError,
    Stream,
    TimedOut,
    Unreachable,
)

__all__ = [
    "Address",
    "Buffer",
    "ConnectionLost",
    "DatagramSocket",
    "EndOfStream",
    "Listener",
    "OnDatagram",
    "OnStream",
    "Port",
    "PortError",
    "Stream",
    "TimedOut",
    "Unreachable",
]
