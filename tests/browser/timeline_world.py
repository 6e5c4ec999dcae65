"""A run that looks real, made from a seed: what the live page shows where no run is at hand.

Nodes move by random waypoint, links follow their distances, a query switches to the cheapest way with the
reasons that `rove explain` gives, a crash stops a node for a while.

    head, changes = make_world(World(nodes=25, seconds=90))
"""

import heapq
import itertools
import math
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from orchestrator.runs.timeline import VERSION, Change

RANGE_M = 380.0
OPERATORS = ("camera", "detect", "recognise", "screen")
SETUP_S = 4.0


class World(NamedTuple):
    """``updates``: positions and links a second. ``crash_at``: when the node of a replica in use crashes."""

    nodes: int = 25
    seconds: float = 90.0
    seed: int = 4
    updates: float = 1.0
    replicas: int = 3
    area: float = 1200.0
    crash_at: float = 40.0
    crash_for: float = 15.0
    positions: bool = True
    flows: bool = False
    run: str = "quickstart-20261117-120000"


class _Node:
    def __init__(self, random: Random, area: float) -> None:
        self._random, self._area = random, area
        self.x, self.y = random.uniform(0, area), random.uniform(0, area)
        self._choose()

    def _choose(self) -> None:
        self._to = self._random.uniform(0, self._area), self._random.uniform(0, self._area)
        self._speed = self._random.uniform(4, 11)

    def move(self, seconds: float) -> None:
        dx, dy = self._to[0] - self.x, self._to[1] - self.y
        distance = math.hypot(dx, dy)
        step = self._speed * seconds
        if distance <= step:
            self._choose()
            return
        self.x += dx / distance * step
        self.y += dy / distance * step


def make_world(world: World) -> tuple[dict[str, Any], list[Change]]:
    return _head(world), sorted(_Maker(world).changes(), key=lambda change: change.t)


def node_names(world: World) -> list[str]:
    return [f"n{number:02d}" for number in range(1, world.nodes + 1)]


def _replicas(world: World) -> list[dict[str, str]]:
    random = Random(world.seed)
    counts = {"camera": 1, "detect": world.replicas, "recognise": world.replicas, "screen": 1}
    names = random.sample(node_names(world), sum(counts.values()))
    return [
        {"id": f"{operator}/{index}", "operator": operator, "node": names.pop()}
        for operator in OPERATORS
        for index in range(counts[operator])
    ]


def _head(world: World) -> dict[str, Any]:
    roles = {"camera": "source", "screen": "sink"}
    view = {
        "operators": [{"name": name, "role": roles.get(name, "operator")} for name in OPERATORS],
        "edges": [list(pair) for pair in itertools.pairwise(OPERATORS)],
        "replicas": _replicas(world),
        "pictures": True,
    }
    apps: list[dict[str, Any]] = [{"name": "face_recognition", "kind": "query", "view": view}]
    if world.flows:
        flows = [
            {"name": "background", "from": "n01", "to": "n05", "protocol": "udp"},
            {"name": "copy", "from": "n02", "to": "n06", "protocol": "tcp"},
        ]
        apps.append({"name": "traffic", "kind": "flows", "view": {"flows": flows}})
    return {
        "version": VERSION,
        "run": world.run,
        "experiment": "quickstart",
        "backend": "netns",
        "virtual": False,
        "seed": world.seed,
        "factors": {"replicas": world.replicas},
        "nodes": node_names(world),
        "area": [world.area, world.area] if world.positions else None,
        "started": "2026-11-17T12:00:00+00:00",
        "warmup_s": 10.0,
        "duration_s": world.seconds - SETUP_S - 14,
        "measure": [SETUP_S + 10, world.seconds - 4],
        "apps": apps,
        "links": "truth",
    }


class _Maker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(world.seed + 1)
        self._names = node_names(world)
        self._nodes = {name: _Node(self._random, world.area) for name in self._names}
        self._replicas = _replicas(world)
        self._node_of = {each["id"]: each["node"] for each in self._replicas}
        self._etx: dict[tuple[str, str], float] = {}
        self._links: dict[str, float] = {}
        self._routes: dict[str, str | None] = {}
        self._down: str | None = None
        self._totals = {"offered": 0, "delivered": 0, "lost": 0}
        self._frame = 0

    def changes(self) -> Iterator[Change]:
        world = self._world
        yield from self._phases()
        step = 1 / world.updates
        ticks = round(world.seconds * world.updates)
        for tick in range(ticks + 1):
            t = round(tick * step, 3)
            for node in self._nodes.values():
                node.move(step)
            yield from self._radio(t)
            if SETUP_S <= t <= world.seconds - 2:
                yield from self._faults(t)
                if tick % max(1, round(2 * world.updates)) == 0:
                    yield from self._decide(t)
                if tick % max(1, round(world.updates)) == 0:
                    yield from self._second(t)

    def _phases(self) -> Iterator[Change]:
        end = self._world.seconds
        times = {"up": (0, 1.5), "converge": (1.5, SETUP_S), "warm-up": (SETUP_S, SETUP_S + 10)}
        times |= {"measure": (SETUP_S + 10, end - 4), "collect": (end - 4, end - 1)}
        for phase, (begin, until) in times.items():
            yield Change(begin, "", "phase", "", {"phase": phase, "state": "started"})
            finished = {"phase": phase, "state": "finished", "outcome": "ok"}
            yield Change(until, "", "phase", "", finished)
            yield Change(
                begin, "", "event", "", {"kind": "phase", "text": f"{phase} started", "level": "info"}
            )
        for name in self._names:
            yield Change(1.5, "", "node", name, {"state": "ok", "why": ""})
            yield Change(end - 2, "", "node", name, {"state": "ended", "why": ""})
        yield Change(2.0, "", "verdict", "", {"so_far": []})
        yield Change(end, "", "verdict", "", {"verdict": "valid", "reasons": []})

    def _radio(self, t: float) -> Iterator[Change]:
        world = self._world
        for name, node in self._nodes.items():
            if world.positions:
                yield Change(t, "", "position", name, [round(node.x, 1), round(node.y, 1)])
        self._etx.clear()
        for a in self._names:
            for b in self._names:
                if a == b:
                    continue
                key = f"{a}>{b}"
                first, second = self._nodes[a], self._nodes[b]
                distance = math.hypot(first.x - second.x, first.y - second.y)
                if distance > RANGE_M or self._down in (a, b):
                    if self._links.pop(key, None) is not None:
                        yield Change(t, "", "link", key, None)
                        yield Change(t, "", "signal", key, None)
                    continue
                etx = round(1 + 3.5 * (distance / RANGE_M) ** 5, 2)
                self._etx[a, b] = etx
                if abs(self._links.get(key, 0) - etx) > 0.02:
                    self._links[key] = etx
                    yield Change(t, "", "link", key, {"etx": etx})
                    yield Change(t, "", "signal", key, {"snr": round(34 - 30 * distance / RANGE_M, 1)})

    def _faults(self, t: float) -> Iterator[Change]:
        world = self._world
        if self._down is None and world.crash_at <= t < world.crash_at + world.crash_for:
            using = self._routes.get("camera/0>detect") or "detect/0"
            self._down = self._node_of[using]
            why = "the fault crash killed its agent"
            text = f"fault: crash {self._down} ({using}) for {world.crash_for:g} s"
            yield Change(t, "", "event", "", {"kind": "fault", "text": text, "level": "warn"})
            yield Change(t, "", "node", self._down, {"state": "crashed", "why": why})
            doubt = f"{self._down} has sent no records since {t:.1f} s"
            yield Change(t + 2, "", "verdict", "", {"so_far": [doubt]})
        elif self._down is not None and t >= world.crash_at + world.crash_for:
            text = f"fault over: {self._down} is started again"
            yield Change(t, "", "event", "", {"kind": "fault", "text": text, "level": "info"})
            yield Change(t, "", "node", self._down, {"state": "ok", "why": "started again"})
            yield Change(t + 1, "", "verdict", "", {"so_far": []})
            self._down = None

    def _costs_from(self, node: str) -> dict[str, float]:
        costs = {node: 0.0}
        heap = [(0.0, node)]
        neighbours: dict[str, list[tuple[str, float]]] = {}
        for (a, b), etx in self._etx.items():
            neighbours.setdefault(a, []).append((b, etx))
        while heap:
            cost, at = heapq.heappop(heap)
            if cost > costs[at]:
                continue
            for to, etx in neighbours.get(at, ()):
                if cost + etx < costs.get(to, math.inf):
                    costs[to] = cost + etx
                    heapq.heappush(heap, (cost + etx, to))
        return costs

    def _decide(self, t: float) -> Iterator[Change]:
        to_sink = {"screen/0": 0.0}
        chosen: list[Change] = []
        for operator, downstream in reversed(list(itertools.pairwise(OPERATORS))):
            for replica in (each for each in self._replicas if each["operator"] == operator):
                costs = self._costs_from(replica["node"])
                candidates: list[dict[str, Any]] = []
                for other in (each["id"] for each in self._replicas if each["operator"] == downstream):
                    link = costs.get(self._node_of[other])
                    usable = link is not None and other in to_sink and self._node_of[other] != self._down
                    path = link + to_sink[other] if usable and link is not None else None
                    candidates.append({"to": other, "link": link, "path": path})
                change = self._choose(t, replica["id"], downstream, candidates)
                best = min((each["path"] for each in candidates if each["path"] is not None), default=None)
                if best is not None:
                    to_sink[replica["id"]] = best
                if change and replica["node"] != self._down:
                    chosen.append(change)
        yield from chosen

    def _choose(self, t: float, replica: str, downstream: str, candidates: list[Any]) -> Change | None:
        key = f"{replica}>{downstream}"
        old = self._routes.get(key)
        paths = {each["to"]: each["path"] for each in candidates if each["path"] is not None}
        costs = [{k: v if v is None or k == "to" else round(v, 2) for k, v in c.items()} for c in candidates]
        best = min(paths, key=lambda to: paths[to], default=None)
        if best is not None and old in paths and paths[old] - paths[best] < 0.4:
            best = old
        if best == old and key in self._routes:
            return None
        self._routes[key] = best
        why = _why(downstream, old, best, paths)
        value = {"to": best, "old": old, "why": why, "switch": old is not None and best != old}
        return Change(t, "face_recognition", "route", key, {**value, "shares": {}, "costs": costs})

    def _path(self) -> list[str]:
        path = ["camera/0"]
        for downstream in OPERATORS[1:]:
            to = self._routes.get(f"{path[-1]}>{downstream}")
            if to is None or self._node_of[to] == self._down:
                break
            path.append(to)
        return path

    def _second(self, t: float) -> Iterator[Change]:
        app, random = "face_recognition", self._random
        path = self._path()
        whole = len(path) == len(OPERATORS)
        for replica in self._replicas:
            on_path = replica["id"] in path
            rate = 8 + random.randint(-1, 1) if on_path else 0
            last = replica["id"] == path[-1] and not whole
            numbers = {
                "in": rate,
                "out": 0 if last else rate,
                "done": 0 if last else rate,
                "dropped": 3 if last else 0,
            }
            yield Change(t, app, "rate", replica["id"], {**numbers, "bytes": rate * 11000})
            waits = random.randint(0, 3) if on_path else 0
            yield Change(
                t, app, "queue", replica["id"], {"in": waits, "out": 24 + random.randint(0, 9) if last else 0}
            )
        self._totals["offered"] += 8
        delivered = 8 if whole else 0
        self._totals["delivered"] += delivered
        self._totals["lost"] += 0 if whole else 3
        dropped = {"queue_full": self._totals["lost"]} if self._totals["lost"] else {}
        due = self._totals["delivered"] + self._totals["lost"]
        figures = {
            "waiting": self._totals["offered"] - due,
            "loss": self._totals["lost"] / due,
            "switches": 0,
        }
        yield Change(t, app, "total", "", {**self._totals, **figures, "dropped": dropped})
        if delivered:
            base = 0.12 + 0.05 * random.random() + (0.2 if random.random() < 0.1 else 0)
            spread = {
                "p50": base,
                "p95": base * (1.5 + random.random()),
                "p99": base * (2.6 + random.random()),
            }
            yield Change(
                t, app, "latency", "screen/0", {"n": delivered, **{k: round(v, 4) for k, v in spread.items()}}
            )
            self._frame += delivered
            yield Change(t, app, "picture", "screen/0", {"file": "latest.jpg", "frame": self._frame})
        if self._world.flows:
            yield from self._flows(t)
        yield Change(t, "", "host", "", {"waited": round(0.04 + 0.03 * random.random(), 3), "late_ms": 0.4})
        yield Change(t, "", "radio", "", {"late_ratio": 0.0004, "p99_us": random.randint(90, 160)})
        for name in self._names:
            if round(t) % 5 == 0:
                offset = round(random.uniform(-0.8, 0.8), 2)
                yield Change(t, "", "clock", name, {"offset_ms": offset, "uncertainty_ms": 0.3})
            if name != self._down:
                records = round(t * 41)
                yield Change(
                    t, "", "record", name, {"records": records, "bytes": records * 180, "refused": 0}
                )

    def _flows(self, t: float) -> Iterator[Change]:
        for name, rate in (("background", 5e5), ("copy", 1.2e6)):
            lost = self._random.random() * 0.04
            received = round(rate * (1 - lost))
            delays = {"delay": 0.02 + 0.01 * self._random.random(), "jitter": 0.003}
            value = {"sent": rate, "received": received, "lost": round(lost, 4), **delays}
            yield Change(t, "traffic", "flow", name, value)


def _why(downstream: str, old: str | None, new: str | None, paths: dict[str, float]) -> str:
    """The words of `rove explain`."""
    if new is None:
        return f"No replica of {downstream} had a way to the sinks: the stream waits for one."
    others = sorted((to for to in paths if to != new), key=lambda to: paths[to])
    following = f"; next was {others[0]} ({paths[others[0]]:.2f})" if others else ""
    best = f"{new} was the cheapest way to the sinks ({paths[new]:.2f}){following}."
    if old is None:
        return best
    if old not in paths:
        return f"{old} did not answer any more; {best}"
    gain = f"{paths[old] - paths[new]:.2f} ({paths[new]:.2f} against {paths[old]:.2f})"
    return f"{new} was cheaper than {old} by {gain}; it had to be by more than 0.40."
