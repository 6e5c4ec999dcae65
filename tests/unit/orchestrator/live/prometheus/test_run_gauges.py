"""What the orchestrator reports on a run follows from the run's changes."""

import msgspec
import pytest

from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow, Each, TimeWindow, UnitRule
from orchestrator.host_load.judgement import Limits
from orchestrator.live.facts import RunFacts
from orchestrator.live.metrics import RUN, metrics
from orchestrator.live.prometheus.checking import checked
from orchestrator.live.prometheus.run_gauges import RunGauges
from orchestrator.runs.manifest import RecordedApp
from orchestrator.runs.timeline import Change

pytestmark = pytest.mark.unit

Values = dict[tuple[str, tuple[str, ...]], float]


LIMITS = Limits(waited=0.7, late_ms=40.0)


def values(*changes: Change, facts: RunFacts = RunFacts(limits=LIMITS)) -> Values:  # noqa: B008
    gauges = RunGauges(facts)
    gauges.take(changes)
    samples = list(gauges.samples())
    assert checked(samples, metrics()) == (samples, 0)
    assert {metrics()[sample.name].reporter for sample in samples} == {RUN}
    return {(sample.name, sample.labels): sample.value for sample in samples}


def change(channel: str, key: str, value: object, t: float = 1.0) -> Change:
    return Change(t, "", channel, key, value)


def test_of_a_run_that_has_just_begun_nothing_is_made_up() -> None:
    assert values() == {
        ("rove_run_info", ("real",)): 1,
        ("rove_run_time_seconds", ()): 0,
        ("rove_clock_bound_seconds", ()): 0.02,
        ("rove_host_delay_limit_seconds", ()): 0.001,
        ("rove_host_late_limit_seconds", ()): 0.04,
        ("rove_faults_injected_total", ()): 0,
        ("rove_run_doubts", ()): 0,
    }


def test_the_phase_that_was_started_last_is_shown_until_it_ends() -> None:
    started = change("phase", "", {"phase": "measure", "state": "started"})
    ended = change("phase", "", {"phase": "measure", "state": "finished", "outcome": "ok"})
    assert values(started)["rove_run_phase", ("measure",)] == 1
    assert not [key for key in values(started, ended) if key[0] == "rove_run_phase"]
    odd = change("phase", "", {"phase": "sleep", "state": "started"})
    assert not [key for key in values(odd) if key[0] == "rove_run_phase"]


def test_doubts_are_counted_before_and_after_the_verdict() -> None:
    assert values(change("verdict", "", {"so_far": ["late", "off"]}))["rove_run_doubts", ()] == 2
    judged = values(change("verdict", "", {"verdict": "invalid", "reasons": ["late"]}))
    assert judged["rove_run_verdict", ("invalid",)] == 1
    assert judged["rove_run_doubts", ()] == 1


def test_a_node_is_up_only_if_it_is_ok() -> None:
    found = values(
        change("node", "a", {"state": "ok", "why": ""}),
        change("node", "b", {"state": "crashed", "why": "by a fault"}),
        change("node", "c", {"state": "dreaming", "why": ""}),
    )
    assert found["rove_node_up", ("a",)] == 1
    assert found["rove_node_up", ("b",)] == 0
    assert found["rove_node_state", ("b", "crashed")] == 1
    assert ("rove_node_up", ("c",)) not in found


def test_units_are_base_units() -> None:
    found = values(
        change("clock", "a", {"offset_ms": -1500.0, "uncertainty_ms": 0.5}),
        change("radio", "", {"late_ratio": 0.25, "p99_us": 120.0}),
        change("host", "", {"waited": 0.4, "late_ms": 3.0}),
        change("host", "pi", {"waited": None, "late_ms": float("nan")}),
    )
    assert found["rove_clock_offset_seconds", ("a",)] == -1.5
    assert found["rove_clock_uncertainty_seconds", ("a",)] == 0.0005
    assert found["rove_radio_late_ratio", ()] == 0.25
    assert found["rove_radio_lateness_p99_seconds", ()] == pytest.approx(120e-6)
    assert found["rove_host_waited_ratio", ("",)] == 0.4
    assert found["rove_host_late_seconds", ("",)] == 0.003
    assert ("rove_host_waited_ratio", ("pi",)) not in found
    assert ("rove_host_late_seconds", ("pi",)) not in found


def test_the_age_of_a_node_is_how_far_its_records_are_behind() -> None:
    record = {"records": 10, "bytes": 2000, "refused": 1, "boot": 2, "of_boot": 4}
    found = values(change("record", "a", record, 10.0), change("record", "b", record, 25.0))
    assert found["rove_node_age_seconds", ("a",)] == 15
    assert found["rove_node_age_seconds", ("b",)] == 0
    assert found["rove_records_read_total", ("a",)] == 10
    assert found["rove_records_read_bytes_total", ("a",)] == 2000
    assert found["rove_records_refused_total", ("a",)] == 1
    assert (found["rove_boot_read", ("a",)], found["rove_boot_records_read_total", ("a",)]) == (2, 4)


def test_each_machine_has_the_limit_for_what_is_known_of_it() -> None:
    found = values(
        change("host", "", {"waited": 0.4, "late_ms": 3.0}),
        change("host", "pi", {"waited": 0.4, "late_ms": 3.0, "probe": True}),
        change("host", "emulator", {"delay_ms": 0.4, "late_ms": 3.0}),
    )
    assert found["rove_host_delay_seconds", ("emulator",)] == pytest.approx(0.0004)
    assert found["rove_host_delay_limit_seconds", ()] == pytest.approx(0.001)
    assert ("rove_host_waited_limit_ratio", ("emulator",)) not in found
    assert found["rove_host_waited_limit_ratio", ("",)] == 0.7
    assert found["rove_host_waited_limit_ratio", ("pi",)] == pytest.approx(0.8)


def test_frames_of_the_radio_are_totals_by_node() -> None:
    found = values(change("frames", "a", {"attempted": 9, "delivered": 7}))
    assert found["rove_radio_frames_attempted_total", ("a",)] == 9
    assert found["rove_radio_frames_delivered_total", ("a",)] == 7


def windowed(*rules: UnitRule) -> dict[str, RecordedApp]:
    names = ("camera", "a", "b")
    operators = tuple(
        OperatorSpec(name, "work", (names[index - 1],) if index else (), takes=rule)
        for index, (name, rule) in enumerate(zip(names, rules, strict=False))
    )
    plan = DeploymentPlan(Query("q", operators), tuple(Replica(o.name, 0, "n1") for o in operators))
    return {"query": RecordedApp("query", "query", {"kind": "query", "plan": msgspec.to_builtins(plan)})}


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        ((Each(), Each()), 0.0),
        ((Each(), TimeWindow(30 * 10**9, 10 * 10**9)), 30.0),
        ((Each(), TimeWindow(2 * 10**9, 10**9), TimeWindow(10**9, 10 * 10**9)), 12.0),
        ((Each(), CountWindow(10, 10)), 300.0),
    ],
)
def test_it_is_said_how_long_a_query_gathers_tuples(rules: tuple[UnitRule, ...], seconds: float) -> None:
    found = values(facts=RunFacts(limits=LIMITS, apps=windowed(*rules)))
    assert found["rove_query_windows_seconds", ("query",)] == seconds


def test_faults_are_counted() -> None:
    fault = change("event", "", {"kind": "fault", "text": "fault: crash a", "level": "warn"})
    other = change("event", "", {"kind": "phase", "text": "measure …", "level": "info"})
    assert values(fault, other, fault)["rove_faults_injected_total", ()] == 2
