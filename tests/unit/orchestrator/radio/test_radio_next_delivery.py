import random
from collections import deque

import pytest

from orchestrator.radio.channel import build_channel
from orchestrator.radio.contention import NEVER
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.presets import ns3_range
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import EVERYONE, Outgoing


@pytest.mark.parametrize("mac", [Mac(), Mac(rts_from_bytes=400)])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_delivered_before_the_moment_announced(mac: Mac, seed: int) -> None:
    """A driver sleeps until then, and carries out all that lies before at once."""
    rng = random.Random(seed)
    count = 8
    queues: list[deque[Outgoing]] = [deque() for _ in range(count)]
    delivered: list[int] = []

    def pull(node: int) -> Outgoing | None:
        return queues[node].popleft() if queues[node] else None

    def deliver(receiver: int, sender: int, frame: Outgoing) -> None:
        delivered.append(dcf.now_ns)

    positions = [(rng.uniform(0, 500), rng.uniform(0, 200)) for _ in range(count)]
    channel = build_channel(ns3_range(), mac, positions)
    dcf = Dcf(channel, mac, random.Random(seed), pull, deliver, lambda node, frame: None)
    now = 0
    for _ in range(400):
        now += rng.randrange(1, 2_000_000)
        while dcf.now_ns < now:
            announced = dcf.next_delivery_ns()
            before = len(delivered)
            dcf.run_until(min(announced - 1, now))
            assert len(delivered) == before
            if announced <= now:
                dcf.run_until(announced)
        node = rng.randrange(count)
        destination = rng.choice([EVERYONE, *(other for other in range(count) if other != node)])
        queues[node].append(Outgoing(destination, rng.randrange(60, 1514), None))
        dcf.offer(node, now)
    assert len(delivered) > 100


def test_an_idle_medium_announces_nothing() -> None:
    channel = build_channel(ns3_range(), Mac(), [(0.0, 0.0), (50.0, 0.0)])
    nothing = Dcf(channel, Mac(), random.Random(1), lambda node: None, lambda *_: None, lambda *_: None)
    assert nothing.next_delivery_ns() == NEVER
