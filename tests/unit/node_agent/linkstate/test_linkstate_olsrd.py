"""What olsrd's three query plug-ins say about the captured network, and about networks that are odd."""

import asyncio
import json

import pytest

from node_agent.linkstate import netjson, olsrd_jsoninfo, olsrd_txtinfo
from node_agent.linkstate.measured import graph_of
from node_agent.linkstate.reader import Garbage, Reading, Rejected
from node_agent.linkstate.shortest_path import distances
from tests.unit.captured import captured, costs, pages, server

NO_MID = b'{"mid": []}'
NO_INTERFACES = b'{"interfaces": []}'
LINKS = {(1, 2), (2, 1), (2, 3), (3, 2), (2, 4), (4, 2), (3, 4), (4, 3), (4, 5), (5, 4)}
NETWORK = {(f"10.0.0.{u}", f"10.0.0.{v}") for u, v in LINKS}


def by_jsoninfo(node: str) -> Reading:
    return olsrd_jsoninfo.parse(
        *(captured(f"olsrd/{node}/json_{table}.json") for table in ("topology", "mid", "interfaces"))
    )


def by_txtinfo(node: str) -> Reading:
    """All tables in every answer: what the first olsrd 0.6 does with the names it does not know."""
    everything = captured(f"olsrd/{node}/txt_all.txt")
    return olsrd_txtinfo.parse(everything, everything, everything)


def by_netjson(node: str) -> Reading:
    return netjson.parse(captured(f"olsrd/{node}/netjson_NetworkGraph.json"))


def json_topology(*edges: tuple[str, str, float, float, float]) -> bytes:
    keys = ("lastHopIP", "destinationIP", "tcEdgeCost", "linkQuality", "neighborLinkQuality")
    return json.dumps({"topology": [dict(zip(keys, edge, strict=True)) for edge in edges]}).encode()


def test_jsoninfo_tells_the_captured_network() -> None:
    reading = by_jsoninfo("node1")
    assert reading.metric == "etx"
    assert set(costs(reading)) == NETWORK
    edge = reading.edges["10.0.0.2"]["10.0.0.4"]
    assert edge.cost == pytest.approx(7.233398)
    assert edge.delivery == pytest.approx(0.396 * 0.349)
    assert reading.aliases == {"10.1.0.3": "10.0.0.3"}


def test_txtinfo_taken_at_the_same_moment_tells_the_same() -> None:
    json_costs = costs(by_jsoninfo("node1"))
    assert costs(by_txtinfo("node1")) == {
        link: pytest.approx(c, abs=0.0006) for link, c in json_costs.items()
    }
    assert by_txtinfo("node1").aliases == by_jsoninfo("node1").aliases


@pytest.mark.parametrize("node", ["node1", "node3"])
def test_all_plugins_tell_the_same_links(node: str) -> None:
    """Taken seconds apart over lossy links: costs are alike, not equal."""
    readings = [by_jsoninfo(node), by_txtinfo(node), by_netjson(node)]
    for reading in readings:
        assert reading.metric == "etx"
        assert reading.aliases == {"10.1.0.3": "10.0.0.3"}  # node 3's own, which no MID tells it, as well
        assert set(costs(reading)) == NETWORK
        for link, cost in costs(reading).items():
            assert cost == pytest.approx(costs(readings[0])[link], rel=0.5)


def test_netjson_counts_what_the_neighbour_tells_of_a_link_told_twice() -> None:
    """Node 3 lists 2 → 3 as its own link mirrored, 1.942, and then as node 2 has told it."""
    assert by_netjson("node3").edges["10.0.0.2"]["10.0.0.3"].cost == pytest.approx(1.784180)
    assert by_netjson("node3").edges["10.0.0.3"]["10.0.0.2"].cost == pytest.approx(1.942383)


@pytest.mark.parametrize("node", ["node1", "node3"])
def test_other_link_quality_plugin(node: str) -> None:
    folder = f"olsrd/variant_etx_float/{node}"
    text = captured(f"{folder}_txt_all.txt")
    by_json = olsrd_jsoninfo.parse(captured(f"{folder}_json_topology.json"), NO_MID, NO_INTERFACES)
    by_text = olsrd_txtinfo.parse(text, text, text)
    assert set(costs(by_json)) == set(costs(by_text)) == NETWORK
    assert all(1 <= cost < 10 for cost in costs(by_json).values())


@pytest.mark.parametrize("node", ["node1", "node3"])
def test_without_link_quality_each_link_is_one_hop(node: str) -> None:
    """All costs are 0 there, and the bytes that would be qualities are not."""
    folder = f"olsrd/variant_rfc/{node}"
    text = captured(f"{folder}_txt_all.txt")
    by_json = olsrd_jsoninfo.parse(captured(f"{folder}_json_topology.json"), NO_MID, NO_INTERFACES)
    by_text = olsrd_txtinfo.parse(text, text, text)
    for reading in (by_json, by_text):
        assert reading.metric == "hops"
        assert costs(reading) == dict.fromkeys(NETWORK, 1.0)


def test_hops_are_counted_over_rated_links() -> None:
    graph = graph_of(by_jsoninfo("node1"), {}, "hops", 0)
    assert graph.metric == "hops"
    hops = distances(graph, "10.0.0.1")
    assert hops == {f"10.0.0.{node}": count for node, count in enumerate((0, 1, 2, 2, 3), start=1)}


@pytest.mark.parametrize("cost", [4194304.0, 4294967295.0, 4194304, 1e300, 0.0])
def test_broken_links_are_no_edges(cost: float) -> None:
    topology = json_topology(
        ("10.0.0.1", "10.0.0.2", cost, 0.5, 0.5), ("10.0.0.2", "10.0.0.1", 4.0, 0.5, 0.5)
    )
    reading = olsrd_jsoninfo.parse(topology, NO_MID, NO_INTERFACES)
    assert costs(reading) == {("10.0.0.2", "10.0.0.1"): 4.0}


@pytest.mark.parametrize("qualities", [(0.0, 1.0), (1.0, 0.0)])
def test_a_link_of_no_quality_is_no_edge(qualities: tuple[float, float]) -> None:
    topology = json_topology(("10.0.0.1", "10.0.0.2", 1.0, *qualities))
    assert costs(olsrd_jsoninfo.parse(topology, NO_MID, NO_INTERFACES)) == {}


def test_txtinfo_calls_broken_links_infinite() -> None:
    text = (
        b"Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\n10.0.0.2\t10.0.0.1\t0.05\t0.9\tINFINITE\n\n"
    )
    assert costs(olsrd_txtinfo.parse(text, b"Table: MID\nIP address\t(Alias)+\n\n", b"")) == {}


def test_jsoninfo_0_6_tells_raw_costs_and_flat_tables() -> None:
    """ETX 1 is 1024 there, with etx_fpm 65536."""
    topology = json_topology(
        ("10.0.0.1", "10.0.0.2", 2048, 0.5, 1.0),
        ("10.0.0.2", "10.0.0.1", 131072, 1.0, 0.5),
        ("10.0.0.1", "10.0.0.3", 4194304, 0.0, 1.0),
    )
    mid = b'{"mid": [{"ipAddress": "10.0.0.2", "aliases": [{"ipAddress": "10.1.0.2", "validityTime": 9}]}]}'
    interfaces = (
        b'{"interfaces": [{"name": "wlan0", "state": "up", "ipv4Address": "10.0.0.1"}, {"state": "down"}]}'
    )
    reading = olsrd_jsoninfo.parse(topology, mid, interfaces)
    assert costs(reading) == {("10.0.0.1", "10.0.0.2"): 2.0, ("10.0.0.2", "10.0.0.1"): 2.0}
    assert reading.aliases == {"10.1.0.2": "10.0.0.2"}


@pytest.mark.parametrize(
    ("titles", "row"),
    [
        ("IP address\tAliases", "10.0.0.3\t10.1.0.3;10.2.0.3"),
        ("IP address\tAlias\tVTime", "10.0.0.3\t10.1.0.3\t279.916\n10.0.0.3\t10.2.0.3\t1.000"),
        ("IP address\t(Alias)+", "10.0.0.3\t\t10.1.0.3\t10.2.0.3"),
    ],
)
def test_txtinfo_writes_aliases_in_three_ways(titles: str, row: str) -> None:
    """And with the times switched on, 0.6 has a column of them in each table."""
    topology = (
        b"Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\tVTime\n"
        b"10.0.0.3\t10.0.0.1\t0.500\t1.000\t2.000\t271.200\t\n\n"
    )
    reading = olsrd_txtinfo.parse(topology, f"Table: MID\n{titles}\n{row}\n\n".encode(), b"")
    assert costs(reading) == {("10.0.0.1", "10.0.0.3"): 2.0}
    assert reading.aliases == {"10.1.0.3": "10.0.0.3", "10.2.0.3": "10.0.0.3"}


def test_own_alias_leads_to_the_address_that_the_topology_has() -> None:
    """Whichever interface comes first in the daemon's list."""
    topology = json_topology(("10.0.0.3", "10.0.0.2", 1.0, 1.0, 1.0))
    interfaces = (
        b'{"interfaces": [{"olsrInterface": {"ipv4Address": "10.1.0.3"}},'
        b' {"olsrInterface": {"ipv4Address": "10.0.0.3"}}]}'
    )
    assert olsrd_jsoninfo.parse(topology, NO_MID, interfaces).aliases == {"10.1.0.3": "10.0.0.3"}


@pytest.mark.parametrize(
    "edge",
    [
        ("10.0.0.1", "10.0.0.2", -1.0, 0.5, 0.5),
        ("10.0.0.1", "10.0.0.2", 1.0, -0.5, 0.5),
        ("10.0.0.1", "10.0.0.2", float("nan"), 0.5, 0.5),
        ("10.0.0.1", "10.0.0.2", 10**400, 0.5, 0.5),
        ("10.0.0.1", "fe80::1", 1.0, 1.0, 1.0),
        ("somebody", "10.0.0.2", 1.0, 1.0, 1.0),
    ],
)
def test_impossible_edges_are_garbage(edge: tuple[str, str, float, float, float]) -> None:
    with pytest.raises(Garbage):
        olsrd_jsoninfo.parse(json_topology(edge), NO_MID, NO_INTERFACES)


@pytest.mark.parametrize("cost", ["nan", "-1", "inf", "", "1e999", "x"])
def test_impossible_costs_in_text_are_garbage(cost: str) -> None:
    text = f"Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\n10.0.0.2\t10.0.0.1\t1\t1\t{cost}\t\n\n"
    with pytest.raises(Garbage):
        olsrd_txtinfo.parse(text.encode(), b"Table: MID\nIP address\t(Alias)+\n\n", b"")


def test_a_graph_of_another_protocol_is_not_read_as_olsr() -> None:
    graph = json.loads(captured("olsrd/node1/netjson_NetworkGraph.json"))
    with pytest.raises(Garbage, match="batman"):
        netjson.parse(json.dumps(graph | {"protocol": "batman-adv"}).encode())


def test_readers_ask_for_what_olsrd_has() -> None:
    """txtinfo's names are exact in 0.9: /links would be 404 there."""

    async def scenario() -> None:
        folder = "olsrd/node1"
        tables = {
            f"/{name}": captured(f"{folder}/json_{name}.json") for name in ("topology", "mid", "interfaces")
        }
        async with server(pages(tables)) as port:
            by_json = await olsrd_jsoninfo.JsoninfoReader("127.0.0.1", port).read()
        text = {f"/{name}": captured(f"{folder}/txt_all.txt") for name in ("top", "mid", "int")}
        async with server(pages(text, head="HTTP/1.0 200 OK\nContent-type: text/plain\n")) as port:
            by_text = await olsrd_txtinfo.TxtinfoReader("127.0.0.1", port).read()
        async with server(pages({"/NetworkGraph": captured(f"{folder}/netjson_NetworkGraph.json")})) as port:
            graph = await netjson.NetjsonReader("127.0.0.1", port).read()
        assert set(costs(by_json)) == set(costs(by_text)) == set(costs(graph)) == NETWORK

    asyncio.run(scenario())


def test_not_found_without_headers_is_rejected() -> None:
    with pytest.raises(Rejected, match="404"):
        olsrd_txtinfo.parse(b"error: 404 Not Found\n\n", b"", b"")
