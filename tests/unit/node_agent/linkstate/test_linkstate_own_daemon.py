"""Our own daemon at one moment, asked in every way it can be: all readers get the same graph."""

import asyncio

import pytest

from node_agent.host.interfaces import InterfaceFacts
from node_agent.linkstate.netjson import NetjsonReader
from node_agent.linkstate.olsrd_jsoninfo import JsoninfoReader
from node_agent.linkstate.olsrd_txtinfo import TxtinfoReader
from node_agent.linkstate.reader import Reader, Reading
from node_agent.olsr.config import OlsrConfig, Quality
from node_agent.olsr.info.jsoninfo import JSONINFO
from node_agent.olsr.info.netjson import NETJSON
from node_agent.olsr.info.server import InfoServer
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.info.txtinfo import TXTINFO
from node_agent.olsr.reader import OlsrCoreReader
from node_agent.olsr.wire import dotted
from tests.unit.captured import costs
from tests.unit.olsr_network import Network

LOSSES = {(1, 2): 0.0, (2, 3): 0.2, (3, 4): 0.0, (4, 5): 0.3, (2, 4): 0.5, (1, 5): 0.9, (3, 6): 0.1}
HOST = "127.0.0.1"


def loss(sender: int, receiver: int, seconds: float) -> float | None:
    return LOSSES.get((min(sender, receiver), max(sender, receiver)))


def network(quality: Quality) -> Network:
    """Node 3 stands in two subnets; node 6 is in the second one only."""
    subnets = {3: (0, 1), 6: (1,)}
    made = Network(range(1, 7), loss, OlsrConfig(quality=quality), subnets=subnets)
    made.run(90)
    return made


async def all_readings(made: Network, node: int, quality: Quality) -> dict[str, Reading]:
    daemon = made.daemons[node]
    facts = {
        each.name: InterfaceFacts(
            each.name, dotted(each.address), "255.255.0.0", "10.0.255.255", 1500, 1, 0, True
        )
        for each in daemon.interfaces
    }
    view = daemon.view(made.now)
    server = InfoServer(
        lambda: Snapshot(view, OlsrConfig(quality=quality), facts, daemon.counters.as_dict(), (), "0", 1, 1),
        HOST,
    )
    try:
        readers: dict[str, Reader] = {
            "core": OlsrCoreReader(daemon.costs, lambda: made.now, quality),
            "jsoninfo": JsoninfoReader(HOST, await server.listen(JSONINFO, 0)),
            "txtinfo": TxtinfoReader(HOST, await server.listen(TXTINFO, 0)),
            "netjson": NetjsonReader(HOST, await server.listen(NETJSON, 0)),
        }
        return {name: await reader.read() for name, reader in readers.items()}
    finally:
        server.close()


@pytest.mark.parametrize("quality", ["etx_ff", "etx_float", "hops"])
@pytest.mark.parametrize("node", [1, 3])
def test_all_readers_agree(quality: Quality, node: int) -> None:
    made = network(quality)
    readings = asyncio.run(all_readings(made, node, quality))
    core = readings.pop("core")
    assert len(costs(core)) >= 10
    assert core.metric == ("hops" if quality == "hops" else "etx")
    assert core.aliases == {"10.1.0.3": "10.0.0.3"}
    for name, reading in readings.items():
        assert reading.metric == core.metric, name
        assert reading.aliases == core.aliases, name
        assert costs(reading) == pytest.approx(costs(core), abs=0.0006), name  # txtinfo has three decimals
        for sender, row in core.edges.items():
            for receiver, edge in row.items():
                assert reading.edges[sender][receiver].delivery == pytest.approx(edge.delivery, abs=0.002), (
                    name
                )
