"""Reads link costs from AODV: the hop counts of its known routes. It knows no costs of other nodes.

A reactive protocol knows only routes that somebody asked for. So a reader is given the addresses it wants,
and each reading starts a search for those without a route.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Protocol

import msgspec

from node_agent.linkstate.ask import get
from node_agent.linkstate.olsrd_jsoninfo import decode
from node_agent.linkstate.reader import Edge, Reading, ipv4
from node_agent.linkstate.source import LinkStateReader

SOURCE = "aodv"
METRIC = "hops"
INFO_PORT = 9654


class KnowsRoutes(Protocol):
    @property
    def address(self) -> str: ...

    def hops(self) -> Mapping[str, int]:
        """Returns the hop count of every destination with a valid route."""
        ...

    def seek(self, address: str) -> None: ...


class AodvReader:
    """Reads an AODV node in the same process. ``wanted``: the addresses whose costs are needed."""

    def __init__(self, node: KnowsRoutes, wanted: Sequence[str] = ()) -> None:
        self._node = node
        self._wanted = tuple(wanted)

    async def read(self) -> Reading:
        for address in self._wanted:
            self._node.seek(address)
        return _reading(self._node.address, self._node.hops())


class AodvInfoReader:
    """Reads an AODV daemon on this machine over its query interface."""

    def __init__(self, host: str = "127.0.0.1", port: int = INFO_PORT, wanted: Iterable[str] = ()) -> None:
        self._host = host
        self._port = port
        self._path = "/".join(("/routes", *wanted))

    async def read(self) -> Reading:
        return parse(await get(self._host, self._port, self._path))


class Routes(msgspec.Struct, frozen=True):
    """The query interface's answer to /routes."""

    address: str
    hops: dict[str, Annotated[int, msgspec.Meta(ge=1, le=255)]]


def parse(answer: bytes) -> Reading:
    """Parses the daemon's answer. Raises Garbage."""
    answered = decode(answer, Routes)
    return _reading(ipv4(answered.address), {ipv4(address): hops for address, hops in answered.hops.items()})


def _reading(own: str, hops: Mapping[str, int]) -> Reading:
    row = {address: Edge(float(count), hops=count) for address, count in hops.items() if address != own}
    return Reading({own: row}, METRIC, SOURCE, own_only=True)


READER = LinkStateReader(
    "our own AODV daemon",
    (METRIC,),
    lambda source: AodvInfoReader(source.host, source.port, source.downstream.all),
    port=INFO_PORT,
    asks=True,
)
