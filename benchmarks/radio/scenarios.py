"""Runs the ns-3 reference's scenarios on our medium: saturated pairs, and chains of relays with static
routes.
"""

import random
from collections import deque
from typing import NamedTuple

from orchestrator.radio.airtime import ETHERNET_HEADER
from orchestrator.radio.channel import Position, build_channel
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.station import EVERYONE, Outgoing

UDP_AND_IP = 28
QUEUE = 100
SPACING_M = 200.0


class Outcome(NamedTuple):
    goodput_mbps: float
    failure_probability: float
    """Data transmissions and RTS that were not answered, per data transmission."""


def saturated(
    radio: Radio,
    mac: Mac,
    positions: list[Position],
    flows: dict[int, int],
    payload: int,
    seconds: float,
    seed: int,
) -> Outcome:
    """Runs flows in which each key of ``flows`` always has a frame for its value."""
    size = payload + UDP_AND_IP + ETHERNET_HEADER
    frames = {source: Outgoing(destination, size, None) for source, destination in flows.items()}
    arrived = 0

    def deliver(receiver: int, sender: int, frame: Outgoing) -> None:
        nonlocal arrived
        arrived += 1

    dcf = Dcf(
        build_channel(radio, mac, positions),
        mac,
        random.Random(seed),
        frames.get,
        deliver,
        lambda node, frame: None,
    )
    for source in frames:
        dcf.offer(source, 0)
    dcf.run_until(round(seconds * 1e9))
    return Outcome(arrived * payload * 8 / seconds / 1e6, failure_probability(dcf))


def broadcasting(radio: Radio, mac: Mac, payload: int, seconds: float, seed: int) -> Outcome:
    return saturated(radio, mac, [(0.0, 0.0), (50.0, 0.0)], {0: EVERYONE}, payload, seconds, seed)


def pairs(radio: Radio, mac: Mac, count: int, payload: int, seconds: float, seed: int) -> Outcome:
    """Runs ``count`` senders, each with a receiver of its own, all within 50 m."""
    positions = [(25.0 * index / count, 20.0 * (index % 2)) for index in range(2 * count)]
    flows = {2 * index: 2 * index + 1 for index in range(count)}
    return saturated(radio, mac, positions, flows, payload, seconds, seed)


def hidden_terminals(radio: Radio, mac: Mac, payload: int, seconds: float, seed: int) -> Outcome:
    """Runs A → B ← C, where A and C do not hear each other."""
    positions = [(0.0, 0.0), (SPACING_M, 0.0), (2 * SPACING_M, 0.0)]
    return saturated(radio, mac, positions, {0: 1, 2: 1}, payload, seconds, seed)


def udp_chain(
    radio: Radio, mac: Mac, hops: int, payload: int, seconds: float, seed: int, warmup: float = 5.0
) -> Outcome:
    """Runs a chain: the first node is saturated, every other passes on what it gets."""
    size = payload + UDP_AND_IP + ETHERNET_HEADER
    queues: list[deque[Outgoing]] = [deque() for _ in range(hops + 1)]
    arrived = 0

    def pull(node: int) -> Outgoing | None:
        if node == 0:
            return Outgoing(1, size, None)
        return queues[node].popleft() if queues[node] else None

    def deliver(receiver: int, sender: int, frame: Outgoing) -> None:
        nonlocal arrived
        if receiver == hops:
            arrived += 1
        elif len(queues[receiver]) < QUEUE:
            queues[receiver].append(Outgoing(receiver + 1, size, None))
            dcf.offer(receiver, dcf.now_ns)

    positions = [(SPACING_M * index, 0.0) for index in range(hops + 1)]
    dcf = Dcf(
        build_channel(radio, mac, positions),
        mac,
        random.Random(seed),
        pull,
        deliver,
        lambda node, frame: None,
    )
    dcf.offer(0, 0)
    dcf.run_until(round(warmup * 1e9))
    before = arrived
    dcf.run_until(round((warmup + seconds) * 1e9))
    return Outcome((arrived - before) * payload * 8 / seconds / 1e6, failure_probability(dcf))


def failure_probability(dcf: Dcf) -> float:
    attempts = sum(sum(station.link_attempts) for station in dcf.stations)
    return sum(station.timeouts for station in dcf.stations) / attempts if attempts else 0.0
