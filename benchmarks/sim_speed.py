"""Measures how much faster than real time mobile networks are simulated, on one core.

``datagrams``: light traffic without agents. Virtual hosts on the 802.11b medium at the paper's setting and
density: random waypoint at 5 ± 1 m/s, the channel renewed ten times a second, 10 flows of 4 datagrams of 512
bytes a second between random nodes, on the routes of the true links.

``query k=…``: a whole run as `backend: sim` does it, without analysis. 25 nodes at 10 ± 1 m/s, OLSR by ETX,
agents and telemetry; a chain of two operators, each with k replicas, whose source offers more tuples of 10 kB
than the radio can carry. Only the time after routing has converged counts.

Processor time, not wall time, so that other work on the machine counts less; the best of three rounds. Other
work still costs, because it empties the caches: compare two versions in turns, or at once on one core. The
interpreter counts too: one that was built with ``--enable-optimizations`` is faster.

A query's time is spread widely: over the medium, then OLSR packets received and sent, ticks of mobility,
streams, and decisions of switching. Garbage collection, seals and telemetry take little. Functions take
longer here than in a loop of their own, where their code and data are cached: try changes here.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.radio.report import Row, main
from benchmarks.shared.runs import described
from node_agent.ports.virtual.host import Datagram, VirtualHost
from node_agent.ports.virtual.loop import NS, VirtualLoop
from orchestrator.backends.sim.air import make_air
from orchestrator.backends.sim.simulation import Simulation
from orchestrator.backends.sim.worker import look_for_garbage_rarely
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.semantics import plan_run
from orchestrator.services.ground_truth import TrueLinks
from orchestrator.spec.topology import Topology

SIZES = {25: 60, 50: 60, 200: 10}
"""Nodes, and virtual seconds to simulate."""
TARGETS = {25: 20.0, 50: 5.0}
REPLICAS = (1, 3)
QUERY_S = 60
QUERY_TARGET = 15.0
ROUNDS = 3
FLOWS = 10
PACKETS_PER_S = 4
PAYLOAD = bytes(512)
TICK_NS = 100_000_000
PORT = 9
SIDE_OF_25_M = 1200.0


def simulate(nodes: int, virtual_s: int, seed: int) -> Row:
    side = SIDE_OF_25_M * (nodes / 25) ** 0.5
    mobility = {
        "model": "random_waypoint",
        "speed": 5.0,
        "speed_spread": 1.0,
        "pause": 2.0,
        "pause_spread": 1.0,
    }
    topology = Topology.model_validate(
        {"name": "field", "nodes": nodes, "area": [side, side], "mobility": mobility}
    )
    loop = VirtualLoop()
    trace = generate_trace(topology, seed, virtual_s)
    air = make_air(topology, loop, trace.at(0.0), seed)
    truth = TrueLinks(loop.now_ns, "etx")
    arrived = sent = 0

    def tick() -> None:
        seconds = loop.now_ns() / NS
        truth.update(air.move(trace.at(seconds), seconds))
        loop.call_at_ns(loop.now_ns() + TICK_NS, tick)

    def on_packet(datagram: Datagram, source: str) -> None:
        nonlocal arrived
        arrived += 1

    def send(source: VirtualHost, destination: str) -> None:
        nonlocal sent
        sent += 1
        source.send(destination, Datagram(PORT, PORT, PAYLOAD))
        loop.call_at_ns(loop.now_ns() + NS // PACKETS_PER_S, send, source, destination)

    hosts = {}
    for node in topology.node_names:

        def next_hop(destination: str, node: str = node) -> str | None:
            return truth.next_hop(node, destination)

        hosts[node] = VirtualHost(node, node, loop, air.medium, next_hop)
        hosts[node].bind_socket(PORT, on_packet)
    rng = random.Random(f"flows/{seed}")
    for _ in range(FLOWS):
        source, destination = rng.sample(topology.node_names, 2)
        loop.call_at_ns(rng.randrange(NS // PACKETS_PER_S), send, hosts[source], destination)

    started = time.process_time()
    tick()
    loop.run_until_ns(virtual_s * NS)
    spent = time.process_time() - started
    loop.close()
    return {
        "what": "datagrams",
        "nodes": nodes,
        "virtual_s": virtual_s,
        "cpu_s": spent,
        "times_real_time": virtual_s / spent,
        "target": TARGETS.get(nodes),
        "sent": sent,
        "arrived_ratio": arrived / sent,
    }


def saturated_query(replicas: int, virtual_s: int, seed: int) -> Row:
    mobility = {
        "model": "random_waypoint",
        "speed": "10 m/s",
        "speed_spread": "1 m/s",
        "pause": "2 s",
        "pause_spread": "1 s",
    }
    side = f"{SIDE_OF_25_M:g} m"
    experiment = described(
        {
            "name": "saturated",
            "backend": "sim",
            "topology": {"name": "field", "nodes": 25, "area": f"{side} x {side}", "mobility": mobility},
            "routing": {"protocol": "olsr", "metric": "etx"},
            "query": {"name": "synthetic_chain", "operators": 2, "rate": "30 fps", "payload": "10 kB"},
            "replicas": replicas,
            "placement": {"policy": "random"},
            "switching": {"policy": "shortest_path"},
            "warmup": 0,
            "duration": virtual_s,
            "seed": seed,
        }
    )
    planned = plan_run(experiment).run
    assert planned is not None
    with TemporaryDirectory(prefix="rove-speed-") as folder:
        directory = Path(folder)
        simulation = Simulation(planned, "saturated", directory)
        simulation.up()
        simulation.converge()
        started = time.process_time()
        simulation.open_sources()
        simulation.advance(virtual_s * NS)
        spent = time.process_time() - started
        simulation.stop()
        sent, arrived = (_recorded(directory, kind) for kind in (b"tuple_emitted", b"tuple_delivered"))
    return {
        "what": f"query k={replicas}",
        "nodes": 25,
        "virtual_s": virtual_s,
        "cpu_s": spent,
        "times_real_time": virtual_s / spent,
        "target": QUERY_TARGET,
        "sent": sent,
        "arrived_ratio": arrived / sent,
    }


def _recorded(directory: Path, kind: bytes) -> int:
    return sum(
        segment.read_bytes().count(b'"' + kind + b'"') for segment in directory.glob("nodes/*/segments/*")
    )


def measure() -> tuple[Row, list[Row]]:
    look_for_garbage_rarely()
    rows = [_best(simulate, nodes, virtual_s) for nodes, virtual_s in SIZES.items()]
    queries = [_best(saturated_query, replicas, QUERY_S) for replicas in REPLICAS]
    return {
        "benchmark": "sim_speed",
        "times_real_time": rows[0]["times_real_time"],
        "query_times_real_time": min(row["times_real_time"] for row in queries),
    }, rows + queries


def _best(simulated: Callable[[int, int, int], Row], size: int, virtual_s: int) -> Row:
    rounds = (simulated(size, virtual_s, 1) for _ in range(ROUNDS))
    return max(rounds, key=lambda row: row["times_real_time"])


if __name__ == "__main__":
    main("Virtual time with the 802.11b radio on one core", measure)
