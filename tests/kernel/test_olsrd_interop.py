"""Our daemon and olsr.org's in one network. Runs where olsrd is on the PATH; its jsoninfo plug-in is looked
for in the usual library folders, or in that named by OLSRD_PLUGINS."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from node_agent.olsr import validity, wire
from orchestrator.backends.netns import names, network
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import radio_config
from orchestrator.mobility.static import static_path
from orchestrator.model.trace import Trace
from orchestrator.radio.choice import PathLossChoice, RadioChoice
from orchestrator.radio.settings import Mac
from orchestrator.services.program import Argv, Entry
from tests.kernel.inside import answered, icmp_socket, inside, send_ping

LIBRARIES = ("/usr/local/lib", "/usr/lib", "/usr/lib/olsrd", "/usr/local/lib/olsrd")
OLSRD = shutil.which("olsrd")


def _jsoninfo() -> Path | None:
    folders = [os.environ["OLSRD_PLUGINS"]] if "OLSRD_PLUGINS" in os.environ else LIBRARIES
    found = [file for folder in folders for file in sorted(Path(folder).glob("olsrd_jsoninfo.so*"))]
    return found[0] if found else None


JSONINFO = _jsoninfo()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(OLSRD is None or JSONINFO is None, reason="needs olsrd and its jsoninfo plug-in"),
]

Quality = Literal["etx_ff", "etx_float", "fast", "hops"]
Report = Mapping[str, Any]
NODES = ("n1", "n2", "n3", "n4", "n5")
OURS, THEIRS = ("n1", "n3", "n5"), ("n2", "n4")
"""In a line each kind relays for the other, and each has neighbours of the other kind only."""
ADDRESS = {node: f"10.0.0.{number}" for number, node in enumerate(NODES, start=1)}
ALIAS = {"n2": "10.1.2.1", "n3": "10.1.3.1"}
NETWORK = {"n4": "192.168.4.0", "n5": "192.168.5.0"}
SECOND_LINK = "eth1"
ROUNDING: dict[Quality, float] = {"etx_ff": 0.003, "etx_float": 0.01, "fast": 0.003}
"""Of a cost. It is computed in steps of 1/1024; etx_float tells others its ratios cut down to a 255th."""
BROKEN = 4096.0
"""How olsrd prices an edge when it first hears of it, and until the next TC."""

LINE = RadioChoice("ns3-two-ray")
"""Only neighbours decode each other, and who could collide hears each other: nothing is lost."""
VALIDITY = {"hello": 10.0, "tc": 30.0, "mid": 30.0, "hna": 30.0}
"""Seconds; everything is said once a second."""

OLSRD_CONFIG = """
DebugLevel 0
IpVersion 4
LinkQualityFishEye 1
LinkQualityLevel {level}
LinkQualityAlgorithm "{algorithm}"
LockFile "{lock}"
LoadPlugin "{jsoninfo}" {{ PlParam "port" "9090" PlParam "accept" "127.0.0.1" }}
Hna4 {{ {hna} }}
Interface {interfaces} {{ {timers} }}
"""


def interfaces(node: str) -> tuple[str, ...]:
    return ("wlan0", SECOND_LINK) if node in ALIAS else ("wlan0",)


def ours(node: str, quality: Quality, directory: Path) -> Entry:
    olsr: dict[str, Any] = {f"{what}_interval": 1.0 for what in VALIDITY} | {
        f"{what}_validity": seconds for what, seconds in VALIDITY.items()
    }
    hna = [f"{NETWORK[node]}/24"] if node in NETWORK else []
    file = directory / f"{node}.json"
    olsr |= {"quality": quality, "hna": hna, "accept_networks": ["192.168.0.0/16"]}
    manet = {"networks": ["10.0.0.0/16", "10.1.0.0/16"]}
    file.write_text(json.dumps({"interfaces": interfaces(node), "olsr": olsr, "manet": manet}))
    return Entry("node_agent.olsr.process:run", {"config": str(file)})


def theirs(node: str, quality: Quality, directory: Path) -> Argv:
    file = directory / f"{node}.conf"
    text = OLSRD_CONFIG.format(
        level=0 if quality == "hops" else 2,
        algorithm="etx_float" if quality == "etx_float" else "etx_ff",
        lock=directory / f"{node}.lock",
        jsoninfo=JSONINFO,
        hna=f"{NETWORK[node]} 255.255.255.0" if node in NETWORK else "",
        interfaces=" ".join(f'"{name}"' for name in interfaces(node)),
        timers=" ".join(
            f"{what.title()}Interval 1.0 {what.title()}ValidityTime {seconds}"
            for what, seconds in VALIDITY.items()
        ),
    )
    file.write_text(text)
    assert OLSRD is not None
    return Argv((OLSRD, "-f", str(file), "-nofork"))


@asynccontextmanager
async def mixed_network(
    mark: Mark, choice: RadioChoice, quality: Quality
) -> AsyncIterator[Mapping[str, Child]]:
    """The daemons by their nodes."""
    layout = numbered(NODES)
    trace = Trace({node: static_path((200.0 * i, 0.0)) for i, node in enumerate(NODES)})
    ends = network.up(layout, mark)
    radio = RadioProcess()
    try:
        await radio.start(radio_config(mark, layout, trace, choice, Mac(), seed=1), ends)
    finally:
        for descriptor in ends.values():
            os.close(descriptor)
    try:
        async with await ForkServer.start(mark) as server:
            children = {}
            for node in NODES:
                if node in ALIAS:
                    add_second_link(mark.namespace(node), ALIAS[node])
                program = (ours if node in OURS else theirs)(node, quality, mark.directory)
                log = mark.directory / f"{node}.log"
                namespace = names.HOST_NAMES / mark.namespace(node)
                launch = Launch(program, namespace, stdout=log, stderr=log)
                children[node] = await server.spawn(launch)
            yield children
    finally:
        await radio.close()


def add_second_link(namespace: str, address: str) -> None:
    """Nobody is at its other end."""
    for command in (
        f"link add {SECOND_LINK} type veth peer name {SECOND_LINK}-end",
        f"link set {SECOND_LINK} up",
        f"link set {SECOND_LINK}-end up",
        f"address add {address}/24 broadcast + dev {SECOND_LINK}",
    ):
        subprocess.run(["ip", "-n", namespace, *command.split()], check=True, timeout=10)


def ask(mark: Mark, node: str) -> Report:
    """All that a daemon tells, of one moment."""

    def read() -> bytes:
        with socket.create_connection(("127.0.0.1", 9090), timeout=5) as connection:
            connection.sendall(b"/plain/all")
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    report: Report = json.loads(inside(mark, node, read))
    return report


async def reports(mark: Mark) -> dict[str, Report]:
    return {node: await asyncio.to_thread(ask, mark, node) for node in NODES}


async def settled(
    mark: Mark, holds: Callable[[Mapping[str, Report]], list[str]], within: float
) -> dict[str, Report]:
    """What all daemons say once nothing is missing any more."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    missing = ["nothing was asked"]
    while loop.time() < end:
        await asyncio.sleep(1.5)  # olsrd keeps an answer for a second
        try:
            told = await reports(mark)
        except OSError as error:
            missing = [f"a daemon does not answer yet: {error}"]
            continue
        if not (missing := holds(told)):
            return told
    logs = [f"{file.name}: {file.read_text()[-300:]}" for file in sorted(mark.directory.glob("*.log"))]
    raise AssertionError("\n".join([*missing, *logs]))


def routes(report: Report) -> dict[str, Any]:
    return {f"{route['destination']}/{route['genmask']}": route for route in report["routes"]}


def edges(report: Report) -> dict[tuple[str, str, int], float]:
    """Costs by last hop, destination and the message that told them; own edges have none."""
    return {
        (edge["lastHopIP"], edge["destinationIP"], edge["msgSeq"]): edge["tcEdgeCost"]
        for edge in report["topology"]
        if edge["msgSeq"] and edge["tcEdgeCost"] < BROKEN
    }


def destinations(node: str) -> dict[str, int]:
    """What a node should have routes to, and the place in the line where that is."""
    everywhere = [(f"{ADDRESS[there]}/32", there) for there in NODES]
    everywhere += [(f"{ALIAS[there]}/32", there) for there in ALIAS]
    everywhere += [(f"{NETWORK[there]}/24", there) for there in NETWORK]
    return {to: NODES.index(there) for to, there in everywhere if there != node}


def missing_routes(told: Mapping[str, Report]) -> list[str]:
    return [
        f"{node} has no route to {to}"
        for node, report in told.items()
        for to in destinations(node)
        if to not in routes(report)
    ]


def wrong_ways(told: Mapping[str, Report]) -> list[str]:
    """Routes that do not lead along the line."""
    found = missing_routes(told)
    for node, report in told.items():
        here = NODES.index(node)
        for to, route in routes(report).items():
            way = destinations(node)[to] - here
            gateway = ADDRESS[NODES[here + (1 if way > 0 else -1)]]
            if (route["metric"], route["gateway"]) != (abs(way), gateway):
                found.append(f"{node} to {to}: {route}")
    return found


def imperfect_costs(told: Mapping[str, Report], rounding: float) -> list[str]:
    """Every link loses nothing, so a way costs as much as it has hops, whoever looks at it."""
    return wrong_ways(told) + [
        f"{node} to {to} over {route['metric']} hops costs {route['etx']}"
        for node, report in told.items()
        for to, route in routes(report).items()
        if abs(route["etx"] - route["metric"]) > rounding * route["metric"]
    ]


def unlearnt(told: Mapping[str, Report]) -> list[str]:
    """What a daemon has not been told by the others: edges of the line, aliases, networks."""
    line = {
        (ADDRESS[a], ADDRESS[b]) for here, there in pairwise(NODES) for a, b in ((here, there), (there, here))
    }
    found = []
    for node, report in told.items():
        known = {(edge["lastHopIP"], edge["destinationIP"]) for edge in report["topology"]}
        aliases = {alias["ipAddress"] for entry in report["mid"] for alias in entry["aliases"]}
        networks = {(entry["destination"], entry["genmask"]) for entry in report["hna"]}
        found += [f"{node} lacks the edge {edge}" for edge in sorted(line ^ known)]
        found += [f"{node} lacks {ALIAS[n]}" for n in ALIAS if n != node and ALIAS[n] not in aliases]
        found += [
            f"{node} lacks {NETWORK[n]}" for n in NETWORK if n != node and (NETWORK[n], 24) not in networks
        ]
    return found


def unequal_edges(told: Mapping[str, Report]) -> tuple[int, list[str]]:
    """How many edges one of ours and one of theirs learnt from the same message, and where they differ."""
    compared, found = 0, []
    for mine in OURS:
        for other in THEIRS:
            here, there = edges(told[mine]), edges(told[other])
            for edge in here.keys() & there.keys():
                compared += 1
                if abs(here[edge] - there[edge]) > ROUNDING["etx_ff"] * here[edge]:
                    found.append(f"{edge}: {here[edge]} at {mine}, {there[edge]} at {other}")
    return compared, found


def pings(mark: Mark, node: str, to: str) -> bool:
    with icmp_socket(mark, node) as icmp:
        send_ping(icmp, IPv4Address(to))
        return answered(icmp, IPv4Address(to))


@pytest.mark.parametrize("quality", ["etx_ff", "etx_float", "fast"])
def test_a_mixed_line_agrees_on_routes_and_costs(mark: Mark, quality: Quality) -> None:
    async def run() -> None:
        async with mixed_network(mark, LINE, quality):
            await settled(mark, missing_routes, within=60)
            assert await asyncio.to_thread(pings, mark, "n1", ADDRESS["n5"])
            assert await asyncio.to_thread(pings, mark, "n4", ADDRESS["n1"])
            told = await settled(mark, lambda told: imperfect_costs(told, ROUNDING[quality]), within=120)
            assert unlearnt(told) == []
            compared, unequal = unequal_edges(told)
            assert compared > 0
            assert unequal == []

    asyncio.run(run())


def test_a_mixed_line_that_counts_hops_knows_itself_everywhere(mark: Mark) -> None:
    """Of olsrd's own routes nothing is asked: at LinkQualityLevel 0 it learns edges from TCs without looking
    for new routes, also among its own kind."""

    def wrong(told: Mapping[str, Report]) -> list[str]:
        return unlearnt(told) + wrong_ways({node: told[node] for node in OURS})

    async def run() -> None:
        async with mixed_network(mark, LINE, "hops"):
            await settled(mark, wrong, within=60)

    asyncio.run(run())


def test_a_smart_gateways_announcement_gets_through_ours_and_theirs(mark: Mark) -> None:
    """n1 says what an olsrd with SmartGateway would; between it and the others stands one of each kind."""

    def say(seqno: int) -> None:
        body = wire.encode_hna(wire.Hna(((0, wire.number("0.3.10.43")),)))
        told = wire.Message(wire.HNA, validity.encode(30.0), wire.number(ADDRESS["n1"]), 255, 0, seqno, body)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"wlan0")
            udp.sendto(wire.encode_packet(seqno, [told]), ("255.255.255.255", 698))

    def lacking(told: Mapping[str, Report]) -> list[str]:
        gateway = (ADDRESS["n1"], "0.0.0.0", 0)
        return [
            f"{node} lacks the gateway"
            for node in ("n3", "n4", "n5")
            if gateway
            not in {(each["gateway"], each["destination"], each["genmask"]) for each in told[node]["hna"]}
        ]

    async def run() -> None:
        async with mixed_network(mark, LINE, "etx_ff"):
            told = await settled(mark, missing_routes, within=60)
            for seqno in range(20_000, 20_020):
                await asyncio.to_thread(inside, mark, "n1", lambda seqno=seqno: say(seqno))
                await asyncio.sleep(1.5)
                told = await reports(mark)
                if not lacking(told):
                    return
            assert lacking(told) == []

    asyncio.run(run())


def test_when_ours_ends_in_order_theirs_forget_it_at_once(mark: Mark) -> None:
    """HELLOs are valid for 10 s: without a goodbye it would take that long."""

    def remembered(told: Mapping[str, Report]) -> list[str]:
        gone = f"{ADDRESS['n5']}/32"
        return [node for node, report in told.items() if gone in routes(report)]

    async def run() -> None:
        async with mixed_network(mark, LINE, "etx_ff") as children:
            await settled(mark, missing_routes, within=60)
            loop = asyncio.get_running_loop()
            begun = loop.time()
            await children["n5"].signal(signal.SIGTERM)
            assert await children["n5"].wait() == 0
            others = [node for node in NODES if node != "n5"]
            while remembered({node: await asyncio.to_thread(ask, mark, node) for node in others}):
                assert loop.time() - begun < VALIDITY["hello"] / 2
                await asyncio.sleep(0.5)

    asyncio.run(run())


def lossy_mesh() -> RadioChoice:
    """A triangle with two tails. At 5.5 dB over noise five of six frames of 200 bytes get through, at 6 dB 19
    of 20."""
    margin_db = {(0, 1): 6.5, (1, 2): 5.8, (2, 3): 7.0, (3, 4): 6.0, (1, 3): 5.5}
    radio = RadioChoice().radio()
    loss: dict[str, dict[str, float]] = {}
    for (i, j), margin in margin_db.items():
        loss.setdefault(NODES[i], {})[NODES[j]] = radio.tx_power_dbm - radio.noise_dbm - margin
    return RadioChoice(path_loss=PathLossChoice("matrix", {"losses": loss}, tuple(NODES)))


@pytest.mark.parametrize("quality", ["etx_ff", "etx_float"])
def test_on_lossy_links_both_kinds_take_the_same_costs_from_the_same_message(
    mark: Mark, quality: Quality
) -> None:
    async def run() -> None:
        async with mixed_network(mark, lossy_mesh(), quality):
            told = await settled(mark, missing_routes, within=100)
            total = 0
            for _ in range(15):
                compared, unequal = unequal_edges(told)
                assert unequal == []
                total += compared
                await asyncio.sleep(1.5)
                told = await reports(mark)
            assert total > 30

    asyncio.run(run())
