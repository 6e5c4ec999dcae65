"""A network that olsrd told about, told by our daemon: through a View and out again it must look alike."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.host.interfaces import InterfaceFacts
from node_agent.olsr.config import OlsrConfig
from node_agent.olsr.info.jsoninfo import JSONINFO
from node_agent.olsr.info.netjson import NETJSON
from node_agent.olsr.info.request import Dialect, Request, answer, parse
from node_agent.olsr.info.snapshot import Snapshot
from node_agent.olsr.info.txtinfo import TXTINFO
from node_agent.olsr.view import (
    EdgeView,
    HnaView,
    InterfaceView,
    LinkView,
    MidView,
    NeighbourView,
    RouteView,
    TwoHop,
    View,
)
from node_agent.olsr.wire import number

CAPTURED = Path(__file__).parents[3] / "data" / "olsrd"
NODES = ("node1", "node3")

# What only olsrd's inside knows, or what is told of this process.
INSIDE = {
    "pid",
    "systemTime",
    "timeSinceStartup",
    "configurationChecksum",
    "wasMultiPointRelay",
    "skip",
    "neighbor2nocov",
    "refCount",
    "olsrSocket",
    "sendSocket",
    "icmpRedirectBackup",
    "spoofFilterBackup",
    "forwardingTimeout",
    "mid",  # of messageTimes: olsrd counts below 0
    "ipv6Multicast",
    "version",
    "revision",
    "releaseVersion",
    "sourceHash",
}


def captured(node: str, name: str) -> Any:
    return json.loads((CAPTURED / node / name).read_text())


def snapshot(node: str) -> Snapshot:
    def table(name: str) -> list[Any]:
        rows: list[Any] = captured(node, f"json_{name}.json")[name]
        return rows

    interfaces = [each["olsrInterface"] for each in table("interfaces")]
    view = View(
        taken_ns=0,
        started_ns=0,
        main_address=number(interfaces[0]["ipv4Address"]),
        ansn=0,
        links=tuple(
            LinkView(
                each["ifName"],
                number(each["localIP"]),
                number(each["remoteIP"]),
                number(each["remoteIP"]),
                each["currentLinkStatus"],
                each["previousLinkStatus"],
                each["validityTime"],
                each["symmetryTime"],
                each["asymmetryTime"],
                each["vtime"],
                each["lossHelloInterval"],
                each["lossTime"],
                each["linkQuality"],
                each["neighborLinkQuality"],
                each["linkCost"],
            )
            for each in table("links")
        ),
        neighbours=tuple(
            NeighbourView(
                number(each["ipAddress"]),
                each["symmetric"],
                each["willingness"],
                each["isMultiPointRelay"],
                each["multiPointRelaySelector"],
                each["linkcount"],
                tuple(TwoHop(number(far), 1.0, 1) for far in each["twoHopNeighbors"]),
            )
            for each in table("2hop")
        ),
        topology=tuple(
            EdgeView(
                number(each["lastHopIP"]),
                number(each["destinationIP"]),
                each["linkQuality"],
                each["neighborLinkQuality"],
                each["tcEdgeCost"],
                each["pathCost"],
                each["hops"],
                each["validityTime"],
                each["ansn"],
                each["ansnEdge"],
                each["msgSeq"],
                each["msgHops"],
                each["tcIgnored"],
                each["msgSeq"] == 0,
            )
            for each in table("topology")
        ),
        routes=tuple(
            RouteView(
                number(each["destination"]),
                each["genmask"],
                number(each["gateway"]),
                each["metric"],
                each["etx"],
                each["networkInterface"],
            )
            for each in table("routes")
        ),
        mid=tuple(
            MidView(
                number(each["main"]["ipAddress"]),
                tuple(number(alias["ipAddress"]) for alias in each["aliases"]),
                each["main"]["validityTime"],
            )
            for each in table("mid")
        ),
        hna=tuple(
            HnaView(
                number(each["gateway"]), number(each["destination"]), each["genmask"], each["validityTime"]
            )
            for each in table("hna")
        ),
        interfaces=tuple(
            InterfaceView(
                each["name"],
                number(each["ipv4Address"]),
                each["mtu"],
                each["seqNum"],
                each["ttlIndex"],
                each["messageTimes"]["hello"],
                each["messageTimes"]["tc"],
                None,
                each["messageTimes"]["hna"],
            )
            for each in interfaces
        ),
    )
    facts = {
        each["name"]: InterfaceFacts(
            name=each["name"],
            address=each["ipv4Address"],
            netmask=each["ipv4Netmask"],
            broadcast=each["ipv4Broadcast"],
            mtu=each["mtu"] + 28,
            index=each["index"],
            flags=each["flags"],
            wireless=each["wireless"],
        )
        for each in interfaces
    }
    return Snapshot(
        view, OlsrConfig(), facts, {"LQ_HELLO": {"sent": 3}}, (), "rove-olsr 1.2", 4711, 1_800_000_000
    )


def asked(dialect: Dialect, path: str, of: Snapshot) -> str:
    return answer(dialect, parse(path.encode()), lambda: of).decode()


def compare(ours: Any, theirs: Any, path: str = "") -> None:
    """The same keys in the same order, the same types, and the same values but for what is olsrd's own."""
    assert type(ours) is type(theirs), path
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for key, value in theirs.items():
            compare(ours[key], value, f"{path}/{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for index, value in enumerate(theirs):
            compare(ours[index], value, f"{path}/{index}")
    elif path.rpartition("/")[2] not in INSIDE:
        assert ours == theirs, path


JSON_TABLES = (
    "neighbors",
    "links",
    "routes",
    "hna",
    "mid",
    "topology",
    "interfaces",
    "2hop",
    "version",
    "neighbours",
)


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("name", JSON_TABLES)
def test_jsoninfo_is_olsrds(node: str, name: str) -> None:
    compare(json.loads(asked(JSONINFO, f"/{name}", snapshot(node))), captured(node, f"json_{name}.json"))


@pytest.mark.parametrize("node", NODES)
def test_txtinfo_has_olsrds_tables_and_columns(node: str) -> None:
    """The captured text is seconds younger than the JSON: numbers differ, the form does not."""

    def form(text: str) -> list[list[str] | int]:
        found: list[list[str] | int] = []
        for block in text.strip("\n").split("\n\n"):
            title, *rest = block.split("\n")
            found.append([title.partition(":")[0] if title.startswith("Version") else title, *rest[:1]])
            found += [len(row.split("\t")) for row in rest[1:]]
        return found

    ours = asked(TXTINFO, "/all", snapshot(node))
    assert form(ours) == form((CAPTURED / node / "txt_all.txt").read_text())
    assert ours.endswith("\n\n")


def test_txtinfo_rows() -> None:
    told = asked(TXTINFO, "/lin/rou/top", snapshot("node3"))
    assert "\n10.0.0.3\t10.0.0.4\t0.000\t1.000\t1.000\t1.000\n" in told
    assert "\n192.168.55.0/24\t10.0.0.4\t2\t" in told
    assert "\teth0\t\n" in told
    destination_first = next(line for line in told.splitlines() if line.startswith("10.0.0.5\t10.0.0.4\t"))
    assert len(destination_first.split("\t")) == 5


@pytest.mark.parametrize("node", NODES)
def test_netjson_routes_are_olsrds(node: str) -> None:
    theirs = captured(node, "netjson_NetworkRoutes.json")
    ours = json.loads(asked(NETJSON, "/NetworkRoutes", snapshot(node)))
    assert ours.keys() == theirs.keys()
    assert [(each["destination"], each["next"], each["device"]) for each in ours["routes"]] == [
        (each["destination"], each["next"], each["device"]) for each in theirs["routes"]
    ]
    assert all(each.keys() == theirs["routes"][0].keys() for each in ours["routes"])


def test_netjson_graph_is_olsrds_without_its_repetitions() -> None:
    theirs = captured("node1", "netjson_NetworkGraph.json")
    ours = json.loads(asked(NETJSON, "/NetworkGraph", snapshot("node1")))
    assert ours.keys() == theirs.keys()
    assert (ours["protocol"], ours["metric"], ours["router_id"]) == ("olsrv1", "etx_ff", "10.0.0.1")
    assert ours["nodes"] == theirs["nodes"]
    edges = [(each["source"], each["target"]) for each in ours["links"]]
    assert sorted(edges) == sorted({(each["source"], each["target"]) for each in theirs["links"]})
    assert all(each["cost_text"] == f"{each['cost']:.3f}" for each in ours["links"])


def test_netjson_collection_and_what_olsrd_leaves_empty() -> None:
    collection = json.loads(asked(NETJSON, "/NetworkCollection", snapshot("node1")))
    assert [each["type"] for each in collection["collection"]] == ["NetworkRoutes", "NetworkGraph"]
    assert asked(NETJSON, "/DeviceMonitoring", snapshot("node1")).strip() == ""
    assert asked(NETJSON, "/http/DeviceMonitoring", snapshot("node1")).startswith(
        "HTTP/1.0 204 No Content\r\n"
    )


def broken() -> Snapshot:
    whole = snapshot("node1")
    view = whole.view
    return whole._replace(
        view=view._replace(
            links=(view.links[0]._replace(cost=None, quality=0.0),),
            topology=(view.topology[0]._replace(cost=None, path_cost=None), *view.topology[1:]),
        )
    )


def test_what_is_broken_has_olsrds_numbers() -> None:
    assert json.loads(asked(JSONINFO, "/links", broken()))["links"][0]["linkCost"] == 4194304.0
    edge = json.loads(asked(JSONINFO, "/topology", broken()))["topology"][0]
    assert (edge["tcEdgeCost"], edge["pathCost"]) == (4294967295.0, 4294967295.0)
    assert asked(TXTINFO, "/lin", broken()).splitlines()[2].endswith("\tINFINITE")
    assert asked(TXTINFO, "/top", broken()).splitlines()[2].endswith("\tINFINITE")
    graph = json.loads(asked(NETJSON, "/NetworkGraph", broken()))
    assert ("10.0.0.1", "10.0.0.2") not in [(each["source"], each["target"]) for each in graph["links"]]


def test_hop_count_is_told_like_olsrd_does() -> None:
    theirs = captured("variant_rfc", "node1_json_links.json")["links"][0]
    hops = snapshot("node1")._replace(config=OlsrConfig(quality="hops"))
    link = json.loads(asked(JSONINFO, "/links", hops))["links"][0]
    for key in ("linkCost", "lossHelloInterval", "lossTime", "lossMultiplier"):
        assert link[key] == theirs[key], key
    assert {route["etx"] for route in json.loads(asked(JSONINFO, "/routes", hops))["routes"]} == {0.0}
    assert asked(TXTINFO, "/lin", hops).splitlines()[2].endswith("\tINFINITE")
    assert asked(TXTINFO, "/top", hops).splitlines()[2].endswith("\t0.000")
    assert asked(TXTINFO, "/rou", hops).splitlines()[2].split("\t")[2:4] == ["1", "0.000"]


def test_costs_are_written_as_decimals() -> None:
    """A reader tells olsrd 0.9 from 0.6 by it."""
    text = asked(JSONINFO, "/topology", snapshot("node1"))
    assert '"tcEdgeCost":1.0,' in text


def test_an_interface_that_vanished_is_down() -> None:
    gone = snapshot("node1")._replace(interfaces={})
    assert json.loads(asked(JSONINFO, "/interfaces", gone))["interfaces"][0]["olsrInterface"] == {"up": False}
    assert "eth0\tDOWN" in asked(TXTINFO, "/int", gone)


def test_several_at_once_in_olsrds_order() -> None:
    told = json.loads(asked(JSONINFO, "/routes/links", snapshot("node1")))
    assert list(told)[4:] == ["links", "routes"]
    assert asked(TXTINFO, "/rou/lin", snapshot("node1")).startswith("Table: Links\n")


def test_everything_is_what_is_asked_without_a_name() -> None:
    for path in ("", "/", "/all"):
        told = json.loads(asked(JSONINFO, path, snapshot("node1")))
        assert {"neighbors", "links", "topology", "config", "plugins"} <= told.keys()
        assert "counters" not in told
    startup = json.loads(asked(JSONINFO, "/startup", snapshot("node1")))
    assert list(startup)[4:] == ["version", "config", "plugins"]
    assert startup["config"]["mainIp"] == "10.0.0.1"


def test_counters_are_told_by_kind() -> None:
    assert json.loads(asked(JSONINFO, "/counters", snapshot("node1")))["counters"] == {
        "LQ_HELLO": {"sent": 3}
    }


@pytest.mark.parametrize(
    ("text", "names", "headers"),
    [
        ("/links", ("links",), False),
        ("/links\r\n", ("links",), False),
        ("  /links  \n", ("links",), False),
        ("GET /links HTTP/1.0\r\nHost: x\r\n\r\n", ("links",), True),
        ("get //links// HTTP/1.1\n", ("links",), True),
        ("/http/links", ("links",), True),
        ("GET /plain/links HTTP/1.1\r\n", ("links",), False),
        ("GET / HTTP/1.0", (), True),
        ("/http", (), True),
        ("", (), False),
        ("/links/routes", ("links", "routes"), False),
        ("links", None, False),
        ("POST /links HTTP/1.0", None, False),
        ("GET /links HTTP/2", None, False),
        ("\xff\x00", None, False),
    ],
)
def test_requests(text: str, names: tuple[str, ...] | None, headers: bool) -> None:
    assert parse(text.encode("latin-1")) == Request(names, headers)


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (JSONINFO, "/nothing"),
        (JSONINFO, "/links/nothing"),
        (JSONINFO, "links"),
        (JSONINFO, "/Links"),
        (TXTINFO, "/links"),
        (TXTINFO, "/link"),
        (NETJSON, "/networkgraph"),
    ],
)
def test_unknown_names_are_not_found(dialect: Dialect, path: str) -> None:
    assert asked(dialect, path, snapshot("node1")).startswith("error: 404 Not Found")
    told = asked(dialect, f"GET {path} HTTP/1.0", snapshot("node1"))
    assert told.startswith("HTTP/1.0 404 Not Found\r\n")


def test_headers_tell_the_length() -> None:
    head, _, body = asked(JSONINFO, "GET /links HTTP/1.0\r\n\r\n", snapshot("node1")).partition("\r\n\r\n")
    fields = dict(line.split(": ") for line in head.splitlines()[1:])
    assert head.startswith("HTTP/1.0 200 OK\r\n")
    assert int(fields["Content-Length"]) == len(body)
    assert fields["Connection"] == "close"
    assert msgspec.json.decode(body)["links"]
