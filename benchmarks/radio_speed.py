"""What the radio process costs, and how punctual it is, with frames of real kernels through TAP devices.

``frames_per_cpu_second``: a saturated link of 1470-byte datagrams. The transmit ring is filled first; then
the real-time loop runs with its model time far behind the wall clock, so that it never waits and the 11 Mb/s
of the modelled channel do not limit it. Data frames delivered per second of processor time of that process,
user and system (which includes the receiving kernel's work on each frame); median of several rounds.
``frames_per_cpu_second_25_pairs``: the same with 25 saturated pairs out of each other's range.

``cpu_share``, ``late_ratio``: 25 nodes, 10 TCP connections between neighbours out of the others' range, all
nodes moving, in real time at 11 Mb/s. The share counts the loop and its helper (``loop_share``: the loop
alone). Figures of a busy machine say little: see ``load_average``, taken before and after.
"""

import asyncio
import os
import random
import signal
import statistics
import time
from contextlib import ExitStack
from dataclasses import replace

from benchmarks import harness
from benchmarks.radio.tap import Network, lacking, load_average, network_of, stream, tcp_pair, udp_pair
from orchestrator.backends.netns.layout import numbered
from orchestrator.mobility.trace import Position, Trace, Waypoint
from orchestrator.radio.channel import build_channel
from orchestrator.radio.dcf import NEVER
from orchestrator.radio.presets import ns3_range
from orchestrator.radio.realtime import shared
from orchestrator.radio.realtime.client import RadioProcess
from orchestrator.radio.realtime.config import RadioChoice, hardware_address, radio_config
from orchestrator.radio.realtime.lateness import LatenessReport
from orchestrator.radio.realtime.loop import AirLoop
from orchestrator.radio.realtime.priority import become_punctual
from orchestrator.radio.realtime.shared import Shared
from orchestrator.radio.settings import Mac

FRAMES = 25_000
PAYLOAD = bytes(1470)
ROUNDS = 5
BEHIND_NS = 3600 * 10**9
APART_M = 2000.0
NODES, FLOWS, SECONDS = 25, 10, 15.0
ROUND_TIMEOUT_S = 30.0


def measure() -> harness.Figures:
    if reason := lacking():
        return {"skipped": reason}
    before = load_average()
    single, pairs = saturated(1), saturated(25)
    report, goodput = asyncio.run(tcp_flows())
    cpu_s = report.loop_cpu_s + report.helper_cpu_s
    return {
        "frames_per_cpu_second": statistics.median(single),
        "frames_per_cpu_second_least": min(single),
        "frames_per_cpu_second_most": max(single),
        "frames_per_cpu_second_25_pairs": statistics.median(pairs),
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


def saturated(pairs: int) -> list[float]:
    """Frames per CPU-second in each round."""
    names = [f"n{number:02d}" for number in range(1, 2 * pairs + 1)]
    layout = replace(numbered(names), static_neighbours=True, queue_length=FRAMES // pairs)
    with network_of(layout) as net, ExitStack() as opened:
        flows = [udp_pair(net, *names[first : first + 2]) for first in range(0, len(names), 2)]
        for sender, receiver in flows:
            opened.enter_context(sender)
            opened.enter_context(receiver)
        rates = []
        for _ in range(ROUNDS):
            for sender, _ in flows:
                for _ in range(FRAMES // pairs):
                    sender.send(PAYLOAD)
            rates.append(_drained(net, _pair_positions(len(names))))
        return rates


def _drained(net: Network, positions: list[Position]) -> float:
    memory = Shared(len(positions))
    memory.cells[shared.PUBLISHED] = NEVER  # nobody moves
    loop = os.fork()
    if not loop:
        _run_loop(net, positions, memory)
    try:
        deadline = time.monotonic() + ROUND_TIMEOUT_S
        while sum(memory.counters().lateness) < 0.97 * FRAMES:
            if time.monotonic() > deadline:
                raise RuntimeError("the loop did not deliver what it was given")
            time.sleep(0.002)
        memory.cells[shared.STOP] = 1
    except BaseException:
        os.kill(loop, signal.SIGKILL)
        raise
    finally:
        os.waitpid(loop, 0)
    counted = memory.counters()
    return sum(counted.lateness) / (counted.scalars[shared.CPU_NS] / 1e9)


def _run_loop(net: Network, positions: list[Position], memory: Shared) -> None:
    try:
        become_punctual()
        nodes, mac = net.layout.nodes, Mac()
        AirLoop(
            build_channel(ns3_range(), mac, positions),
            mac,
            random.Random(1),
            [net.ends[node.name] for node in nodes],
            [hardware_address(node.mac) for node in nodes],
            memory,
            origin_ns=time.monotonic_ns() - BEHIND_NS,
        ).run()
    finally:
        os._exit(0)


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
    """Everyone walks to and fro at 5 m/s, and stays in range of its partner."""
    paths = {}
    for name, (x, y) in zip(names, _pair_positions(len(names)), strict=True):
        paths[name] = tuple(Waypoint(4.0 * leg, x, y + 20.0 * (leg % 2)) for leg in range(20))
    return Trace(paths)


if __name__ == "__main__":
    harness.main("The radio process: cost and punctuality", measure)
