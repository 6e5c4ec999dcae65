"""Compares delivery over distance at the paper's radio setting with EMANE's:
expected, and counted by frames.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.radio.facts import Delivery, emane_delivery
from benchmarks.radio.report import Row, main
from orchestrator.radio.channel import build_channel
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.presets import seed_80211b
from orchestrator.radio.settings import Mac
from orchestrator.radio.station import EVERYONE, Outgoing

FRAMES = 4000


def compare(fact: Delivery, seed: int) -> dict[str, Any]:
    mac = Mac(broadcast_rate=fact.rate_mbps)
    positions = [(0.0, 0.0), (fact.distance_m, 0.0)]
    channel = build_channel(seed_80211b(fact.antenna_height_m), mac, positions)
    expected = channel.delivery("broadcast", 0, 1, fact.frame_bytes)

    def pull(node: int) -> Outgoing:
        return Outgoing(EVERYONE, fact.frame_bytes, None)

    # If nothing or everything arrives, a few frames show it.
    frames = FRAMES if 0.0005 < expected < 0.9995 else FRAMES // 20
    dcf = Dcf(channel, mac, random.Random(seed), pull, lambda *arrived: None, lambda *given_up: None)
    sender = dcf.stations[0]
    dcf.offer(0, 0)
    while sender.broadcasts <= frames:
        dcf.run_until(dcf.next_event_ns())
    return {
        "height_m": fact.antenna_height_m,
        "distance_m": fact.distance_m,
        "rate_mbps": fact.rate_mbps,
        "bytes": fact.frame_bytes,
        "emane": fact.delivery,
        "expected": expected,
        "counted": sender.link_received[1] / frames,
        "error": expected - fact.delivery,
    }


def measure() -> tuple[Mapping[str, Any], Sequence[Row]]:
    rows = [compare(fact, seed) for seed, fact in enumerate(emane_delivery())]
    figures = {
        "max_abs_error": max(abs(row["error"]) for row in rows),
        "max_abs_error_counted": max(abs(row["counted"] - row["emane"]) for row in rows),
        "frames_counted": FRAMES,
    }
    return figures, rows


if __name__ == "__main__":
    main("Delivery against distance, ours and EMANE's", measure)
