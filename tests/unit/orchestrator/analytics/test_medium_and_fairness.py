"""The use of the medium, the radios' energy, and fairness, from numbers worked out by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.analytics.core.airtime import RadioPower, Use, figures, in_slice, slice_ns
from orchestrator.analytics.core.fairness import FAIRNESS, jain
from orchestrator.results.inputs import read_run
from orchestrator.results.spark import Subject
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import RunWriter


def test_a_node_hears_those_that_reach_it_and_no_more_than_the_time_there_is() -> None:
    own = {"a": 60, "b": 10, "c": 70}
    found = in_slice(own, {"a": {"b"}, "c": {"b"}}, {"a", "b", "c", "d"}, 100)
    assert found == {"a": Use(60, 0), "b": Use(10, 90), "c": Use(70, 0), "d": Use(0, 0)}
    # Samples may be a little off the slice.
    assert in_slice({"a": 120}, {}, {"a"}, 100) == {"a": Use(100, 0)}


def test_energy_is_power_times_time() -> None:
    uses = [Use(10**9, 2 * 10**9), Use(0, 0)]
    found = figures(uses, 10 * 10**9, RadioPower(send=3.0, receive=2.0, idle=1.0))
    # One radio: 1 s at 3 W, 2 s at 2 W, 7 s at 1 W; the other 10 s at 1 W.
    assert found["radio_energy_j"] == 24.0 and found["radio_energy_active_j"] == 4.0
    assert (found["airtime_sent_ratio"], found["airtime_near_ratio"]) == (0.05, 0.15)
    assert found["airtime_near_max_ratio"] == 0.3
    assert set(figures([], 10**9).values()) == {None}


@pytest.mark.parametrize(("window_s", "slice_s"), [(1, 1), (60, 1), (61, 2), (120, 2), (3600, 60)])
def test_slices_are_whole_seconds(window_s: int, slice_s: int) -> None:
    assert slice_ns(window_s * 10**9) == slice_s * 10**9


def test_jains_index() -> None:
    assert jain([0.5, 0.5, 0.5]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([1.0, 0.5]) == 0.9
    assert jain([0.0, 0.0]) is None


def test_applications_of_different_kinds_are_compared_by_their_shares(tmp_path: Path) -> None:
    run = read_run(RunDirectory(RunWriter(tmp_path, "fair", "f1").write()))
    (query,) = run.apps.values()
    apps = {
        "faces": query,
        "load": replace(query, name="load", kind="flows"),
        "idle": replace(query, name="idle", kind="flows"),
    }
    subject = Subject(
        replace(run, apps=apps),
        None,
        0,
        None,
        {
            # A window made one tuple of three; nothing was lost.
            "faces": {"goodput_fps": 10.0, "offered_fps": 30.0, "loss_ratio": 0.0},
            "load": {"flow_throughput_bps": 600.0, "flow_offered_bps": 1000.0, "flow_delivery_ratio": 0.5},
            "idle": {"flow_throughput_bps": 0.0, "flow_offered_bps": 0.0, "flow_delivery_ratio": None},
        },
    )
    assert FAIRNESS.values(subject, {}) == {"app_fairness": 0.9}
    assert FAIRNESS.values(Subject(run, None, 0, None, {}), {}) == {}
