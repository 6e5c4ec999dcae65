"""What the node's routing daemon has put on the air so far, by kind of message: for the telemetry."""

from typing import Protocol

import msgspec
from msgspec import Struct

from node_agent.linkstate.ask import get
from node_agent.linkstate.reader import Garbage
from node_agent.model.telemetry import RoutingOverhead


class OverheadSource(Protocol):
    async def read(self) -> tuple[RoutingOverhead, ...]:
        """Counters that only grow, one event for each kind of message. Raises LinkStateUnavailable."""
        ...


class OverheadConfig(Struct, frozen=True):
    """Where a daemon of ours, which speaks ``protocol``, is asked."""

    protocol: str
    host: str
    port: int


class Count(Struct, frozen=True):
    sent: int
    sent_bytes: int
    forwarded: int = 0
    forwarded_bytes: int = 0


class Answer(Struct, frozen=True):
    counters: dict[str, Count]


class AskedOverhead:
    """Asks the query interface of a daemon of ours for its ``/counters``."""

    def __init__(self, config: OverheadConfig) -> None:
        self._config = config

    async def read(self) -> tuple[RoutingOverhead, ...]:
        answer = await get(self._config.host, self._config.port, "/counters")
        try:
            counters = msgspec.json.decode(answer, type=Answer).counters
        except msgspec.DecodeError as error:
            raise Garbage(f"these are no counters: {error}") from error
        return tuple(
            RoutingOverhead(
                self._config.protocol,
                name,
                count.sent,
                count.sent_bytes,
                count.forwarded,
                count.forwarded_bytes,
            )
            for name, count in counters.items()
        )
