"""A stream tuple t = (τ, p): logical timestamp and payload, with the capture time for latency."""

from msgspec import Struct


class StreamTuple(Struct, frozen=True):
    """``origin`` is the id of the source replica whose logical clock gave ``tau``."""

    origin: str
    tau: int
    born_ns: int
    payload: bytes
