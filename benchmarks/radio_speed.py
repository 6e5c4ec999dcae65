"""Measures what the radio process costs, and how punctual it is, with frames of real kernels through TAP
devices.

``frames_per_cpu_second``: a saturated link of 1470-byte datagrams. The transmit ring is filled first; then
the real-time loop runs with its model time far behind the wall clock, so that it never waits and the 11 Mb/s
of the modelled channel do not limit it. Data frames delivered per second of processor time of that process,
user and system, median of many short rounds. It includes the receiving kernel's work on each frame up to the
socket, whose buffer is full: nobody is woken to read it. ``bare_forward_per_cpu_second``, measured in turn
with it: `write(read())` in Python without any radio. ``frames_per_cpu_second_25_pairs``: the same with 25
saturated pairs out of each other's range.

``cpu_share``, ``late_ratio``: 25 nodes, 10 TCP connections between neighbours out of the others' range, all
nodes moving, in real time at 11 Mb/s. The share counts the loop and its helper (``loop_share``: the loop
alone). Figures of a busy machine mean little: see ``load_average``, taken before and after.
"""

import asyncio
import os
import random
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from benchmarks.radio.tap import Network, lacking, load_average, network_of, stream, tcp_pair, udp_pair
from benchmarks.shared import harness
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.radio import shared
from orchestrator.backends.netns.radio.client import RadioProcess
from orchestrator.backends.netns.radio.config import hardware_address, radio_config
from orchestrator.backends.netns.radio.driven import DrivenDcf
from orchestrator.backends.netns.radio.lateness import LatenessReport
from orchestrator.backends.netns.radio.loop import AirLoop
from orchestrator.backends.netns.radio.priority import become_realtime
from orchestrator.backends.netns.radio.shared import Shared
from orchestrator.model.trace import Position, Trace, Waypoint
from orchestrator.radio.channel import build_channel
from orchestrator.radio.choice import RadioChoice
from orchestrator.radio.contention import NEVER
from orchestrator.radio.presets import ns3_range
from orchestrator.radio.settings import Mac

FRAMES = 2_000
PAYLOAD = bytes(1470)
EXCHANGE_NS = 1_885_000
"""A 1470-byte datagram's backoff, transmission and acknowledgement, on average."""
ROUNDS = 40
BEHIND_NS = 3600 * 10**9
APART_M = 2000.0
NODES, FLOWS, SECONDS = 25, 10, 15.0
SATURATED_TIMEOUT_S = 60.0


class Rates(NamedTuple):
    """Frames per CPU-second: median and best of the radio's rounds, median of forwarding without a radio."""

    radio: float
    radio_best: float
    bare: float


def measure() -> harness.Figures:
    if reason := lacking():
        return {"skipped": reason}
    before = load_average()
    # In a process of its own, because it changes its priority.
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("fork")) as process:
        single = process.submit(saturated, 1).result(SATURATED_TIMEOUT_S)
        pairs = process.submit(saturated, 25).result(SATURATED_TIMEOUT_S)
    report, goodput = asyncio.run(tcp_flows())
    cpu_s = report.loop_cpu_s + report.helper_cpu_s
    return {
        "frames_per_cpu_second": single.radio,
        "frames_per_cpu_second_best_round": single.radio_best,
        "bare_forward_per_cpu_second": single.bare,
        "share_of_bare_forward": single.radio / single.bare,
        "frames_per_cpu_second_25_pairs": pairs.radio,
        "bare_forward_per_cpu_second_25_pairs": pairs.bare,
        "cpu_share": cpu_s / report.wall_s,
        "loop_share": report.loop_cpu_s / report.wall_s,
        "late_ratio": report.late_ratio,
        "late_p50_us": report.p50_us,
        "late_p99_us": report.p99_us,
        "late_max_us": report.max_us,
        "channel_lag_max_ms": report.channel_lag_max_ms,
        "deliveries_per_s": report.deliveries / report.wall_s,
        "tcp_goodput_mbps": goodput,
        "scheduling": report.scheduling,
        "load_average_before": before,
        "load_average_after": load_average(),
    }


def saturated(pairs: int) -> Rates:
    names = [f"n{number:02d}" for number in range(1, 2 * pairs + 1)]
    each = FRAMES // pairs
    layout = replace(numbered(names), static_neighbours=True, queue_length=each)
    become_realtime()
    with network_of(layout) as net, ExitStack() as opened:
        flows = [udp_pair(net, *names[first : first + 2]) for first in range(0, len(names), 2)]
        for sender, receiver in flows:
            opened.enter_context(sender)
            opened.enter_context(receiver)
        radio: list[float] = []
        bare: list[float] = []
        for _ in range(ROUNDS):
            for measured, drain in ((radio, _drain_by_radio), (bare, _drain_by_hand)):
                for sender, _ in flows:
                    for _ in range(each):
                        sender.send(PAYLOAD)
                measured.append(drain(net, each))
        return Rates(statistics.median(radio), max(radio), statistics.median(bare))


def _drain_by_radio(net: Network, each: int) -> float:
    """Returns frames per CPU-second; stops before the first ring is empty, and then empties them all."""
    nodes, mac = net.layout.nodes, Mac()
    memory = Shared(len(nodes))
    memory.cells[shared.PUBLISHED] = NEVER  # nobody moves
    loop = AirLoop(
        partial(
            DrivenDcf, build_channel(ns3_range(), mac, _pair_positions(len(nodes))), mac, random.Random(1)
        ),
        [net.ends[node.name] for node in nodes],
        [hardware_address(node.mac) for node in nodes],
        memory,
        origin_ns=time.monotonic_ns() - BEHIND_NS,
    )
    started = time.process_time()
    loop.run(until_ns=round(0.9 * each * EXCHANGE_NS))
    spent = time.process_time() - started
    _drain_by_hand(net, each)
    delivered = sum(memory.counters().lateness)
    if not 0.8 * FRAMES <= delivered <= FRAMES:
        raise RuntimeError(f"{delivered} of {FRAMES} frames were delivered: the medium was not saturated")
    return delivered / spent


def _drain_by_hand(net: Network, each: int) -> float:
    """Does the least that Python can do: read from one device, write to the next."""
    read, write = os.read, os.write
    ends = list(net.ends.values())
    count = 0
    started = time.process_time()
    for source, sink in zip(ends[::2], ends[1::2], strict=True):
        with suppress(BlockingIOError):
            while True:
                write(sink, read(source, 2048))
                count += 1
    return count / (time.process_time() - started)


def _pair_positions(count: int) -> list[Position]:
    return [(number // 2 * APART_M + number % 2 * 50.0, 0.0) for number in range(count)]


async def tcp_flows() -> tuple[LatenessReport, float]:
    names = [f"n{number:02d}" for number in range(1, NODES + 1)]
    layout = replace(numbered(names), static_neighbours=True)
    with network_of(layout) as net, ExitStack() as opened:
        radio = RadioProcess()
        config = radio_config(net.mark, layout, _wandering(names), RadioChoice("ns3-range"), Mac(), seed=1)
        await radio.start(config, net.ends)
        try:
            flows = [tcp_pair(net, *names[first : first + 2]) for first in range(0, 2 * FLOWS, 2)]
            for sender, receiver in flows:
                opened.enter_context(sender)
                opened.enter_context(receiver)
            arrived = await asyncio.to_thread(stream, flows, SECONDS)
            return await radio.stop(), arrived * 8 / SECONDS / 1e6
        finally:
            await radio.close()


def _wandering(names: list[str]) -> Trace:
    """Moves every node to and fro at 5 m/s, in range of its partner."""
    paths = {}
    for name, (x, y) in zip(names, _pair_positions(len(names)), strict=True):
        paths[name] = tuple(Waypoint(4.0 * leg, x, y + 20.0 * (leg % 2)) for leg in range(20))
    return Trace(paths)


if __name__ == "__main__":
    harness.main("The radio process: cost and punctuality", measure)
