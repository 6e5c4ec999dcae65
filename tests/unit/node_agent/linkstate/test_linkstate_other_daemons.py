"""What olsrd2, babeld and the kernel say, as captured."""

import asyncio
import sys
from pathlib import Path

import pytest

from node_agent.linkstate import babeld, kernel, oonf
from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.reader import Garbage, Refused, Rejected
from node_agent.linkstate.shortest_path import distances
from tests.unit.captured import Answer, captured, costs, pages, saying, server

OONF = {
    "olsrv2info json originator": captured("oonf/node1/olsrv2info_originator.json"),
    "nhdpinfo json neighbor": captured("oonf/node1/nhdpinfo_neighbor.json"),
    "olsrv2info json edge": captured("oonf/node1/olsrv2info_edge.json"),
}
OONF_COSTS = {
    ("10.0.0.1", "10.0.0.2"): 1.0,
    ("10.0.0.2", "10.0.0.1"): 1.0,
    ("10.0.0.2", "10.0.0.3"): 3055360 / 2105088,
    ("10.0.0.2", "10.0.0.4"): 3956480 / 2105088,
    ("10.0.0.4", "10.0.0.2"): 4488960 / 2105088,
    ("10.0.0.4", "10.0.0.3"): 1.0,
    ("10.0.0.4", "10.0.0.5"): 2801408 / 2105088,
    # Nodes 3 and 5 relay for nobody and announce nothing: the same links, the other way.
    ("10.0.0.3", "10.0.0.2"): 3055360 / 2105088,
    ("10.0.0.3", "10.0.0.4"): 1.0,
    ("10.0.0.5", "10.0.0.4"): 2801408 / 2105088,
}


def oonf_by_telnet() -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        command = (await reader.readline()).decode()
        assert command.startswith("/") and command.endswith("\n")
        writer.write(OONF[command[1:-1]])
        await writer.drain()

    return answer


def test_oonf_over_telnet_and_http() -> None:
    async def scenario() -> None:
        async with server(oonf_by_telnet()) as port:
            told = await oonf.OonfReader("127.0.0.1", port).read()
        paths = {f"/telnet/{command.replace(' ', '%20')}": text for command, text in OONF.items()}
        async with server(pages(paths)) as port:
            fetched = await oonf.OonfReader("127.0.0.1", port, oonf.by_http).read()
        assert told == fetched
        assert told.metric == "airtime"
        assert costs(told) == pytest.approx(OONF_COSTS)  # nobody twice: IPv6 is left out

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"neighbor_symmetric":"true"', b'"neighbor_symmetric":"false"'),
        (b'"domain_metric_out_raw":2105088', b'"domain_metric_out_raw":16777215'),
        (b'"domain_metric_out_raw":2105088', b'"domain_metric_out_raw":"4294967295"'),
        (b'"domain":0', b'"domain":"1"'),
    ],
)
def test_oonf_links_that_are_none(old: bytes, new: bytes) -> None:
    originator, neighbour, edges = OONF.values()
    assert old in neighbour
    reading = oonf.parse(originator, neighbour.replace(old, new), edges)
    assert ("10.0.0.1", "10.0.0.2") not in costs(reading)


@pytest.mark.parametrize("replica", ["10.0.0.3", "10.0.0.5"])
def test_ways_lead_through_nodes_that_olsrd2_does_not_use_as_relays(replica: str) -> None:
    """A replica is used if there is a way to it, and one from it to the sink."""
    graph = graph_of(oonf.parse(*OONF.values()), {}, "airtime", 0)
    assert replica in distances(graph, "10.0.0.1")
    assert "10.0.0.4" in distances(graph, replica) and "10.0.0.1" in distances(graph, replica)


def test_what_olsrd2_tells_of_both_directions_is_not_replaced() -> None:
    def edge(node: str, to: str, raw: int) -> str:
        return f'{{"node":"{node}","edge":"{to}","domain":"0","domain_metric_out_raw":{raw}}}'

    originator, neighbour, _ = OONF.values()
    told = [
        edge("10.0.0.2", "10.0.0.3", 2105088),
        edge("10.0.0.3", "10.0.0.2", 16777215),  # no link in this direction
        edge("10.0.0.2", "10.0.0.1", 4210176),  # its sender knows best
        edge("10.0.0.6", "10.0.0.1", 2105088),  # this node knows of no such neighbour
    ]
    answer = f'{{"edge": [{",".join(told)}]}}'.encode()
    assert costs(oonf.parse(originator, neighbour, answer)) == {
        ("10.0.0.1", "10.0.0.2"): 1.0,
        ("10.0.0.2", "10.0.0.1"): 2.0,
        ("10.0.0.2", "10.0.0.3"): 1.0,
        ("10.0.0.6", "10.0.0.1"): 1.0,
    }


def test_a_neighbour_that_announces_nothing_is_known_by_its_hellos() -> None:
    originator, neighbour, _ = OONF.values()
    neighbour = neighbour.replace(b'"domain_metric_in_raw":2105088', b'"domain_metric_in_raw":"6315264"')
    assert costs(oonf.parse(originator, neighbour, b'{"edge": []}')) == {
        ("10.0.0.1", "10.0.0.2"): 1.0,
        ("10.0.0.2", "10.0.0.1"): 3.0,
    }


def test_babeld_tells_own_costs_in_units_of_etx() -> None:
    reading = babeld.parse(captured("babeld/dump.txt"))
    assert reading.own_only
    assert costs(reading) == {("10.77.0.2", "10.77.0.1"): 258 / 256, ("10.77.0.2", "10.77.0.3"): 1.0}
    assert reading.aliases == {"10.78.0.2": "10.77.0.2"}


def test_babeld_that_ends_early_or_refuses() -> None:
    dump = captured("babeld/dump.txt")
    with pytest.raises(Garbage):
        babeld.parse(dump[: dump.index(b"add route")])
    with pytest.raises(Rejected):
        babeld.parse(b"BABEL 1.0\nok\nbad\n")
    with pytest.raises(Garbage):
        babeld.parse(b"HTTP/1.0 200 OK\n\nok\nok\n")


def test_babeld_is_asked_over_its_socket() -> None:
    async def scenario() -> None:
        async with server(saying(captured("babeld/dump.txt"))) as port:
            assert len(costs(await babeld.BabeldReader("127.0.0.1", port).read())) == 2

    asyncio.run(scenario())


TITLES = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"


def hexadecimal(address: str) -> str:
    return f"{int.from_bytes(bytes(int(part) for part in address.split('.')), sys.byteorder):08X}"


def route(to: str, gateway: str, metric: int, flags: int = 7, mask: str = "255.255.255.255") -> str:
    addresses = f"{hexadecimal(to)}\t{hexadecimal(gateway)}"
    return f"eth0\t{addresses}\t{flags:04X}\t0\t0\t{metric}\t{hexadecimal(mask)}\t0\t0\t0\n"


def test_kernel_routes_as_hop_counts() -> None:
    table = TITLES + "".join(
        (
            route("10.0.0.0", "0.0.0.0", 0, flags=1, mask="255.255.255.0"),  # a network is no node
            route("0.0.0.0", "10.0.0.9", 0, flags=3, mask="0.0.0.0"),
            route("10.0.0.2", "10.0.0.2", 2),  # olsrd writes the neighbour as its own gateway
            route("10.0.0.3", "0.0.0.0", 0, flags=5),
            route("10.0.0.4", "10.0.0.2", 3),
            route("10.0.0.4", "0.0.0.0", 5, flags=5),  # the kernel uses the one with the lower metric
            route("10.0.0.5", "10.0.0.2", 0),
            route("10.0.0.6", "0.0.0.0", 0, flags=0x205),  # unreachable
        )
    )
    reading = kernel.parse(table, "10.0.0.1")
    assert reading.own_only
    assert reading.metric == "hops"
    hops = {"10.0.0.2": 1.0, "10.0.0.3": 1.0, "10.0.0.4": 3.0, "10.0.0.5": 2.0}
    assert costs(reading) == {("10.0.0.1", node): cost for node, cost in hops.items()}


def test_kernel_routes_of_this_machine_can_be_read() -> None:
    assert asyncio.run(kernel.KernelReader("10.0.0.1").read()).source == "kernel"


@pytest.mark.parametrize(
    "text", ["", "nonsense\n", f"{TITLES}eth0\tXX\tYY\n", f"{TITLES}eth0\t{'F' * 40}\t0\t0\n"]
)
def test_other_files_are_no_routing_table(text: str) -> None:
    with pytest.raises(Garbage):
        kernel.parse(text, "10.0.0.1")


def test_no_routing_table(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        asyncio.run(kernel.KernelReader("10.0.0.1", tmp_path / "route").read())
