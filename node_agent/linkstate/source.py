"""Declares a link-state reader, and what it is given. Each reader's file defines such a value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from node_agent.linkstate.probe.core import ProbeConfig
from node_agent.linkstate.reader import Reader
from node_agent.model.refusals import Refusals
from node_agent.ports import Port

LOCALHOST = "127.0.0.1"
OLSR_METRICS = ("etx", "hops", "log_delivery")


class Downstream(NamedTuple):
    """Addresses of the nodes that this one sends to (``direct``), and of all nodes on the way to the
    sinks.
    """

    direct: Sequence[str] = ()
    all: Sequence[str] = ()


class Source(NamedTuple):
    """What a reader is given. ``host`` and ``port``: where to ask the node's routing daemon.

    ``node``: the node's own sockets, clock and address (``node.host``). ``names``: node by address.
    ``downstream``: the nodes whose costs matter, for sources that must ask. ``keys``: by node, the key that
    this node shares with it. ``refusals`` counts refused packets.
    """

    host: str
    port: int
    node: Port
    names: Mapping[str, str]
    downstream: Downstream = Downstream()
    keys: Mapping[str, bytes] | None = None
    refusals: Refusals | None = None
    probe: ProbeConfig = ProbeConfig()


@dataclass(frozen=True)
class LinkStateReader:
    """One kind of source of network costs.

        BABELD = LinkStateReader("babeld's local socket", ("etx",), BabeldReader, port=33123)

    ``metrics``: those it can report, its own first; empty: any. ``open`` makes the reader of a ``Source``;
    the reader may be an asynchronous context manager, which is entered before it is read. ``asks``: it asks a
    program on the node, which does not exist in virtual time.
    """

    description: str
    metrics: tuple[str, ...]
    open: Callable[[Source], Any]
    host: str = LOCALHOST
    port: int = 0
    asks: bool = False


def asking(
    description: str,
    metrics: tuple[str, ...],
    reader: Callable[[str, int], Reader],
    port: int,
    host: str = LOCALHOST,
) -> LinkStateReader:
    """Declares a source that is asked over TCP, by default at ``host`` and ``port``."""
    return LinkStateReader(
        description, metrics, lambda source: reader(source.host, source.port), host, port, asks=True
    )
