"""What a terminal shows of a run: a few figures and the way of each stream, from changes; pure.

watch = Watch(live.head)
watch.take(live.poll())
watch.summary().apps[0].goodput
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from orchestrator.live.state import State
from orchestrator.runs import latency_buckets
from orchestrator.runs.timeline import Change

RECENT = 5
"""Rates and latencies are of so many seconds, the last ones that are over."""
LATE_S = 0.5
"""What was counted in a second is said so long after its end."""
LEAST_SETTLED = 10
LEAST_S = 10.0
"""No loss is shown before so many tuples were delivered or lost, or so much time has passed: drops are known
at once, deliveries only when they have happened."""
MOST_PATHS = 6
MOST_FOLLOWED = 100
_FINE = ("ok", "ended")
_FLOWING = ("warm-up", "measure")


class Switch(Struct, frozen=True):
    """The last change of replica of a stream."""

    t: float
    replica: str
    old: str | None
    new: str | None
    why: str


class Stop(Struct, frozen=True):
    """A replica that a stream passes; or, if ``replica`` is None, the operator that it has no way to.

    ``state``: of its node, if that is not ok. ``others``: how many more replicas share the stream.
    """

    replica: str | None
    node: str = ""
    state: str = ""
    others: int = 0
    operator: str = ""


class AppSummary(Struct, frozen=True):
    """Goodput in tuples/s (of flows: bit/s), latency in seconds (of flows: mean delay). None: not known.

    ``loss``, ``delivered`` and ``waiting`` are those of the channel ``total``; a loss that means little yet
    is None. ``more_paths``: how many are not in ``paths``. ``ended``: flows that have sent everything.
    ``detections``: of events; None where there are no patterns. Of these, ``late`` came later than promised,
    and ``worst`` is the largest delay in seconds; ``waiting`` counts messages for neighbours. ``situations``:
    around moving objects; None where there are no such queries. ``moves``: switches of their interests.
    """

    name: str
    kind: str
    goodput: float | None = None
    offered: float | None = None
    p50: float | None = None
    p95: float | None = None
    loss: float | None = None
    delivered: int = 0
    waiting: int = 0
    paths: tuple[tuple[Stop, ...], ...] = ()
    more_paths: int = 0
    switch: Switch | None = None
    flows: int = 0
    ended: int = 0
    detections: int | None = None
    late: int = 0
    worst: float | None = None
    situations: int | None = None
    moves: int = 0


class Summary(Struct, frozen=True):
    now: float
    phase: str
    state: str
    progress: float | None
    apps: tuple[AppSummary, ...]
    troubles: dict[str, tuple[str, str]]
    doubts: tuple[str, ...]
    verdict: str
    last_event: str
    died: bool = False
    """The run's process is gone, and nobody judged the run."""


class Watch:
    """Takes changes and remembers what a summary needs besides the latest state."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.state = State()
        self._head = head
        self._rates: dict[tuple[str, str, str], deque[Change]] = {}
        self._switches: dict[str, dict[str, Change]] = {}
        self._ended: set[tuple[str, str]] = set()
        """Flows that have sent everything."""
        self._begun: dict[str, float] = {}
        """When the first totals of an application were said."""
        self._until = math.inf
        """When measuring ended, or the run died."""

    def know(self, head: Mapping[str, Any]) -> None:
        """Takes the head again: more of it is known once the run is planned and measures."""
        self._head = head

    def take(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        self.state.take(changes)
        for change in changes:
            if change.channel in ("rate", "latency") and change.value is not None:
                key = (change.app, change.channel, change.key)
                self._rates.setdefault(key, deque(maxlen=4 * RECENT)).append(change)
            elif change.channel == "flow":
                mark = self._ended.add if change.value is None else self._ended.discard
                mark((change.app, change.key))
            elif change.channel == "total":
                self._begun.setdefault(change.app, change.t)
            elif change.channel == "phase" and change.value["phase"] == "measure":
                self._until = change.t if change.value["state"] == "finished" else math.inf
            elif change.channel == "verdict" and change.value.get("died"):
                self._until = min(self._until, change.t)
            elif change.channel == "route" and change.value and change.value["switch"]:
                self._switches.setdefault(change.app, {})[change.key] = change

    def summary(self) -> Summary:
        state = self.state
        phase = (state.last("phase") or Change(0.0, "", "phase", "", {})).value
        verdict = (state.last("verdict") or Change(0.0, "", "verdict", "", {})).value
        event = state.last("event")
        troubles = {
            node: (str(value["state"]), str(value["why"]))
            for node, value in sorted(state.of("node").items())
            if value["state"] not in _FINE
        }
        return Summary(
            now=state.now,
            phase=str(phase.get("phase", "")),
            state=str(phase.get("state", "")),
            progress=self._progress(str(phase.get("phase", ""))),
            apps=tuple(self._app(app, troubles) for app in self._head.get("apps", ())),
            troubles=troubles,
            doubts=tuple(verdict.get("so_far") or verdict.get("reasons") or ()),
            verdict=str(verdict.get("verdict", "")),
            last_event=str(event.value["text"]) if event is not None else "",
            died=bool(verdict.get("died")),
        )

    def _progress(self, phase: str) -> float | None:
        """Returns how much of the phase is over, if its length is known."""
        window, now = self._head.get("measure"), self.state.now
        duration = float(self._head.get("duration_s") or 0.0)
        begun = self.state.last("phase")
        if phase == "measure" and window and duration > 0:
            return min(1.0, max(0.0, (now - float(window[0])) / duration))
        warmup = float(self._head.get("warmup_s") or 0.0)
        if phase == "warm-up" and begun is not None and warmup > 0:
            return min(1.0, max(0.0, (now - begun.t) / warmup))
        return None

    def _app(self, app: Mapping[str, Any], troubles: Mapping[str, tuple[str, str]]) -> AppSummary:
        name, view = app["name"], app["view"]
        if "flows" in view:
            return self._flows(name, app["kind"], view["flows"])
        if "patterns" in view:
            return self._detections(name, app["kind"])
        if "situations" in view:
            return self._situations(name, app["kind"])
        if "operators" not in view:
            return AppSummary(name, app["kind"])
        total = (self.state.last("total", "", name) or Change(0.0, "", "", "", {})).value
        sinks = _replicas(view, "sink")
        p50, p95 = self._latency(name, sinks)
        paths = tuple(self._paths(name, view, troubles))
        return AppSummary(
            name=name,
            kind=app["kind"],
            goodput=self._mean(name, sinks, "out"),
            offered=self._mean(name, _replicas(view, "source"), "in"),
            p50=p50,
            p95=p95,
            loss=None if self._is_early(name, total) else total.get("loss"),
            delivered=total.get("delivered", 0),
            waiting=total.get("waiting", 0),
            paths=paths[:MOST_PATHS],
            more_paths=max(0, len(paths) - MOST_PATHS),
            switch=self._switch(name, paths),
        )

    def _is_early(self, app: str, total: Mapping[str, Any]) -> bool:
        """Whether streams have just begun, or what is measured of them, and little is known of tuples."""
        phase = self.state.last("phase")
        if phase is None or phase.value["state"] != "started" or phase.value["phase"] not in _FLOWING:
            return False
        begun = phase.t if phase.value["phase"] == "measure" else self._begun.get(app, 0.0)
        settled = total.get("delivered", 0) + total.get("lost", 0)
        return bool(settled < LEAST_SETTLED and self.state.now - begun < LEAST_S)

    def _over(self) -> int:
        """Returns how many seconds of the run are over, and what was counted in them is known.

        Those after the measured time do not count: streams stop then.
        """
        over = math.floor(self.state.now - LATE_S + 1e-6)
        return over if self._until == math.inf else min(over, math.floor(self._until))

    def _recent(self, app: str, channel: str, key: str) -> list[Change]:
        over = self._over()
        known = self._rates.get((app, channel, key), ())
        return [change for change in known if over - RECENT < math.floor(change.t) <= over]

    def _mean(self, app: str, replicas: Sequence[str], what: str) -> float | None:
        """Returns how many a second; a replica says nothing in seconds in which it does nothing."""
        seconds = min(RECENT, self._over())
        if self.state.last("total", "", app) is None or seconds < 1:
            return None
        found = (change for replica in replicas for change in self._recent(app, "rate", replica))
        return float(sum(change.value[what] for change in found)) / seconds

    def _latency(self, app: str, sinks: Sequence[str]) -> tuple[float | None, float | None]:
        """Returns percentiles of everything that was delivered lately, at all sinks together."""
        counts = latency_buckets.added(
            change.value.get("buckets", ()) for sink in sinks for change in self._recent(app, "latency", sink)
        )
        return latency_buckets.percentile(counts, 50), latency_buckets.percentile(counts, 95)

    def _switch(self, app: str, paths: Sequence[Sequence[Stop]]) -> Switch | None:
        """Returns the last switch of a replica that a stream passes now; if there was none, of any."""
        known = self._switches.get(app, {})
        passed = {stop.replica for path in paths for stop in path}
        found = [change for change in known.values() if change.key.rpartition(">")[0] in passed]
        change = max(found or known.values(), key=lambda change: change.t, default=None)
        if change is None:
            return None
        value = change.value
        return Switch(change.t, change.key.rpartition(">")[0], value["old"], value["to"], value["why"])

    def _paths(
        self, app: str, view: Mapping[str, Any], troubles: Mapping[str, tuple[str, str]]
    ) -> Iterator[tuple[Stop, ...]]:
        """Follows the routes from each source to each sink; at most ``MOST_FOLLOWED`` ways."""
        nodes = {replica["id"]: replica["node"] for replica in view["replicas"]}
        after: dict[str, list[str]] = {}
        for before, name in view["edges"]:
            after.setdefault(before, []).append(name)
        routes = self.state.of("route", app)

        def follow(replica: str, passed: tuple[Stop, ...]) -> Iterator[tuple[Stop, ...]]:
            node = nodes.get(replica, "")
            passed = (*passed, Stop(replica, node, troubles.get(node, ("", ""))[0]))
            outputs = after.get(replica.rpartition("/")[0], [])
            if not outputs or len(passed) >= len(view["operators"]):
                yield passed
                return
            for output in outputs:
                to = (routes.get(f"{replica}>{output}") or {}).get("to")
                if to:
                    yield from follow(to, passed)
                else:
                    yield (*passed, Stop(None, operator=output))

        every = (path for source in _replicas(view, "source") for path in follow(source, ()))
        return islice(every, MOST_FOLLOWED)

    def _detections(self, name: str, kind: str) -> AppSummary:
        found = [value for value in self.state.of("detection", name).values() if value]
        delays = [value["worst"] for value in found if value["worst"] is not None]
        return AppSummary(
            name=name,
            kind=kind,
            waiting=sum(v["waiting"] for v in self.state.of("carried", name).values() if v),
            detections=sum(value["count"] for value in found),
            late=sum(value["late"] for value in found),
            worst=max(delays, default=None),
        )

    def _situations(self, name: str, kind: str) -> AppSummary:
        found = [value for value in self.state.of("situation", name).values() if value]
        return AppSummary(
            name=name,
            kind=kind,
            waiting=sum(v["waiting"] for v in self.state.of("served", name).values() if v),
            worst=max((value["worst"] for value in found), default=None),
            situations=sum(value["count"] for value in found),
            moves=sum(value["epoch"] for value in self.state.of("region", name).values() if value),
        )

    def _flows(self, name: str, kind: str, flows: Sequence[Mapping[str, Any]]) -> AppSummary:
        values = [v for v in (self.state.of("flow", name).get(flow["name"]) for flow in flows) if v]
        lost = [v["lost"] for v in values if v["lost"] is not None]
        delays = [v["delay"] for v in values if v["delay"] is not None]
        return AppSummary(
            name=name,
            kind=kind,
            goodput=sum(v["received"] for v in values) if values else None,
            offered=sum(v["sent"] for v in values) if values else None,
            p50=sum(delays) / len(delays) if delays else None,
            loss=sum(lost) / len(lost) if lost else None,
            flows=len(flows),
            ended=sum(1 for flow in flows if (name, flow["name"]) in self._ended),
        )


def _replicas(view: Mapping[str, Any], role: str) -> list[str]:
    names = {operator["name"] for operator in view["operators"] if operator["role"] == role}
    return [replica["id"] for replica in view["replicas"] if replica["operator"] in names]
