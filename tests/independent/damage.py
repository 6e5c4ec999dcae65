"""Lets nodes lie, and damages their files: what is done to a run is counted in ``World.told``."""

import json
from collections.abc import Callable
from typing import Any

from tests.independent.believing import read_line
from tests.independent.world import NODES, World

Record = dict[str, Any]


def lie(world: World) -> None:
    """Has some node record what it cannot know, what nobody knows, or what never was."""
    random = world.random
    queries = {name: app["plan"] for name, app in world.apps.items() if app["kind"] == "query"}
    for _ in range(random.choice((0, 0, 3))):
        t_ns = world.zero_ns + random.randrange(world.end_ns - world.zero_ns)
        node = random.choice(NODES)
        # A kind of another version is counted, no more. Without a name it is of the application ``query``.
        if world.happens(t_ns, node, "", "weather", sunny=True) and "query" not in world.apps:
            world.told.refused += 1
        if world.happens(t_ns + 1, node, "nobody", "queue", replica="x/0", queue="input", length=1):
            world.told.refused += 1
        if not queries:
            continue
        app, plan = random.choice(sorted(queries.items()))
        replica = random.choice(plan["replicas"])
        name, home = f"{replica['operator']}/{replica['index']}", replica["node"]
        stranger = random.choice([other for other in NODES if other != home])
        told = {"replica": name, "origin": "elsewhere/0", "tau": 1, "size": 1}
        for who in (stranger, home):  # the plan puts the replica elsewhere; no such stream passes there
            if world.happens(t_ns + 2, who, app, "tuple_emitted", **told):
                world.told.refused += 1
        if replica is plan["replicas"][-1]:
            origin = plan["query"]["operators"][0]["name"] + "/0"
            unfounded = {"replica": name, "origin": origin, "tau": 10**6 + random.randrange(99), "size": 7}
            if _passes(plan, origin, replica["operator"]):
                born_ns = world.shown(home, t_ns - 10**7)
                world.happens(t_ns, home, app, "tuple_delivered", **unfounded, born_ns=born_ns)


def _passes(plan: dict[str, Any], origin: str, sink: str) -> bool:
    """Says whether the stream reaches the sink without a window or join on the way."""
    operators = {each["name"]: each for each in plan["query"]["operators"]}
    frontier = [origin.partition("/")[0]]
    while frontier:
        name = frontier.pop()
        if name == sink:
            return True
        if operators[name]["takes"]["type"] == "each":
            frontier += [other for other, each in operators.items() if name in each["after"]]
    return False


def damaged(world: World) -> dict[tuple[str, int], list[bytes]]:
    """Returns the lines of each boot, some of them twice, missing, or broken."""
    random, told = world.random, world.told
    found: dict[tuple[str, int], list[bytes]] = {}
    much = random.choice((0.0, 0.0, 0.01, 0.05))
    for key, records in world.lines().items():
        told.records += len(records)
        lines: list[bytes] = []
        for place, record in enumerate(records):
            line = json.dumps(record, separators=(",", ":")).encode()
            chance = random.random()
            inside = 0 < place < len(records) - 1
            if chance < much and inside:
                told.removed += 1
            elif chance < 2 * much:
                lines.append(random.choice(BREAKS)(record, line) + b"\n")
                told.corrupt += 1
            elif chance < 3 * much:
                lines += [line + b"\n"] * 2
                told.duplicates += 1
            else:
                lines.append(line + b"\n")
        if records[-1]["kind"] != "agent_stop" and random.random() < 0.5:
            torn = lines[-1][: random.randint(1, len(lines[-1]) - 2)]  # by the crash
            told.corrupt += read_line(lines[-1], key[1]) is not None
            lines[-1] = torn
        found[key] = lines
    return found


def _changed(**fields: Any) -> Callable[[Record, bytes], bytes]:
    return lambda record, line: json.dumps({**record, **fields}).encode()


def _without(name: str) -> Callable[[Record, bytes], bytes]:
    return lambda record, line: json.dumps({k: v for k, v in record.items() if k != name}).encode()


BREAKS: tuple[Callable[[Record, bytes], bytes], ...] = (
    lambda record, line: line[: len(line) // 2],
    lambda record, line: b"\x00\xff" + line,
    lambda record, line: b"[1, 2]",
    _without("kind"),
    _without("seq"),
    _without("node"),
    _changed(boot=77),
    _changed(seq=-1),
    _changed(t_ns="soon"),
    _changed(t_ns=2**63),
    _changed(tau=-5),
    _changed(tuples=0),
    lambda record, line: json.dumps({**record, "sizes": [1] * (record.get("tuples", 1) + 1)}).encode(),
)
