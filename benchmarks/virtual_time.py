"""Measures how much faster than real time agents run in virtual time, and what a frame on the disc radio
costs.
"""

import time
from collections.abc import Callable
from statistics import median

from benchmarks.shared.harness import Figures, main
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.disc import DiscRadio
from orchestrator.radio.medium import BROADCAST, Frame

NODES = 100
TIMERS_PER_SECOND = 100
SECONDS_VIRTUAL = 10
REPETITIONS = 3
RADIO_NODES = 25
RADIO_SIDE = 5
SPACING_M = 250.0


def no_route(destination: str) -> None:
    return None


def cpu_seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def timers() -> tuple[float, int]:
    """Wakes each node TIMERS_PER_SECOND times a second: nine times from sleeping, once by a bare callback."""
    loop = VirtualLoop()
    radio = DiscRadio(loop, 100.0, 11_000_000)
    period_ns = NS // TIMERS_PER_SECOND
    woken = 0

    async def agent(port: VirtualPort) -> None:
        nonlocal woken
        await port.sleep(port.random.random() / TIMERS_PER_SECOND)
        while True:
            for _ in range(9):
                await port.sleep(1 / TIMERS_PER_SECOND)
                woken += 1
            loop.call_at_ns(loop.now_ns() + period_ns, called)
            await port.sleep(1 / TIMERS_PER_SECOND)

    def called() -> None:
        nonlocal woken
        woken += 1

    hosts = [VirtualHost(f"n{index}", f"n{index}", loop, radio, no_route) for index in range(NODES)]
    tasks = [loop.create_task(agent(VirtualPort(host, seed=1))) for host in hosts]
    spent = cpu_seconds(lambda: loop.run_until_ns(SECONDS_VIRTUAL * NS))
    for task in tasks:
        task.cancel()
    loop.run_until_ns(loop.now_ns())
    loop.close()
    return spent, woken


def radio_microseconds_per_frame() -> float:
    """Measures a grid of nodes that all send all the time."""
    loop = VirtualLoop()
    radio = DiscRadio(loop, 625.0, 11_000_000)
    names = [f"n{index}" for index in range(RADIO_NODES)]
    for index, name in enumerate(names):
        following = names[(index + 1) % RADIO_NODES] if index % 5 else BROADCAST
        again = Frame(name, following, 1500, None)
        radio.attach(name, lambda frame: None, lambda frame: None)
        for _ in range(100):
            radio.send(again)
    positions = {
        name: (index % RADIO_SIDE * SPACING_M, index // RADIO_SIDE * SPACING_M)
        for index, name in enumerate(names)
    }
    radio.move(positions)
    spent = cpu_seconds(lambda: loop.run_until_ns(60 * NS))
    loop.close()
    return spent / sum(counters.sent for counters in radio.counters().values()) * 1e6


def measure() -> Figures:
    runs = [timers() for _ in range(REPETITIONS)]
    spent = median(spent for spent, _ in runs)
    return {
        "nodes": NODES,
        "timers_per_second": TIMERS_PER_SECOND,
        "times_real_time": SECONDS_VIRTUAL / spent,
        "seconds_virtual": SECONDS_VIRTUAL,
        "seconds_cpu": spent,
        "timers_fired": runs[0][1],
        "radio_nodes": RADIO_NODES,
        "radio_us_per_frame": median(radio_microseconds_per_frame() for _ in range(REPETITIONS)),
    }


if __name__ == "__main__":
    main("Virtual time on one core", measure)
