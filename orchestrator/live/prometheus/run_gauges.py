"""What the orchestrator reports on a run: made from its changes, as the live page is."""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from node_agent.telemetry.metrics import Sample
from orchestrator.live import metrics as m
from orchestrator.live.facts import RunFacts
from orchestrator.live.prometheus.planned import planned
from orchestrator.live.state import State
from orchestrator.runs.phases import Phase
from orchestrator.runs.timeline import Change
from orchestrator.runs.verdict import Judgement

_FAULT = "fault"


class RunGauges:
    """Takes a run's changes, and tells its present figures, with the limits and windows of ``facts``."""

    def __init__(self, facts: RunFacts) -> None:
        self._clock = "virtual" if facts.virtual else "real"
        self._clock_bound_s = facts.limits.clock_ms / 1e3
        self._limits = facts.limits
        self._windows = planned(facts).windows
        self._state = State()
        self._faults = 0

    def take(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        self._state.take(changes)
        self._faults += sum(
            change.channel == "event" and change.value.get("kind") == _FAULT for change in changes
        )

    def samples(self) -> Iterator[Sample]:
        """Yields nothing that is not known: a figure of a run that has just begun is not 0."""
        state = self._state
        yield Sample(m.RUN_INFO, (self._clock,), 1)
        yield Sample(m.RUN_TIME, (), state.now)
        yield Sample(m.CLOCK_BOUND, (), self._clock_bound_s)
        yield Sample(m.HOST_DELAY_LIMIT, (), self._limits.delay_ms * 1e-3)
        yield Sample(m.HOST_LATE_LIMIT, (), self._limits.late_ms * 1e-3)
        for app, seconds in self._windows.items():
            yield Sample(m.QUERY_WINDOWS, (app,), seconds)
        yield Sample(m.FAULTS_INJECTED, (), self._faults)
        yield from _phase(_value(state, "phase"))
        yield from _verdict(_value(state, "verdict"))
        for node, value in state.of("node").items():
            if value.get("state") in m.NODE_STATES:
                yield Sample(m.NODE_UP, (node,), value["state"] == "ok")
                yield Sample(m.NODE_STATE, (node, value["state"]), 1)
        for node, value in state.of("clock").items():
            yield from _scaled(m.CLOCK_OFFSET, (node,), value, "offset_ms", 1e-3)
            yield from _scaled(m.CLOCK_UNCERTAINTY, (node,), value, "uncertainty_ms", 1e-3)
        radio = _value(state, "radio")
        yield from _scaled(m.RADIO_LATE, (), radio, "late_ratio")
        yield from _scaled(m.RADIO_LATENESS, (), radio, "p99_us", 1e-6)
        for node, value in state.of("frames").items():
            yield from _scaled(m.RADIO_ATTEMPTED, (node,), value, "attempted")
            yield from _scaled(m.RADIO_DELIVERED, (node,), value, "delivered")
        for machine, value in state.of("host").items():
            if "delay_ms" in value:
                yield from _scaled(m.HOST_DELAY, (machine,), value, "delay_ms", 1e-3)
            else:
                limit = self._limits.work if value.get("probe") else self._limits.waited
                yield Sample(m.HOST_WAITED_LIMIT, (machine,), limit)
                yield from _scaled(m.HOST_WAITED, (machine,), value, "waited")
            yield from _scaled(m.HOST_LATE, (machine,), value, "late_ms", 1e-3)
        for change in state.changes("record"):
            own = (change.key,)
            yield Sample(m.NODE_AGE, own, max(0.0, state.now - change.t))
            yield from _scaled(m.RECORDS_READ, own, change.value, "records")
            yield from _scaled(m.BYTES_READ, own, change.value, "bytes")
            yield from _scaled(m.BOOT_READ, own, change.value, "boot")
            yield from _scaled(m.BOOT_RECORDS_READ, own, change.value, "of_boot")
            yield from _scaled(m.RECORDS_REFUSED, own, change.value, "refused")


def _value(state: State, channel: str) -> Mapping[str, Any]:
    last = state.last(channel)
    return last.value if last is not None and isinstance(last.value, dict) else {}


def _phase(value: Mapping[str, Any]) -> Iterator[Sample]:
    phase = value.get("phase")
    if value.get("state") == "started" and phase in tuple(Phase):
        yield Sample(m.RUN_PHASE, (str(phase),), 1)


def _verdict(value: Mapping[str, Any]) -> Iterator[Sample]:
    verdict = value.get("verdict")
    doubts = value.get("reasons" if verdict else "so_far", ())
    yield Sample(m.RUN_DOUBTS, (), len(doubts))
    if verdict in tuple(Judgement):
        yield Sample(m.RUN_VERDICT, (str(verdict),), 1)


def _scaled(
    name: str, labels: tuple[str, ...], values: Mapping[str, Any], key: str, scale: float = 1.0
) -> Iterator[Sample]:
    value = values.get(key)
    if isinstance(value, int | float) and isfinite(value):
        yield Sample(name, labels, value * scale)
