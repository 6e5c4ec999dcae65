"""Run directories whose truth is known, written as agents and orchestrator write them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from node_agent.apps.dataflow.events import (
    LinkCost,
    QueueSample,
    RouteSwitch,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.model.telemetry import AgentStart, AgentStop, Event
from orchestrator.clocks.book import ClockBook, When
from orchestrator.clocks.offsets import Offset

SOURCE, SINK = "source/0", "sink/0"
FROM_S, UNTIL_S, END_S = 10, 110, 112


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


class RunWriter:
    """Collects telemetry and writes the directory of one run."""

    def __init__(self, root: Path, experiment: str, run: str, k: int = 2) -> None:
        self.directory = root / experiment / run
        self.run = run
        self.experiment = experiment
        self.k = k
        self.operators: tuple[OperatorSpec, ...] = (
            OperatorSpec("source", "synthetic_source"),
            OperatorSpec("detect", "synthetic_operator", ("source",)),
            OperatorSpec("sink", "collect", ("detect",)),
        )
        self.sinks: tuple[Replica, ...] = (Replica("sink", 0, "n9"),)
        self.app: str | None = None
        """Who records from now on; None: nobody says, as before there could be several applications."""
        self._lines: dict[tuple[str, int], list[bytes]] = {}
        self._events: list[dict[str, Any]] = []
        self._facts: dict[str, Any] = {}
        self._truth: dict[str, list[dict[str, Any]]] = {
            "links": [],
            "positions": [],
            "deliveries": [],
            "airtime": [],
        }

    def record(self, node: str, t_s: float, event: Event, boot: int = 1) -> None:
        lines = self._lines.setdefault((node, boot), [])
        envelope = {"run": self.run, "node": node, "boot": boot, "seq": len(lines), "t_ns": ns(t_s)}
        if self.app is not None:
            envelope["app"] = self.app
        lines.append(msgspec.json.encode({**envelope, **msgspec.to_builtins(event)}))

    def fault(self, t_s: float, action: str, node: str) -> None:
        self._events.append({"kind": "fault", "action": action, "node": node, "t_ns": ns(t_s)})

    def lines(self, node: str, boot: int = 1) -> list[bytes]:
        """To be damaged at will."""
        return self._lines[node, boot]

    def own_clocks(self, clocks: Mapping[str, tuple[float, float]], error_ns: int) -> None:
        """Retell what was recorded so far by clocks that are so many seconds ahead at 0 and drift by so many
        ppm, and have the manifest say so: measured each 10 s, wrong by up to ``error_ns``.

        Births are those of the source, on n1.
        """

        def ahead_ns(node: str, t_ns: int) -> int:
            start_s, ppm = clocks[node]
            return ns(start_s) + round(t_ns * ppm / 1e6)

        for (node, _), lines in self._lines.items():
            for index, line in enumerate(lines):
                record = json.loads(line)
                for name, whose in (("t_ns", node), ("taken_ns", node), ("born_ns", "n1")):
                    if name in record:
                        record[name] += ahead_ns(whose, record[name])
                lines[index] = msgspec.json.encode(record)
        book = ClockBook()
        for node in clocks:
            for index, t_s in enumerate(range(0, END_S + 10, 10)):
                wrong_ns = error_ns * (-1, 0, 1)[index % 3]
                sample = Offset(ns(t_s), ahead_ns(node, ns(t_s)) + wrong_ns, error_ns)
                book.add(node, sample, When.DURING if 0 < t_s < END_S else When.AFTER if t_s else When.BEFORE)
        self._facts = {"clocks": book.document(), "clock": "real"}

    def in_real_time(self) -> "RunWriter":
        """Has the manifest say so."""
        self._facts["clock"] = "real"
        return self

    def link(self, t_s: float, src: str, dst: str, up: bool) -> None:
        cost = 1.0 if up else None
        self._truth["links"].append({"t_ns": ns(t_s), "src": src, "dst": dst, "up": up, "cost": cost})

    def position(self, t_s: float, node: str, x: float, y: float) -> None:
        self._truth["positions"].append({"t_ns": ns(t_s), "node": node, "x": x, "y": y})

    def delivery(
        self, t_s: float, src: str, dst: str, attempted: int, delivered: int, expected: float
    ) -> None:
        line = {"t_ns": ns(t_s), "src": src, "dst": dst, "attempted": attempted, "delivered": delivered}
        self._truth["deliveries"].append({**line, "expected": expected, "snr_db": 8.0})

    def airtime(self, t_s: float, node: str, sent_s: float) -> None:
        self._truth["airtime"].append({"t_ns": ns(t_s), "node": node, "sent_ns": ns(sent_s)})

    def plan(self) -> DeploymentPlan:
        query = Query("faces", self.operators)
        detectors = (Replica("detect", index, f"n{index + 2}") for index in range(self.k))
        return DeploymentPlan(query, (Replica("source", 0, "n1"), *detectors, *self.sinks))

    def write(
        self,
        factors: dict[str, Any] | None = None,
        seed: int = 1,
        verdict: str | None = "valid",
        reasons: Sequence[str] = (),
    ) -> Path:
        for (node, boot), lines in self._lines.items():
            segments = self.directory / "nodes" / node / "segments"
            segments.mkdir(parents=True, exist_ok=True)
            # In two segments, as after a rotation.
            middle = len(lines) // 2
            for index, part in enumerate((lines[:middle], lines[middle:]), start=1):
                text = b"".join(line + (b"" if line.endswith(b"!") else b"\n") for line in part)
                (segments / f"b{boot:04d}-s{index:06d}.jsonl").write_bytes(text.removesuffix(b"!"))
        radio = self.directory / "radio"
        radio.mkdir(parents=True)
        for name, entries in self._truth.items():
            (radio / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        (self.directory / "spec.yaml").write_text(
            f"name: {self.experiment}\nreplicas: {self.k}\nseed: {seed}\n"
        )
        (self.directory / "journal.jsonl").write_text("")
        if self._events:
            events = "".join(json.dumps(event) + "\n" for event in self._events)
            (self.directory / "events.jsonl").write_text(events)
        manifest = {
            "run": self.run,
            "experiment": self.experiment,
            "invocation": self.run.partition(".")[0],
            "factors": factors or {},
            "seed": seed,
            "clock": "virtual",
            "measure_from_ns": ns(FROM_S),
            "measure_until_ns": ns(UNTIL_S),
            "started": "2026-03-01T12:00:00+00:00",
            "finished": "2026-03-01T12:02:09+00:00",
            "versions": {"rove": "0.1.0", "python": "3.11.2"},
            "plan": msgspec.to_builtins(self.plan()),
            "files": {},
            **self._facts,
        }
        (self.directory / "manifest.json").write_text(json.dumps(manifest))
        if verdict:
            judged = {"verdict": verdict, "reasons": list(reasons), "phases": [], "expectations": []}
            (self.directory / "verdict.json").write_text(json.dumps(judged))
        return self.directory


def known_run(root: Path, experiment: str = "known", run: str = "20260301-120000-aaaa") -> RunWriter:
    """100 tuples born in the window, one a second: 3 lost in transit, 5 dropped, 90 delivered, 2 in flight.

    Latencies are 0.1, 0.2 … 1.0 s in turn; tuples have 1000 bytes at the source and 500 at the sink.
    """
    writer = RunWriter(root, experiment, run)
    writer.sinks = (Replica("sink", 0, "n9"), Replica("sink", 1, "n9"))
    for node, replicas in (("n1", (SOURCE,)), ("n2", ("detect/0",)), ("n3", ("detect/1",)), ("n9", (SINK,))):
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", replicas))
    deliver(writer, tau=1, born_s=9.8, latency_s=0.4)  # in the warm-up, but it arrives in the window
    for index in range(100):
        born_s, tau = FROM_S + index, index + 2
        if index < 3:
            writer.record("n1", born_s, TupleEmitted(SOURCE, SOURCE, tau, 1000))
            writer.record("n1", born_s, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
        elif index < 8:
            writer.record("n1", born_s, TupleEmitted(SOURCE, SOURCE, tau, 1000))
            writer.record("n1", born_s + 0.5, TupleDropped(SOURCE, SOURCE, tau, 1000, "source_buffer_full"))
        elif index < 98:
            deliver(writer, tau, born_s, latency_s=((index - 8) % 10 + 1) / 10)
        elif index == 98:
            writer.record("n1", born_s, TupleEmitted(SOURCE, SOURCE, tau, 1000))
            writer.record("n1", born_s, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
        else:
            writer.record("n1", born_s, TupleEmitted(SOURCE, SOURCE, tau, 1000))
            writer.record("n1", born_s, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
            writer.record("n2", born_s + 0.1, TupleReceived("detect/0", SOURCE, SOURCE, tau, 1000))
    # The tuple with tau 10 arrives a second time.
    writer.record("n9", 60.0, TupleDelivered(SINK, SOURCE, 10, 500, ns(18.0)))
    routes = [
        (1, None, "detect/0"),
        (20, "detect/0", "detect/1"),
        (30, "detect/1", None),
        (33, None, "detect/1"),
        (50, "detect/1", None),
        (52, None, "detect/0"),
        (111, "detect/0", "detect/1"),
    ]
    for t_s, old, new in routes:
        writer.record("n1", t_s, RouteSwitch(SOURCE, "detect", old, new, 1.0, 1.0, "ground_truth"))
    for node, replica in (("n2", "detect/0"), ("n3", "detect/1")):
        writer.record(node, 1, RouteSwitch(replica, "sink", None, SINK, None, 1.0, "ground_truth"))
        writer.record(node, 2, LinkCost(replica, SINK, 2.0, "hops", "ground_truth"))
        writer.record(node, 3, QueueSample(replica, "input", 0))
    # detect/1 never sees a tuple: what it decides moves nothing.
    for t_s, old, new in ((40, SINK, "sink/1"), (41, "sink/1", SINK)):
        writer.record("n3", t_s, RouteSwitch("detect/1", "sink", old, new, 1.0, 1.0, "ground_truth"))
    writer.record("n3", 4, LinkCost("detect/1", SINK, None, "hops", "ground_truth"))
    for node in ("n1", "n2", "n3", "n9"):
        writer.record(node, END_S, AgentStop("stopped"))
    for src, dst in (("n1", "n2"), ("n2", "n9"), ("n1", "n3")):
        writer.link(0, src, dst, up=True)
    writer.link(60, "n2", "n9", up=False)
    writer.link(80, "n2", "n9", up=True)
    writer.delivery(30, "n2", "n9", attempted=10, delivered=9, expected=1.0)
    writer.delivery(59, "n2", "n9", attempted=30, delivered=12, expected=0.6)
    walk(writer)
    return writer


def deliver(
    writer: RunWriter, tau: int, born_s: float, latency_s: float, via: int = 0, size: int = 1000
) -> None:
    detector, node = f"detect/{via}", f"n{via + 2}"
    step = latency_s / 4
    writer.record("n1", born_s, TupleEmitted(SOURCE, SOURCE, tau, size))
    writer.record("n1", born_s, TupleSent(SOURCE, detector, SOURCE, tau, size))
    writer.record(node, born_s + step, TupleReceived(detector, SOURCE, SOURCE, tau, size))
    writer.record(node, born_s + 2 * step, TupleProcessed(detector, SOURCE, tau, size, ns(step)))
    writer.record(node, born_s + 2 * step, TupleSent(detector, SINK, SOURCE, tau, size // 2))
    writer.record("n9", born_s + 3 * step, TupleReceived(SINK, detector, SOURCE, tau, size // 2))
    writer.record("n9", born_s + latency_s, TupleDelivered(SINK, SOURCE, tau, size // 2, ns(born_s)))


def walk(writer: RunWriter) -> None:
    """Every node on a closed path of its own, sampled once a second."""
    for second in range(END_S + 1):
        for index, node in enumerate(("n1", "n2", "n3", "n9")):
            phase = (second * (index + 1)) % 100
            x = 200.0 * index + 2.0 * phase
            writer.position(second, node, x, 100.0 + (phase if phase < 50 else 100 - phase) * 4)


def small_sweep(root: Path, ks: Sequence[int] = (1, 2, 3), seeds: Sequence[int] = (1,)) -> Path:
    """A sweep over k (and seeds): k + seed tuples a second arrive after (1 + seed / 10) / k s."""
    sweep = root / "sweep" / "20260301-130000-bbbb"
    members = []
    for number, (k, seed) in enumerate(((k, seed) for k in ks for seed in seeds), start=1):
        writer = RunWriter(root, "sweep", f"{sweep.name}.{number:02d}", k)
        for node in ("n1", *(f"n{index + 2}" for index in range(k)), "n9"):
            writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
        rate = k + seed
        for index in range(rate * (UNTIL_S - FROM_S)):
            deliver(
                writer, index + 1, FROM_S + index / rate, (1 + seed / 10) / k, via=index // rate // 20 % k
            )
        for turn in range(5 if k > 1 else 0):
            old, new = f"detect/{turn % k}", f"detect/{(turn + 1) % k}"
            switch = RouteSwitch(SOURCE, "detect", old, new, 2.0, 1.0, "ground_truth")
            writer.record("n1", FROM_S + 20 * turn, switch)
        writer.link(0, "n1", "n9", up=True)
        writer.link(20 * seed, "n1", "n9", up=False)
        writer.link(20 * seed + 10, "n1", "n9", up=True)
        for node in ("n1", *(f"n{index + 2}" for index in range(k)), "n9"):
            writer.record(node, END_S, AgentStop("stopped"))
        walk(writer)
        factors = {"replicas": k} | ({"seed": seed} if len(seeds) > 1 else {})
        members.append(writer.write(factors, seed).name)
    sweep.mkdir(parents=True)
    names = ["replicas", *(["seed"] if len(seeds) > 1 else [])]
    document = {"id": sweep.name, "experiment": "sweep", "members": members, "factors": names}
    (sweep / "sweep.json").write_text(json.dumps(document))
    (sweep / "journal.jsonl").write_text("")
    (sweep / "spec.yaml").write_text("name: sweep\nsweep: {replicas: [1, 2, 3]}\n")
    (sweep / "verdict.json").write_text(json.dumps({"verdict": "valid", "reasons": []}))
    return sweep
