"""Recomputes from ground truth how busy the air was around each node, and what its radio needed."""

from math import ceil
from typing import Any

from tests.independent.reading import Run
from tests.independent.world import S

MOST_SLICES = 60
SENDING_W, HEARING_W, IDLE_W = 1.4, 0.9, 0.75
NAMES = (
    *("airtime_sent_ratio", "airtime_near_ratio", "airtime_near_max_ratio"),
    *("radio_energy_j", "radio_energy_active_j"),
)


def metrics_of(run: Run) -> dict[str, Any]:
    samples, links = run.truth("airtime"), run.truth("links")
    if samples is None or links is None:
        return dict.fromkeys(NAMES)
    nodes = sorted({boot.node for boot in run.boots})
    length_ns = run.until_ns - run.from_ns
    width = S * ceil(length_ns / S / MOST_SLICES)
    sent, near = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0)
    for begin in range(run.from_ns, run.until_ns, width):
        end = min(begin + width, run.until_ns)
        own = dict.fromkeys(nodes, 0)
        for each in samples:
            if begin < each["t_ns"] <= end:
                own[each["node"]] += each["sent_ns"]
        own = {node: min(time, end - begin) for node, time in own.items()}
        heard = _senders(links, (begin + end) // 2)
        for node in nodes:
            sent[node] += own[node]
            near[node] += min(end - begin, own[node] + sum(own[src] for src in heard.get(node, ())))
    energy = [
        SENDING_W * sent[node] + HEARING_W * (near[node] - sent[node]) + IDLE_W * (length_ns - near[node])
        for node in nodes
    ]
    return {
        "airtime_sent_ratio": sum(sent.values()) / len(nodes) / length_ns,
        "airtime_near_ratio": sum(near.values()) / len(nodes) / length_ns,
        "airtime_near_max_ratio": max(near.values()) / length_ns,
        "radio_energy_j": sum(energy) / 1e9,
        "radio_energy_active_j": (sum(energy) - IDLE_W * length_ns * len(nodes)) / 1e9,
    }


def _senders(links: list[dict[str, Any]], t_ns: int) -> dict[str, set[str]]:
    """Returns whom each node hears at that time."""
    found: dict[str, set[str]] = {}
    for each in sorted(links, key=lambda link: link["t_ns"]):
        if each["t_ns"] <= t_ns:
            senders = found.setdefault(each["dst"], set())
            (senders.add if each["up"] else senders.discard)(each["src"])
    return found
