"""Adds to a world what concerns no application: routing daemons' counters, ground truth, faults' events."""

import json
from pathlib import Path

from tests.independent.world import NODES, S, World


def fill(world: World) -> None:
    """Has agents record what their routing daemons sent; a daemon that is started anew counts from 0."""
    for node in NODES:
        counted = dict.fromkeys(("HELLO", "TC", "costs"), (0, 0))
        boots = world.boots(node)
        for t_ns in range(world.zero_ns + world.random.randrange(S), world.end_ns, 5 * S):
            if any(begin <= t_ns - 5 * S < begin + 5 * S for begin, _ in boots[1:]):
                counted = dict.fromkeys(counted, (0, 0))
            for place, (message, (own, others)) in enumerate(counted.items()):
                own += world.random.randrange(400)
                others += world.random.randrange(300) if message == "TC" else 0
                counted[message] = own, others
                told = {"sent": own // 40, "sent_bytes": own, "forwarded": 0, "forwarded_bytes": others}
                protocol = "exchange" if message == "costs" else "olsr"
                world.happens(
                    t_ns + place, node, "", "routing_overhead", protocol=protocol, message=message, **told
                )


def write(world: World, directory: Path) -> None:
    """Writes ground truth, which a run on real nodes does not have, and the events of faults."""
    events = [
        {"kind": "fault", "action": action, "node": each.node, "t_ns": t_ns}
        for each in world.outages
        for action, t_ns in (("crash", each.from_ns), ("restart", each.until_ns))
    ]
    (directory / "events.jsonl").write_text(_lines(events))
    if world.random.random() < 0.25:
        return
    radio, random = directory / "radio", world.random
    radio.mkdir()
    pairs = [(a, b) for a in NODES for b in NODES if a != b]
    up = set(random.sample(pairs, 12))
    links = [_link(world.zero_ns, *pair, True, 1.0) for pair in sorted(up)]
    for tenth in range(1, 180):
        pair = random.choice(pairs)
        is_up = random.random() < 0.6
        if is_up or pair in up:  # a change of cost, too, is a line
            (up.add if is_up else up.discard)(pair)
            cost = random.choice((1.0, 1.5, 4.0)) if is_up else None
            links.append(_link(world.zero_ns + tenth * S // 10, *pair, is_up, cost))
    (radio / "links.jsonl").write_text(_lines(links))
    positions = [
        {"t_ns": world.zero_ns + second * S, "node": node, "x": random.uniform(0, 99), "y": 2.5}
        for second in range(18)
        for node in NODES
    ]
    (radio / "positions.jsonl").write_text(_lines(positions))
    deliveries = [
        {"t_ns": world.zero_ns + second * S, "src": "a", "dst": "b", "attempted": 9, "delivered": 4}
        | {"expected": 0.5, "snr_db": 7.5}
        for second in range(random.randrange(9))
    ]
    (radio / "deliveries.jsonl").write_text(_lines(deliveries))


def _link(t_ns: int, src: str, dst: str, up: bool, cost: float | None) -> dict[str, object]:
    return {"t_ns": t_ns, "src": src, "dst": dst, "up": up, "cost": cost}


def _lines(entries: list[dict[str, object]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)
