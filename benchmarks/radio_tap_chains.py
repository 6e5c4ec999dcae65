"""One model, two clocks: saturated UDP over chains of 1 to 5 hops, over TAP in real time and in virtual time.

Over TAP the packets are the kernel's, forwarded by kernels along static routes; the first node offers more
than one hop can carry. A row is to be believed only if the radio was punctual (``late_ratio``).
"""

import asyncio
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from benchmarks.radio.report import Row, main
from benchmarks.radio.scenarios import SPACING_M, udp_chain
from benchmarks.radio.tap import lacking, load_average, network_of, udp_pair
from orchestrator.backends.netns.layout import Layout, Route, numbered
from orchestrator.mobility.static import static_path
from orchestrator.mobility.trace import Trace
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.realtime.client import RadioProcess
from orchestrator.radio.realtime.config import radio_config
from orchestrator.radio.realtime.lateness import LatenessReport
from orchestrator.radio.settings import Mac

PAYLOAD = 1470
OFFERED_PER_S = 800
WARMUP_S, SECONDS, VIRTUAL_SECONDS = 2.0, 8.0, 30.0
TOLERANCE = 0.10
SEED = 1
PRESETS = ("ns3-range", "ns3-two-ray")


def measure() -> tuple[Mapping[str, Any], Sequence[Row]]:
    if reason := lacking():
        return {"skipped": reason}, [{"skipped": reason}]
    before = load_average()
    rows = [compare(preset, hops) for preset in PRESETS for hops in range(1, 6)]
    figures = {
        "cases": len(rows),
        "outside": sum(not row["within"] for row in rows),
        "worst_ratio": max((row["ratio"] for row in rows), key=lambda ratio: abs(ratio - 1)),
        "worst_late_ratio": max(row["late_ratio"] for row in rows),
        "load_average_before": before,
        "load_average_after": load_average(),
    }
    return figures, rows


def compare(preset: str, hops: int) -> dict[str, Any]:
    mac = Mac()
    choice = RadioChoice(preset)
    virtual = udp_chain(choice.radio(), mac, hops, PAYLOAD, VIRTUAL_SECONDS, SEED).goodput_mbps
    tap, report = asyncio.run(tap_chain(choice, mac, hops))
    ratio = tap / virtual
    return {
        "radio": preset,
        "hops": hops,
        "tap_mbps": tap,
        "virtual_mbps": virtual,
        "ratio": ratio,
        "tolerance": TOLERANCE,
        "late_ratio": report.late_ratio,
        "within": abs(ratio - 1) <= TOLERANCE,
    }


async def tap_chain(choice: RadioChoice, mac: Mac, hops: int) -> tuple[float, LatenessReport]:
    layout = _chain(hops, mac.queue_limit)
    names = [node.name for node in layout.nodes]
    trace = Trace({name: static_path((SPACING_M * index, 0.0)) for index, name in enumerate(names)})
    with network_of(layout) as net:
        sender, receiver = udp_pair(net, names[0], names[-1])
        radio = RadioProcess()
        with sender, receiver:
            await radio.start(radio_config(net.mark, layout, trace, choice, mac, SEED), net.ends)
            try:
                arrived = await asyncio.to_thread(_offer_and_count, sender, receiver)
                return arrived * PAYLOAD * 8 / SECONDS / 1e6, await radio.stop()
            finally:
                await radio.close()


def _chain(hops: int, queue_length: int) -> Layout:
    layout = numbered([f"n{number}" for number in range(hops + 1)])
    last = IPv4Network(f"{layout.nodes[-1].radio.ip}/32")
    nodes = [
        replace(node, routes=(Route(last, after.radio.ip),)) if index < hops - 1 else node
        for index, (node, after) in enumerate(zip(layout.nodes, layout.nodes[1:], strict=False))
    ]
    return replace(
        layout, nodes=(*nodes, layout.nodes[-1]), queue_length=queue_length, static_neighbours=True
    )


def _offer_and_count(sender: socket.socket, receiver: socket.socket) -> int:
    """Datagrams that arrive in the measured time."""
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
    main("Saturated UDP chains over TAP and in virtual time", measure)
