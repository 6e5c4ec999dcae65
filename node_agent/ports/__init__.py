"""An agent's access to clock and network: OS sockets in real time, or a modelled network in virtual time.

Import the protocol (``Port``, ``Stream``, …) from here; ``os_port`` and ``virtual`` implement it.
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
