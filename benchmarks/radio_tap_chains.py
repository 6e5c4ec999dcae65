"""Compares the model over TAP in real time with virtual time: UDP and TCP over chains of 1 to 5 hops.

Over TAP the packets are the kernel's, forwarded by kernels along static routes. UDP: the first node offers
more than one hop can carry. TCP: one bulk connection, the kernel's (Reno, with buffers like those of virtual
streams) beside a virtual stream. A row is valid only if the radio was punctual (``late_ratio``).
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, Literal

from benchmarks.radio.report import Row, main
from benchmarks.radio.scenarios import SPACING_M, udp_chain
from benchmarks.radio.tap import Network, lacking, load_average, network_of, stream, tcp_pair, udp_pair
from benchmarks.radio.tcp_chain import tcp_chain
from node_agent.ports.virtual.segment import StreamConfig
from orchestrator.backends.netns.layout import Layout, NodeLayout, Route, numbered
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import radio_config
from orchestrator.backends.netns.radio.lateness import LatenessReport
from orchestrator.mobility.static import static_path
from orchestrator.model.trace import Trace
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.settings import Mac

PAYLOAD = 1470
OFFERED_PER_S = 800
WARMUP_S, SECONDS, VIRTUAL_SECONDS = 2.0, 8.0, 30.0
TOLERANCE = 0.10
SEED = 1
PRESETS = ("ns3-range", "ns3-two-ray")
STREAMS = StreamConfig()
CONGESTION_CONTROL = "reno"

Protocol = Literal["udp", "tcp"]
Traffic = Callable[[Network, str, str], float]
"""Between two nodes of a network that is on the air: Mb/s in the measured time."""


def measure() -> tuple[Mapping[str, Any], Sequence[Row]]:
    if reason := lacking():
        return {"skipped": reason}, [{"skipped": reason}]
    before = load_average()
    protocols: tuple[Protocol, ...] = ("udp", "tcp")
    rows = [
        compare(protocol, preset, hops)
        for protocol in protocols
        for preset in PRESETS
        for hops in range(1, 6)
    ]
    figures = {
        "cases": len(rows),
        "outside": sum(not row["within"] for row in rows),
        "worst_ratio_udp": _worst(row["ratio"] for row in rows if row["protocol"] == "udp"),
        "worst_ratio_tcp": _worst(row["ratio"] for row in rows if row["protocol"] == "tcp"),
        "congestion_control": CONGESTION_CONTROL,
        "worst_late_ratio": max(row["late_ratio"] for row in rows),
        "load_average_before": before,
        "load_average_after": load_average(),
    }
    return figures, rows


def _worst(ratios: Iterable[float]) -> float:
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def compare(protocol: Protocol, preset: str, hops: int) -> dict[str, Any]:
    mac = Mac()
    choice = RadioChoice(preset)
    if protocol == "udp":
        virtual = udp_chain(choice.radio(), mac, hops, PAYLOAD, VIRTUAL_SECONDS, SEED).goodput_mbps
        tap, report = asyncio.run(tap_chain(choice, mac, hops, udp_goodput))
    else:
        virtual = tcp_chain(choice.radio(), mac, hops, VIRTUAL_SECONDS, SEED, WARMUP_S, STREAMS)
        tap, report = asyncio.run(tap_chain(choice, mac, hops, tcp_goodput))
    ratio = tap / virtual
    return {
        "protocol": protocol,
        "radio": preset,
        "hops": hops,
        "tap_mbps": tap,
        "virtual_mbps": virtual,
        "ratio": ratio,
        "tolerance": TOLERANCE,
        "late_ratio": report.late_ratio,
        "within": abs(ratio - 1) <= TOLERANCE,
    }


async def tap_chain(
    choice: RadioChoice, mac: Mac, hops: int, traffic: Traffic
) -> tuple[float, LatenessReport]:
    layout = _chain(hops, mac.queue_limit)
    names = [node.name for node in layout.nodes]
    trace = Trace({name: static_path((SPACING_M * index, 0.0)) for index, name in enumerate(names)})
    with network_of(layout) as net:
        radio = RadioProcess()
        await radio.start(radio_config(net.mark, layout, trace, choice, mac, SEED), net.ends)
        try:
            goodput = await asyncio.to_thread(traffic, net, names[0], names[-1])
            return goodput, await radio.stop()
        finally:
            await radio.close()


def udp_goodput(net: Network, source: str, sink: str) -> float:
    sender, receiver = udp_pair(net, source, sink)
    with sender, receiver:
        return _offer_and_count(sender, receiver) * PAYLOAD * 8 / SECONDS / 1e6


def tcp_goodput(net: Network, source: str, sink: str) -> float:
    sender, receiver = tcp_pair(net, source, sink, prepare=_like_a_virtual_stream)
    with sender, receiver:
        stream([(sender, receiver)], WARMUP_S)
        return stream([(sender, receiver)], SECONDS) * 8 / SECONDS / 1e6


def _like_a_virtual_stream(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION_CONTROL.encode())
    # The kernel doubles the size it is given. Nearly all of a send buffer is data, half of a receive buffer.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAMS.send_buffer // 2)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STREAMS.receive_buffer)


def _chain(hops: int, queue_length: int) -> Layout:
    """Sets up a chain: each node passes on packets for the two ends;
    the ends answer each other the same way.
    """
    layout = numbered([f"n{number}" for number in range(hops + 1)])
    nodes = layout.nodes
    ends = [(IPv4Network(f"{nodes[end].radio.ip}/32"), end) for end in (0, hops)]
    routed = [replace(node, routes=tuple(_routes(nodes, index, ends))) for index, node in enumerate(nodes)]
    return replace(layout, nodes=tuple(routed), queue_length=queue_length, static_neighbours=True)


def _routes(
    nodes: Sequence[NodeLayout], index: int, ends: Sequence[tuple[IPv4Network, int]]
) -> Iterator[Route]:
    for destination, end in ends:
        if abs(end - index) > 1:
            yield Route(destination, nodes[index + (1 if end > index else -1)].radio.ip)


def _offer_and_count(sender: socket.socket, receiver: socket.socket) -> int:
    """Counts datagrams that arrive in the measured time."""
    over = threading.Event()
    source = threading.Thread(target=_offer, args=(sender, over))
    source.start()
    try:
        _count(receiver, WARMUP_S)
        return _count(receiver, SECONDS)
    finally:
        over.set()
        source.join()


def _offer(sender: socket.socket, over: threading.Event) -> None:
    payload = bytes(PAYLOAD)
    started, sent = time.monotonic(), 0
    while not over.wait(0.005):
        while sent < (time.monotonic() - started) * OFFERED_PER_S:
            sender.send(payload)
            sent += 1


def _count(receiver: socket.socket, seconds: float) -> int:
    count = 0
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        receiver.settimeout(left)
        try:
            receiver.recv(2048)
        except TimeoutError:
            break
        count += 1
    return count


if __name__ == "__main__":
    main("UDP and TCP chains over TAP and in virtual time", measure)
