"""Writes the directory of one random run: applications, crashes and restarts, clocks, ground truth, damage.

Everything happens in the orchestrator's time; nodes write it down by their own clocks. What the files are
damaged by is counted in ``Told``.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

S = 1_000_000_000
NODES = ("a", "b", "c", "d", "e", "f")
KILLED = "killed by a fault"
EPOCH_NS = 1_790_000_000 * S
WARMUP_S, AFTER_S = 3, 2
WINDOWS_S = (14.0, 14.0, 14.0, 9.7, 14.4, 75.0)


class Outage(NamedTuple):
    """The agent of ``node`` does not run from ``from_ns`` to ``until_ns``."""

    node: str
    from_ns: int
    until_ns: int


class Clock(NamedTuple):
    """Ahead of the orchestrator's by ``ahead_ns`` when the run begins, and by ``ppm`` millionths of the time
    since.
    """

    ahead_ns: int = 0
    ppm: float = 0.0

    def ahead(self, since_ns: int) -> int:
        return self.ahead_ns + round(since_ns * self.ppm / 1e6)


@dataclass
class Happening:
    t_ns: int
    node: str
    app: str
    kind: str
    fields: dict[str, Any]
    times: dict[str, int] = field(default_factory=dict)
    """Fields with times of this node's clock, in the orchestrator's time."""


@dataclass
class Told:
    """What was done to the files of a run."""

    records: int = 0
    corrupt: int = 0
    refused: int = 0
    duplicates: int = 0
    removed: int = 0


class World:
    """One run in the making."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"independent/{seed}")
        self.seed = seed
        self.run = f"20260301-{120000 + seed:06d}-{seed:04x}"
        self.real = self.random.random() < 0.5
        self.zero_ns = EPOCH_NS + self.random.randrange(S) if self.real else 0
        self.from_ns = self.zero_ns + WARMUP_S * S
        self.until_ns = self.from_ns + round(self.random.choice(WINDOWS_S) * S)
        self.end_ns = self.until_ns + AFTER_S * S
        self.clocks = {node: self._clock() for node in NODES}
        self.outages = self._outages()
        self.apps: dict[str, dict[str, Any]] = {}
        self.told = Told()
        self._happened: list[Happening] = []
        for node in NODES:
            for begin, _ in self.boots(node):
                start: dict[str, Any] = {
                    "version": "0.1.0",
                    "clock": "real" if self.real else "virtual",
                    "replicas": [],
                }
                self.happens(begin, node, "", "agent_start", **start)

    def _clock(self) -> Clock:
        if not self.real or self.random.random() < 0.2:
            return Clock()
        return Clock(self.random.randint(-3 * S, 3 * S), self.random.uniform(-40, 40))

    def _outages(self) -> list[Outage]:
        found = []
        for node in self.random.sample(NODES, self.random.choice((0, 0, 1, 2))):
            begin = self.from_ns + self.random.randrange(self.until_ns - self.from_ns)
            found.append(Outage(node, begin, begin + self.random.randrange(S, 4 * S)))
        return found

    @property
    def seconds(self) -> int:
        """How many whole seconds the run lasts."""
        return (self.end_ns - self.zero_ns) // S

    def boots(self, node: str) -> list[tuple[int, int]]:
        """Returns from when to when each boot of the node's agent ran."""
        cuts = [(each.from_ns, each.until_ns) for each in self.outages if each.node == node]
        begins = [self.zero_ns, *(until for _, until in cuts if until < self.end_ns)]
        ends = [*(begin for begin, _ in cuts), self.end_ns]
        return list(zip(begins, ends[: len(begins)], strict=True))

    def is_up(self, node: str, t_ns: int) -> bool:
        return any(begin <= t_ns < end for begin, end in self.boots(node))

    def happens(self, t_ns: int, node: str, app: str, kind: str, /, **fields: Any) -> bool:
        """Has the node record it, if its agent runs then. Returns whether it does."""
        times = fields.pop("times", {})
        if not self.is_up(node, t_ns):
            return False
        self._happened.append(Happening(t_ns, node, app, kind, fields, times))
        return True

    def shown(self, node: str, t_ns: int) -> int:
        """Returns what the node's clock shows."""
        return t_ns + self.clocks[node].ahead(t_ns - self.zero_ns)

    def lines(self) -> dict[tuple[str, int], list[dict[str, Any]]]:
        """Returns the records of each boot, in order."""
        found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        happened = sorted(self._happened, key=lambda each: each.t_ns)
        for node in NODES:
            for boot, (begin, end) in enumerate(self.boots(node), start=1):
                own = [each for each in happened if each.node == node and begin <= each.t_ns < end]
                if end == self.end_ns:
                    own.append(Happening(end, node, "", "agent_stop", {"reason": "end of run"}))
                elif not self.real:
                    own.append(Happening(end, node, "", "agent_stop", {"reason": KILLED}))
                found[node, boot] = [self._line(each, boot, seq) for seq, each in enumerate(own)]
        return found

    def _line(self, each: Happening, boot: int, seq: int) -> dict[str, Any]:
        node = each.node
        times = {name: self.shown(node, t_ns) for name, t_ns in each.times.items()}
        envelope = {"run": self.run, "node": node, "boot": boot, "app": each.app, "seq": seq}
        kind = {"t_ns": self.shown(node, each.t_ns), "kind": each.kind}
        return {**envelope, **kind, **each.fields, **times}

    def write(self, root: Path, lines: dict[tuple[str, int], list[bytes]]) -> Path:
        directory = root / "independent" / self.run
        for (node, boot), texts in lines.items():
            segments = directory / "nodes" / node / "segments"
            segments.mkdir(parents=True, exist_ok=True)
            cut = self.random.randrange(len(texts) + 1)
            for index, part in enumerate(filter(None, (texts[:cut], texts[cut:])), start=1):
                (segments / f"b{boot:04d}-s{index:06d}.jsonl").write_bytes(b"".join(part))
        (directory / "manifest.json").write_text(json.dumps(self._manifest()))
        (directory / "verdict.json").write_text(json.dumps({"verdict": "valid", "reasons": []}))
        (directory / "spec.yaml").write_text("name: independent\n")
        (directory / "journal.jsonl").write_text("")
        return directory

    def _manifest(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "experiment": "independent",
            "invocation": self.run,
            "factors": {},
            "seed": self.seed,
            "clock": "real" if self.real else "virtual",
            "measure_from_ns": self.from_ns,
            "measure_until_ns": self.until_ns,
            "started": "2026-03-01T12:00:00+00:00",
            "finished": "2026-03-01T12:00:30+00:00",
            "versions": {"rove": "0.1.0"},
            "apps": self.apps,
            **({"clocks": {node: self._measured(node) for node in NODES}} if self.real else {}),
        }

    def _measured(self, node: str) -> dict[str, Any]:
        """Returns a clock as it was measured: exactly each 6 s, and once by a slow answer that is far off."""
        samples = []
        for at_ns in range(self.zero_ns - S, self.end_ns + 6 * S, 6 * S):
            offset_ns = self.shown(node, at_ns) - at_ns
            samples.append({"at_ns": at_ns, "offset_ns": offset_ns, "uncertainty_ns": 2000})
        slow_ns = self.zero_ns + 8 * S + 1234
        wrong_ns = self.shown(node, slow_ns) - slow_ns + self.random.randint(-15, 15) * 1_000_000
        samples.append({"at_ns": slow_ns, "offset_ns": wrong_ns, "uncertainty_ns": 16_000_000})
        samples.sort(key=lambda sample: sample["at_ns"])
        return {"samples": samples, "measured": ["before", "during", "after"], "missed": {}}
