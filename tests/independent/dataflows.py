"""Adds a random query to a world: sends tuples through it, and tells what their nodes record."""

from typing import Any

from tests.independent.world import NODES, S, World

EACH = {"type": "each"}
SHAPES: tuple[dict[str, tuple[tuple[str, ...], dict[str, Any]]], ...] = (
    # By operator: its inputs, and what it takes at once.
    {"camera": ((), EACH), "op": (("camera",), EACH), "screen": (("op",), EACH)},
    {"left": ((), EACH), "right": ((), EACH), "any": (("left", "right"), EACH), "screen": (("any",), EACH)},
    {
        "left": ((), EACH),
        "right": ((), EACH),
        "both": (("left", "right"), {"type": "tau"}),
        "screen": (("both",), EACH),
    },
    {
        "camera": ((), EACH),
        "op": (("camera",), EACH),
        "few": (("op",), {"type": "count", "size": 3, "slide": 3}),
        "one": (("op",), EACH),
        "other": (("few",), EACH),
    },
    {
        "camera": ((), EACH),
        "up": (("camera",), EACH),
        "down": (("camera",), EACH),
        "screen": (("up", "down"), EACH),
    },
    {
        "camera": ((), EACH),
        "op": (("camera",), EACH),
        "one": (("op",), EACH),
        "other": (("op", "camera"), EACH),
    },
)
LOSSES = ("expired", "retention_full", "too_large", "dead_letter:ValueError: no face: 3")


class Dataflow:
    def __init__(self, world: World, app: str) -> None:
        self.world, self.app, self.random = world, app, world.random
        self.shape = self.random.choice(SHAPES)
        self.nodes: dict[str, list[str]] = {}
        for name, (after, _) in self.shape.items():
            is_end = not after or not self.downstream(name)
            count = 1 if is_end else self.random.randint(1, 3)
            self.nodes[name] = self.random.sample(NODES, count)
        self._windows: dict[str, list[tuple[int, int, int]]] = {}
        self._made: dict[str, int] = {}
        world.apps[app] = {"kind": "query", "plan": self._plan()}

    def downstream(self, name: str) -> list[str]:
        return [other for other, (after, _) in self.shape.items() if name in after]

    def _plan(self) -> dict[str, Any]:
        operators = [
            {"name": name, "kind": "work", "after": list(after), "takes": takes}
            for name, (after, takes) in self.shape.items()
        ]
        replicas = [
            {"operator": name, "index": index, "node": node}
            for name, nodes in self.nodes.items()
            for index, node in enumerate(nodes)
        ]
        return {"query": {"name": self.app, "operators": operators}, "replicas": replicas}

    def fill(self) -> None:
        for name, (after, _) in self.shape.items():
            if not after:
                self._source(name)
            self._decisions(name)

    def _source(self, name: str) -> None:
        node, replica, tau = self.nodes[name][0], f"{name}/0", 1
        t_ns = self.world.zero_ns + self.random.randrange(S, 3 * S)
        while t_ns < self.world.end_ns:
            many = self.random.choice((1, 1, 1, 1, 2, 4))
            sizes = [self.random.choice((100, 100, 250)) for _ in range(many)]
            taus = range(tau, tau + many)
            tau += many
            births = [self.world.shown(node, t_ns) - self.random.randrange(900_000) for _ in taus]
            if self.tuples(t_ns, node, "tuple_emitted", replica, replica, taus, sizes):
                if self.random.random() < 0.06:
                    toward = self.random.choice((None, *self.downstream(name)))
                    for one, size in zip(taus, sizes, strict=True):
                        self.drop(t_ns, node, replica, replica, one, size, "source_buffer_full", toward)
                    if toward is None:
                        t_ns += S // 3
                        continue
                self.forward(t_ns, name, 0, replica, taus, sizes, births)
            t_ns += self.random.randrange(S // 3, 3 * S // 2)

    def tuples(
        self,
        t_ns: int,
        node: str,
        kind: str,
        replica: str,
        origin: str,
        taus: range,
        sizes: list[int],
        **more: Any,
    ) -> bool:
        fields = {"replica": replica, "origin": origin, "tau": taus[0], "size": sum(sizes), **more}
        if len(taus) > 1:
            fields["tuples"] = len(taus)
            if len(set(sizes)) > 1:
                fields["sizes"] = sizes
        return self.world.happens(t_ns, node, self.app, kind, **fields)

    def drop(
        self,
        t_ns: int,
        node: str,
        replica: str,
        origin: str,
        tau: int,
        size: int,
        reason: str,
        to: str | None,
    ) -> None:
        one = range(tau, tau + 1)
        self.tuples(t_ns, node, "tuple_dropped", replica, origin, one, [size], reason=reason, downstream=to)

    def forward(
        self, t_ns: int, name: str, index: int, origin: str, taus: range, sizes: list[int], births: list[int]
    ) -> None:
        """Sends tuples on to every operator downstream."""
        if len(taus) > 1 and self.random.random() < 0.4:
            for place, tau in enumerate(taus):
                one = range(tau, tau + 1)
                self.forward(t_ns + place, name, index, origin, one, [sizes[place]], [births[place]])
            return
        node, replica = self.nodes[name][index], f"{name}/{index}"
        for other in self.downstream(name):
            to = self.random.randrange(len(self.nodes[other]))
            at_ns = t_ns + self.random.randrange(S // 50)
            chance = self.random.random()
            if chance < 0.04:
                reason = self.random.choice(LOSSES)
                self.drop(at_ns, node, replica, origin, taus[0], sizes[0], reason, other)
                continue
            sent = self.tuples(at_ns, node, "tuple_sent", replica, origin, taus, sizes, to=f"{other}/{to}")
            if chance < 0.12 or not sent:
                continue  # it is lost on the way, or its sender was killed before
            if chance < 0.18:
                for tau, size in zip(taus, sizes, strict=True):
                    self.drop(at_ns + 1, node, replica, origin, tau, size, "link_failed", other)
                if chance < 0.15:
                    continue
            arrival_ns = (
                at_ns + self.random.choice((S // 100, S // 10, S, 3 * S)) + self.random.randrange(S // 9)
            )
            self.receive(arrival_ns, replica, other, to, origin, taus, sizes, births)
            if chance > 0.95:  # a second copy, by another way
                again = self.random.randrange(len(self.nodes[other]))
                again_ns = arrival_ns + self.random.randrange(S)
                self.tuples(
                    at_ns + 2, node, "tuple_sent", replica, origin, taus, sizes, to=f"{other}/{again}"
                )
                self.receive(again_ns, replica, other, again, origin, taus, sizes, births)

    def receive(
        self,
        t_ns: int,
        sender: str,
        name: str,
        index: int,
        origin: str,
        taus: range,
        sizes: list[int],
        births: list[int],
    ) -> None:
        node, replica = self.nodes[name][index], f"{name}/{index}"
        if not self.tuples(t_ns, node, "tuple_received", replica, origin, taus, sizes, sender=sender):
            return
        t_ns += self.random.randrange(S // 20)
        if not self.downstream(name):
            if self.random.random() < 0.07:
                for tau, size in zip(taus, sizes, strict=True):
                    self.drop(t_ns, node, replica, origin, tau, size, "filtered", None)
                return
            late = {"births": [birth - births[0] for birth in births]} if len(births) > 1 else {}
            self.tuples(
                t_ns, node, "tuple_delivered", replica, origin, taus, sizes, born_ns=births[0], **late
            )
            return
        if self.random.random() < 0.03:
            return  # it is held there until the end
        took_ns = self.random.randrange(10**6)
        if not self.tuples(t_ns, node, "tuple_processed", replica, origin, taus, sizes, took_ns=took_ns):
            return
        if self.shape[name][1] is EACH:
            shrunk = [size // 2 for size in sizes]
            self.forward(t_ns, name, index, origin, taus, shrunk, births)
        else:
            self._absorb(t_ns, name, index, origin, taus, sizes, births)

    def _absorb(
        self, t_ns: int, name: str, index: int, origin: str, taus: range, sizes: list[int], births: list[int]
    ) -> None:
        """Makes a new tuple of every three that a window or join took."""
        node, replica = self.nodes[name][index], f"{name}/{index}"
        waiting = self._windows.setdefault(replica, [])
        for tau, size, birth in zip(taus, sizes, births, strict=True):
            reason = "incomplete_window" if self.random.random() < 0.05 else "absorbed"
            self.drop(t_ns, node, replica, origin, tau, size, reason, None)
            waiting.append((t_ns, size, birth))
        # Another source may have filled in already what comes later.
        taken = [each for each in waiting if each[0] <= t_ns]
        if len(taken) >= 3 and self.world.is_up(node, t_ns):
            made = self._made[name] = self._made.get(name, 0) + 1
            size, born = sum(size for _, size, _ in taken), max(birth for _, _, birth in taken)
            waiting[:] = [each for each in waiting if each[0] > t_ns]
            one = range(made, made + 1)
            took_ns = self.random.randrange(10**6)
            self.tuples(t_ns, node, "tuple_processed", replica, name, one, [size], took_ns=took_ns)
            self.tuples(t_ns, node, "tuple_emitted", replica, name, one, [size])
            self.forward(t_ns, name, index, name, one, [size], [born])

    def _decisions(self, name: str) -> None:
        """Has replicas switch between downstream replicas, see costs, and meet what they cannot use."""
        for index, node in enumerate(self.nodes[name]):
            replica = f"{name}/{index}"
            for other in self.downstream(name):
                choices: list[str | None] = [None, *(f"{other}/{n}" for n in range(len(self.nodes[other])))]
                used: str | None = None
                t_ns = self.world.zero_ns + self.random.randrange(1, 9 * S)
                while self.random.random() < 0.8 and t_ns < self.world.end_ns:
                    new = self.random.choice([choice for choice in choices if choice != used])
                    costs = {"old_cost": 2.5 if used else None, "new_cost": 1.5 if new else None}
                    self.world.happens(
                        t_ns,
                        node,
                        self.app,
                        "route_switch",
                        **{"replica": replica, "downstream": other, "old": used, "new": new, **costs},
                        source="olsr",
                    )
                    used = new
                    t_ns += self.random.randrange(S // 10, 6 * S)
                metric = self.random.choice(("etx", "etx", "hops", "log_delivery"))
                for second in range(0, self.world.seconds, self.random.randint(2, 6)):
                    cost = self.random.choice((None, 1.5, 3.25))
                    at_ns = self.world.zero_ns + second * S + self.random.choice((17, 456_000_000))
                    to = f"{other}/{self.random.randrange(len(self.nodes[other]))}"
                    told = {"replica": replica, "to": to, "cost": cost, "metric": metric}
                    self.world.happens(at_ns, node, self.app, "link_cost", **told, source="olsr")
            for count in range(1, self.random.choice((1, 1, 2, 4))):
                at_ns = self.world.zero_ns + count * S + self.random.randrange(S)
                reason = self.random.choice(("bad_image: 1", "bad_image: two", "lost_camera"))
                told = {"replica": replica, "reason": reason, "count": count}
                self.world.happens(at_ns, node, self.app, "operator_fault", **told)
            told = {"replica": replica, "queue": "input", "length": 2}
            self.world.happens(self.world.zero_ns + S, node, self.app, "queue", **told)
