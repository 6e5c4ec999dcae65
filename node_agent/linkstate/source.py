"""What a link-state reader is, and what it is given: the value that each reader's file defines."""

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
    """Addresses of the nodes that this one sends to (``direct``), and of all on the way to the sinks."""

    direct: Sequence[str] = ()
    all: Sequence[str] = ()


class Source(NamedTuple):
    """What a reader is given. ``host`` and ``port``: where the node's routing daemon is asked.

    ``node``: the node's own sockets, clock and address (``node.host``). ``names`` leads from addresses to
    nodes. ``downstream`` says whose costs matter, for sources that must ask. ``keys``: by node, those that
    this one shares with them. ``refusals`` counts what others sent in vain.
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
    """One kind of source that network costs are read from.

    BABELD = LinkStateReader("babeld's local socket", ("etx",), BabeldReader, port=33123)

    ``metrics``: those it can tell, its own first; empty: whatever it tells. ``open`` makes the reader of a
    ``Source``; what it makes may be an asynchronous context manager, which is entered before it is read.
    ``asks``: it asks a program on the node, which there is none of in virtual time.
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
    """A source that is asked over TCP at ``host`` and ``port``, if the configuration names no others."""
    return LinkStateReader(
        description, metrics, lambda source: reader(source.host, source.port), host, port, asks=True
    )
