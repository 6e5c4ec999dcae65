"""Compares delivery in virtual time with ns-3's, and with ETX and our own metric: 25 mobile nodes, 10 UDP
flows, OLSR.

ns-3 3.44's means and standard deviations are over 10 seeds. Its assumptions are ours here: 1200 m square,
random waypoint from uniform starts at v ± 1 m/s with pauses of 1 to 3 s (the pause is the paper's: ns-3's
record does not state it), range 450 m for everything, 11 Mb/s with acknowledgements at 1 Mb/s, 7
transmissions, queues of 100; HELLO 2 s, TC 5 s, both valid for three intervals, hop count, RFC 3626's MPRs
and TCs; flows of 4 × 512 bytes a second from 10 s on, of which those sent in [50, 200) s count. One
difference remains: a virtual host knows its neighbours' hardware addresses, ns-3 asked by ARP. With static
ARP (v = 5 only) ns-3 delivered 0.942 ± 0.016 instead of 0.892. Processor time is measured with nothing else
in the process; ns-3's 15.8 s a second is wall time.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from statistics import mean, stdev
from typing import NamedTuple

from benchmarks.olsr.virtual import Roaming, VirtualNetwork
from benchmarks.radio.report import Row, show
from node_agent.olsr.config import OlsrConfig
from node_agent.ports.virtual.host import Datagram
from node_agent.ports.virtual.loop import NS
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.model.trace import Trace
from orchestrator.radio.presets import ns3_range
from orchestrator.radio.settings import Mac

NODES, AREA, PAUSE, RANGE_M = 25, (1200.0, 1200.0), (1.0, 3.0), 450.0
FLOWS, PACKETS_PER_S, PAYLOAD = 10, 4, 512
TRAFFIC_FROM_S, WINDOW_S, END_S = 10.0, (50.0, 200.0), 205.0
PORT = 9
DEVIATIONS = 2.0
NS3_TIMES_REAL_TIME = 15.8

HOP_COUNT = OlsrConfig(
    hello_interval=2.0,
    hello_validity=6.0,
    tc_interval=5.0,
    tc_validity=15.0,
    quality="hops",
    fisheye=False,
    tc_redundancy=0,
    mpr_coverage=1,
)
ETX = OlsrConfig(hello_interval=2.0, hello_validity=6.0, tc_interval=5.0, tc_validity=15.0)
FAST = OlsrConfig(hello_interval=2.0, hello_validity=6.0, tc_interval=5.0, tc_validity=15.0, quality="fast")
METRICS = {"hops": HOP_COUNT, "etx": ETX, "fast": FAST}


class Ns3(NamedTuple):
    """Mean and standard deviation of the delivery ratio; mean share of unicast transmissions that fail, and
    OLSR packets that a node sends in a second.
    """

    delivered: float
    deviation: float
    failing: float
    olsr_per_s: float


NS3 = {
    1: Ns3(0.9758, 0.0239, 0.081, 0.65),
    5: Ns3(0.8917, 0.0318, 0.220, 0.65),
    10: Ns3(0.7780, 0.0699, 0.374, 0.68),
}


class Outcome(NamedTuple):
    delivered: float
    failing: float
    olsr_per_s: float
    cpu_s: float


class Stream(NamedTuple):
    """One flow: from ``start_s`` on, a packet every ``1 / PACKETS_PER_S`` seconds."""

    source: str
    destination: str
    start_s: float


class Conditions(NamedTuple):
    """What may differ from the benchmark's own. ``still_s``: nodes begin to move, and time begins to count,
    so much later.

    ``draws``: the random stream of a node's daemon. ``config``: that of the daemons.
    """

    still_s: float = 0.0
    draws: Callable[[str], random.Random] | None = None
    config: OlsrConfig | None = None


def node_names() -> list[str]:
    return [f"n{number}" for number in range(1, NODES + 1)]


def streams(seed: int) -> list[Stream]:
    rng = random.Random(f"flows/{seed}")
    pairs = [(a, b) for a, b in product(node_names(), node_names()) if a != b]
    return [
        Stream(source, destination, TRAFFIC_FROM_S + rng.random() / PACKETS_PER_S)
        for source, destination in rng.sample(pairs, FLOWS)
    ]


def simulate(speed: int, metric: str, seed: int, conditions: Conditions = Conditions()) -> Outcome:  # noqa: B008
    names = node_names()
    trace = Trace(
        {
            node: random_waypoint_path(
                random.Random(f"mobility/{seed}/{node}"), AREA, (speed - 1, speed + 1), PAUSE, END_S
            )
            for node in names
        }
    )
    still_s = conditions.still_s
    still_ns = round(still_s * NS)
    window = tuple(round(moment * NS) + still_ns for moment in WINDOW_S)
    air = Roaming(trace, ns3_range(RANGE_M), Mac(control_rate=1.0), seed, still_s)
    network = VirtualNetwork(names, air, conditions.config or METRICS[metric], seed, conditions.draws)
    loop = network.loop
    sent = arrived = 0

    def on_packet(datagram: Datagram, source: str) -> None:
        nonlocal arrived
        arrived += window[0] <= int(datagram.data[:16]) < window[1]

    def send(source: str, destination: str) -> None:
        nonlocal sent
        now = loop.now_ns()
        if now >= window[1]:
            return
        sent += now >= window[0]
        payload = (b"%016d" % now).ljust(PAYLOAD)
        network.hosts[source].send(network.address[destination], Datagram(PORT, PORT, payload))
        loop.call_at_ns(now + NS // PACKETS_PER_S, send, source, destination)

    for host in network.hosts.values():
        host.bind_socket(PORT, on_packet)
    for source, destination, start_s in streams(seed):
        loop.call_at_ns(round(start_s * NS) + still_ns, send, source, destination)

    started = time.process_time()
    network.run_until(WINDOW_S[0] + still_s)
    before = air.medium.node_truth()
    network.run_until(WINDOW_S[1] + still_s)
    after = air.medium.node_truth()
    network.run_until(END_S + still_s)
    spent = time.process_time() - started
    network.close()
    timeouts, acknowledged, broadcasts = (
        sum(getattr(node, what) for node in after) - sum(getattr(node, what) for node in before)
        for what in ("timeouts", "acknowledged", "broadcasts")
    )
    return Outcome(
        arrived / sent,
        timeouts / (timeouts + acknowledged),
        broadcasts / NODES / (WINDOW_S[1] - WINDOW_S[0]),
        spent,
    )


def row(speed: int, metric: str, outcomes: Sequence[Outcome]) -> Row:
    ns3 = NS3[speed]
    delivered = mean(outcome.delivered for outcome in outcomes)
    off = (delivered - ns3.delivered) / ns3.deviation
    return {
        "speed_mps": speed,
        "metric": metric,
        "delivered": delivered,
        "delivered_sd": stdev(outcome.delivered for outcome in outcomes),
        "ns3_hops": ns3.delivered,
        "ns3_sd": ns3.deviation,
        "ns3_sds_off": off,
        # ns-3's OLSR counts hops: other rows have no counterpart.
        "within": abs(off) <= DEVIATIONS if metric == "hops" else None,
        "failing": mean(outcome.failing for outcome in outcomes),
        "ns3_failing": ns3.failing,
        "olsr_per_node_s": mean(outcome.olsr_per_s for outcome in outcomes),
        "ns3_olsr_per_node_s": ns3.olsr_per_s,
        "times_real_time": END_S / mean(outcome.cpu_s for outcome in outcomes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=5, help="runs per row, at least 2 (default: 5)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default: 1)")
    options = parser.parse_args()
    cases = list(product(NS3, METRICS))
    with ProcessPoolExecutor(max_workers=options.jobs) as pool:
        runs = {
            case: [pool.submit(simulate, *case, seed) for seed in range(1, options.seeds + 1)]
            for case in cases
        }
        rows = [row(*case, [run.result() for run in runs[case]]) for case in cases]
    figures = {
        "benchmark": "olsr_scenario",
        "seeds": options.seeds,
        "outside": sum(row["within"] is False for row in rows),
        "times_real_time": next(r["times_real_time"] for r in rows if r["speed_mps"] == 5),
        "ns3_times_real_time": NS3_TIMES_REAL_TIME,
    }
    show("OLSR with mobility beside ns-3", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
