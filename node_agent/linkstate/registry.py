"""Every source of link state by its name, and how an agent's process opens the one it is told to use."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from msgspec import Struct

from node_agent.aodv import reader as aodv
from node_agent.linkstate import babeld, kernel, netjson, olsrd_jsoninfo, olsrd_txtinfo, oonf
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.measured import MeasuredLinkState
from node_agent.linkstate.probe.core import ProbeConfig
from node_agent.linkstate.probe.prober import Prober
from node_agent.linkstate.pushed import ToldLinkState
from node_agent.linkstate.reader import Reader
from node_agent.model.refusals import Refusals
from node_agent.ports import Port


class LinkStateConfig(Struct, frozen=True):
    """``host`` and ``port`` default to where such a source listens, ``metric`` to its own.

    ``keep``: seconds for which the last good graph is given out while reads fail.
    """

    kind: str = "told"
    host: str | None = None
    port: int | None = None
    metric: str | None = None
    keep: float = 10.0
    probe: ProbeConfig = ProbeConfig()


class Daemon(NamedTuple):
    """A source that is asked over TCP. ``metrics``: those it can tell, its own first."""

    metrics: tuple[str, ...]
    host: str
    port: int
    reader: Callable[[str, int], Reader]


_OLSR_METRICS = ("etx", "hops", "log_delivery")
_LOCALHOST = "127.0.0.1"
DAEMONS: Mapping[str, Daemon] = {
    "olsrd_jsoninfo": Daemon(_OLSR_METRICS, _LOCALHOST, olsrd_jsoninfo.PORT, olsrd_jsoninfo.JsoninfoReader),
    "olsrd_txtinfo": Daemon(_OLSR_METRICS, _LOCALHOST, olsrd_txtinfo.PORT, olsrd_txtinfo.TxtinfoReader),
    "netjson": Daemon(_OLSR_METRICS, _LOCALHOST, netjson.PORT, netjson.NetjsonReader),
    "oonf": Daemon(("airtime", "hops"), _LOCALHOST, oonf.TELNET_PORT, oonf.OonfReader),
    "oonf_http": Daemon(
        ("airtime", "hops"),
        _LOCALHOST,
        oonf.HTTP_PORT,
        lambda host, port: oonf.OonfReader(host, port, oonf.by_http),
    ),
    "babeld": Daemon(("etx", "log_delivery"), babeld.HOST, babeld.PORT, babeld.BabeldReader),
}
METRICS: Mapping[str, tuple[str, ...]] = {
    **{kind: daemon.metrics for kind, daemon in DAEMONS.items()},
    "aodv": ("hops",),
    "kernel": ("hops",),
    "probe": ("etx", "latency", "log_delivery"),
    "told": (),
}
"""What each kind of link state can tell, its own metric first; told costs are in whatever metric is told."""


def problems(config: LinkStateConfig) -> list[str]:
    """Why it cannot be used like this, as far as can be said before it is opened."""
    if config.kind not in METRICS:
        return [f"there is no link state {config.kind!r}: {', '.join(METRICS)}"]
    offered = METRICS[config.kind]
    found = []
    if config.metric is not None and config.metric not in offered:
        found.append(
            f"link state {config.kind} tells {', '.join(offered) or 'what it is told'}, not {config.metric}"
        )
    if config.port is not None and not 0 < config.port < 65536:
        found.append(f"{config.port} is not a port number")
    if not config.keep >= 0:
        found.append("keep cannot be negative")
    if not (config.probe.budget > 0 and config.probe.pair_every > 0 and config.probe.silence > 0):
        found.append("a prober needs a budget, a share of pairs and a time of silence above 0")
    return found


class Downstream(NamedTuple):
    """Addresses of the nodes that this one sends to (``direct``), and of all on the way to the sinks."""

    direct: Sequence[str] = ()
    all: Sequence[str] = ()


@asynccontextmanager
async def open_link_state(
    config: LinkStateConfig,
    port: Port,
    names: Mapping[str, str],
    downstream: Downstream,
    keys: Mapping[str, bytes],
    refusals: Refusals | None = None,
) -> AsyncIterator[LinkState]:
    """``names`` leads from addresses to nodes; ``downstream`` says whose costs matter, where one must ask.

    ``keys``: by node, those that this one shares with them; ``refusals`` counts what others sent in vain.
    """

    def measured(reader: Reader) -> MeasuredLinkState:
        return MeasuredLinkState(reader, names, port.now_ns, config.metric, config.keep)

    if config.kind == "told":
        yield ToldLinkState()
    elif config.kind == "probe":
        by_address = {address: keys[node] for address, node in names.items() if node in keys}
        async with Prober(port, downstream.direct, by_address, config.probe, refusals) as prober:
            yield measured(prober)
    elif config.kind == "kernel":
        yield measured(kernel.KernelReader(port.host))
    elif config.kind == "aodv":
        host, info_port = config.host or _LOCALHOST, config.port or aodv.INFO_PORT
        yield measured(aodv.AodvInfoReader(host, info_port, downstream.all))
    else:
        daemon = DAEMONS[config.kind]
        yield measured(daemon.reader(config.host or daemon.host, config.port or daemon.port))
