"""Adds random flows to a world: what their sources and sinks record each second."""

from typing import Any

from node_agent.apps.flows.delays import bucket_of
from tests.independent.world import NODES, S, World

LISTED = 3
"""Seconds that a record lists, so that the next record makes up for a lost one."""


class Flows:
    def __init__(self, world: World, app: str) -> None:
        self.world, self.app, self.random = world, app, world.random
        ends = [self.random.sample(NODES, 2) for _ in range(self.random.randint(1, 3))]
        # The source of a flow is never crashed.
        safe = [node for node in NODES if node not in {each.node for each in world.outages}]
        self.flows = [(f"flow-{n}", self.random.choice(safe), sink) for n, (_, sink) in enumerate(ends)]
        self.flows = [flow for flow in self.flows if flow[1] != flow[2]] or [("flow-0", *_two(safe))]
        world.apps[app] = {"kind": "flows", "flows": [_planned(*flow) for flow in self.flows]}

    def fill(self) -> None:
        for name, source, sink in self.flows:
            self._flow(name, source, sink)

    def _flow(self, name: str, source: str, sink: str) -> None:
        world, size = self.world, self.random.choice((100, 512))
        opened_ns = world.zero_ns + S
        sent: list[list[int]] = []
        packets: list[tuple[int, int, int]] = []  # second, sent, arrived (orchestrator's time)
        for second in range(world.seconds - 3):
            many = self.random.randint(0, 6)
            begin = opened_ns + second * S
            times = sorted(begin + self.random.randrange(S) for _ in range(many))
            sent.append([second, many, many * size])
            packets += [(second, t, t + self._delay()) for t in times if self.random.random() < 0.8]
            at_ns = begin + S
            total = sum(row[1] for row in sent)
            told: dict[str, Any] = {"packets": total, "bytes": total * size, "skipped": 0}
            told |= {"acknowledged": 0, "connections": 0, "failures": 0, "seconds": sent[-LISTED:]}
            times_told = {"opened_ns": opened_ns, "now_ns": at_ns}
            world.happens(at_ns, source, self.app, "flow_sent", flow=name, times=times_told, **told)
        for begin, end in world.boots(sink):
            self._sink(name, source, sink, size, opened_ns, (begin, end), packets)

    def _delay(self) -> int:
        return self.random.choice((2_000_000, 40_000_000)) + self.random.randrange(30_000_000)

    def _sink(
        self,
        name: str,
        source: str,
        sink: str,
        size: int,
        source_opened_ns: int,
        boot: tuple[int, int],
        packets: list[tuple[int, int, int]],
    ) -> None:
        world = self.world
        opened_ns = max(boot[0], world.zero_ns + S) + self.random.randrange(1000)
        own = [each for each in packets if opened_ns <= each[2] < boot[1]]
        if not own:
            return
        reordered, duplicates = self.random.randrange(3), self.random.randrange(3)
        for at_ns in range(opened_ns + S, min(boot[1], world.end_ns - S), S):
            seen = [each for each in own if each[2] < at_ns]
            if not seen:
                continue
            seconds = sorted({second for second, _, _ in seen})[-LISTED - 1 :]
            heard = [self._heard(source, sink, size, [p for p in seen if p[0] == s]) for s in seconds]
            arrivals: dict[int, int] = {}
            for _, _, arrived_ns in seen:
                second = (arrived_ns - opened_ns) // S
                arrivals[second] = arrivals.get(second, 0) + 1
            arrived = [[second, many, many * size] for second, many in sorted(arrivals.items())]
            told: dict[str, Any] = {
                "source_boot": 1,
                "packets": len(seen),
                "bytes": len(seen) * size,
                "late": 0,
            }
            told |= {"duplicates": duplicates, "reordered": reordered}
            told |= {"heard": heard, "arrived": arrived[-LISTED - 1 :]}
            times = {"opened_ns": opened_ns, "now_ns": at_ns}
            world.happens(at_ns, sink, self.app, "flow_received", flow=name, times=times, **told)

    def _heard(self, source: str, sink: str, size: int, packets: list[tuple[int, int, int]]) -> list[int]:
        """Returns the row of one second: delays are differences of two clocks, to the first of them."""
        shown = self.world.shown
        delays = [shown(sink, arrived) - shown(source, sent) for _, sent, arrived in packets]
        base = delays[0]
        apart = [delay - base for delay in delays]
        counts: dict[int, int] = {}
        for each in apart:
            counts[bucket_of(each)] = counts.get(bucket_of(each), 0) + 1
        jitter_ns = 1_000_000 + packets[0][0]
        fixed = [packets[0][0], len(packets), len(packets) * size, jitter_ns, base, sum(apart)]
        pairs = [value for pair in sorted(counts.items()) for value in pair]
        return [*fixed, min(apart), max(apart), *pairs]


def _two(nodes: list[str]) -> tuple[str, str]:
    return nodes[0], nodes[1]


def _planned(name: str, source: str, sink: str) -> dict[str, Any]:
    return {
        "name": name,
        "source": source,
        "sink": sink,
        "protocol": "udp",
        "size": 512,
        "rate": 8000.0,
        "seed": name,
    }
