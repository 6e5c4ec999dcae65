"""Reads what the node's routing daemon has sent and refused so far, for the telemetry."""

from collections.abc import Iterable
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from node_agent.linkstate.ask import get
from node_agent.linkstate.reader import Garbage
from node_agent.model.checked import Checked, Refused
from node_agent.model.checked import Count as Number
from node_agent.model.refusals import Refusal
from node_agent.model.telemetry import RefusalCount, RoutingOverhead

_MOST_BYTES = 256 * 1024
_MOST_ENTRIES = 1024

Word = Annotated[str, Meta(max_length=64)]
AGENTS_OWN = "costs"
"""The kind of message under which agents count what they send each other about costs."""
Counts = tuple[RoutingOverhead | RefusalCount, ...]


class OverheadSource(Protocol):
    async def read(self) -> Counts:
        """Returns counters that only grow, one event for each kind of message and of refusal. Raises
        LinkStateUnavailable.
        """
        ...


class OverheadConfig(Struct, frozen=True):
    """Where to ask our own daemon for ``protocol``."""

    protocol: str
    host: str
    port: int


class Count(Struct, frozen=True):
    sent: Number
    sent_bytes: Number
    forwarded: Number = 0
    forwarded_bytes: Number = 0


class Refusing(Struct, frozen=True):
    what: Word
    source: Word
    reason: Word
    count: Number


class Answer(Struct, frozen=True):
    counters: Annotated[dict[Word, Count], Meta(max_length=_MOST_ENTRIES)]
    refusals: Annotated[tuple[Refusing, ...], Meta(max_length=_MOST_ENTRIES)] = ()


_ANSWERS: Checked[Answer] = Checked(Answer, _MOST_BYTES)


class AskedOverhead:
    """Asks our own daemon for its ``/counters``."""

    def __init__(self, config: OverheadConfig) -> None:
        self._config = config

    async def read(self) -> Counts:
        answer = await get(self._config.host, self._config.port, "/counters")
        try:
            announced = _ANSWERS.decode(answer)
        except Refused as error:
            raise Garbage(f"these are no counters: {error}") from error
        sent = [
            RoutingOverhead(
                self._config.protocol,
                name,
                count.sent,
                count.sent_bytes,
                count.forwarded,
                count.forwarded_bytes,
            )
            for name, count in announced.counters.items()
        ]
        return (*sent, *refusal_counts(announced.refusals))


def refusal_counts(refusals: Iterable[Refusal | Refusing]) -> tuple[RefusalCount, ...]:
    return tuple(RefusalCount(each.what, each.source, each.reason, each.count) for each in refusals)
