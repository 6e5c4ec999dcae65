"""Adds to a world what concerns no application: routing daemons' counters, ground truth, faults' events."""

import json
from pathlib import Path

from tests.independent.world import NODES, S, World

AIR_FAULTS = {
    "silence": "unsilence",
    "partition": "heal",
    "cut": "mend",
    "degrade": "recover",
    "move": "release",
}


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
    (directory / "events.jsonl").write_text(_lines(_faults(world)))
    if world.random.random() < 0.25:
        return
    radio, random = directory / "radio", world.random
    radio.mkdir()
    pairs = [(a, b) for a in NODES for b in NODES if a != b]
    up = set(random.sample(pairs, 12))
    links = [_link(world.zero_ns, *pair, True, 1.0) for pair in sorted(up)]
    for tenth in range(1, 10 * (world.seconds - 1)):
        pair = random.choice(pairs)
        is_up = random.random() < 0.6
        if is_up or pair in up:  # a change of cost, too, is a line
            (up.add if is_up else up.discard)(pair)
            cost = random.choice((1.0, 1.5, 4.0)) if is_up else None
            links.append(_link(world.zero_ns + tenth * S // 10, *pair, is_up, cost))
    (radio / "links.jsonl").write_text(_lines(links))
    positions = [
        {"t_ns": world.zero_ns + second * S, "node": node, "x": random.uniform(0, 99), "y": 2.5}
        for second in range(world.seconds - 1)
        for node in NODES
    ]
    (radio / "positions.jsonl").write_text(_lines(positions))
    deliveries = [
        {"t_ns": world.zero_ns + second * S, "src": "a", "dst": "b", "attempted": 9, "delivered": 4}
        | {"expected": 0.5, "snr_db": 7.5}
        for second in range(random.randrange(9))
    ]
    (radio / "deliveries.jsonl").write_text(_lines(deliveries))
    if random.random() < 0.8:  # older runs have none
        (radio / "airtime.jsonl").write_text(_lines(_airtime(world)))


def _airtime(world: World) -> list[dict[str, object]]:
    """Returns how long each node sent in each second; seconds need not begin with the window."""
    random, begin = world.random, world.zero_ns + world.random.choice((0, 0, 300_000_000))
    busy = random.choice((S // 100, S // 4, S))
    return [
        {"t_ns": begin + second * S, "node": node, "sent_ns": random.randrange(1, busy)}
        for second in range(1, world.seconds)
        for node in NODES
        if random.random() < 0.7
    ]


def _faults(world: World) -> list[dict[str, object]]:
    """Returns the events of crashes, and of faults in the air, which some runs had besides."""
    random, many = world.random, world.random.choice((0, 0, 1, 3))
    actions = [
        (t_ns, action, each.node)
        for each in world.outages
        for action, t_ns in (("crash", each.from_ns), ("restart", each.until_ns))
        if t_ns < world.end_ns
    ]
    for _ in range(many):
        begin, end = random.choice(tuple(AIR_FAULTS.items()))
        t_ns = random.randrange(world.zero_ns, world.end_ns)
        whom = random.choice(("a", "a, b", "a–b"))
        actions.append((t_ns, begin, whom))
        if (until_ns := t_ns + random.randrange(8 * S)) < world.end_ns:
            actions.append((until_ns, end, whom))
    called = random.choice(("action", "deed"))  # the second in older runs
    faults = [
        {"kind": "fault", called: action, "node": node, "t_ns": t_ns}
        for t_ns, action, node in sorted(actions)
    ]
    return [{"kind": "phase", "phase": "measure"}, *faults, {"kind": "fault_missed", "action": "crash"}]


def _link(t_ns: int, src: str, dst: str, up: bool, cost: float | None) -> dict[str, object]:
    return {"t_ns": t_ns, "src": src, "dst": dst, "up": up, "cost": cost}


def _lines(entries: list[dict[str, object]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)
