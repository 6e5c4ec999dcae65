"""What an experiment expects of its result is parsed once and judged once."""

import subprocess
import sys

import pytest

from orchestrator.results import registry
from orchestrator.results.expectations import (
    BadExpectation,
    Expectation,
    evaluate_expectations,
    expectable_names,
    misfits,
    parse_expectation,
)


def test_an_expectation_is_a_metric_an_operator_and_a_number() -> None:
    assert parse_expectation(" throughput_fps>=1.5 ") == Expectation("throughput_fps", ">=", 1.5)
    assert str(parse_expectation("loss_ratio < 5e-2")) == "loss_ratio < 0.05"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not of the form"),
        ("throughput_fps", "is not of the form"),
        ("throughput_fps > 1 and more", "is not of the form"),
        ("througput_fps > 1", "did you mean throughput_fps?"),
        ("colour > 1", "there are: goodput_fps"),
        ("loss_ratio != 0", "unknown operator '!='"),
        ("loss_ratio < few", "'few' is not a number"),
        ("loss_ratio < nan", "'nan' is not a number"),
    ],
)
def test_a_wrong_expectation_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("?", r"\?")):
        parse_expectation(text)


def test_those_that_do_not_hold_are_named_with_the_value() -> None:
    metrics = {"throughput_fps": 2.0, "loss_ratio": 0.25, "latency_p95_s": None, "switches": 3}
    expect = ["throughput_fps > 2", "loss_ratio <= 0.25", "switches == 3", "latency_p95_s < 1"]
    failed = evaluate_expectations(expect, metrics)
    assert [str(failure) for failure in failed] == [
        "expected throughput_fps > 2, got 2",
        "expected latency_p95_s < 1, but the run has no latency_p95_s",
    ]


def test_an_application_can_be_named_in_front() -> None:
    assert parse_expectation("faces.goodput_fps > 1") == Expectation("goodput_fps", ">", 1.0, "faces")
    summary = {
        "metrics": {"routing_overhead_bps": 5.0},
        "apps": {
            "faces": {"kind": "query", "metrics": {"goodput_fps": 2.0}},
            "heat": {"kind": "query", "metrics": {"goodput_fps": 0.5, "loss_ratio": 0.1}},
        },
    }
    expect = ["faces.goodput_fps > 1", "heat.goodput_fps > 1", "loss_ratio < 0.2", "routing_overhead_bps < 1"]
    assert [str(failure) for failure in evaluate_expectations([*expect, "goodput_fps > 0"], summary)] == [
        "expected heat.goodput_fps > 1, got 0.5",
        "expected routing_overhead_bps < 1, got 5",
        "expected goodput_fps > 0, but the run has no goodput_fps",
    ]


@pytest.mark.parametrize(
    ("text", "complaint", "hint"),
    [
        ("goodput_fps > 1", "goodput_fps is of several applications", "faces.goodput_fps, heat.goodput_fps"),
        ("rain.goodput_fps > 1", "there is no application 'rain'", "there are faces, heat, other"),
        ("other.goodput_fps > 1", "other has no goodput_fps", "faces, heat has it"),
        ("faces.routing_overhead_bps > 1", "routing_overhead_bps is of the whole run", "without a name"),
    ],
)
def test_what_fits_no_application_or_several_is_one_error(text: str, complaint: str, hint: str) -> None:
    (found,) = misfits(["faces.loss_ratio < 1", text], {"faces": "query", "heat": "query", "other": "none"})
    assert found.place == 1
    assert complaint in found.text
    assert hint in found.hint


def test_what_only_one_application_has_needs_no_name() -> None:
    assert misfits(["goodput_fps > 1", "routing_overhead_bps < 9"], {"faces": "query", "x": "none"}) == []
    (found,) = misfits(["goodput_fps > 1"], {"x": "none"})
    assert found.text == "no application of this experiment has goodput_fps"


def test_every_single_number_of_a_summary_can_be_expected() -> None:
    averaged = {metric.name for metric in registry.metrics().values() if metric.averaged}
    assert averaged <= set(expectable_names())
    assert str(parse_expectation("goodput_fps >= 2")) == "goodput_fps >= 2"


def test_the_file_format_needs_no_analysis() -> None:
    code = (
        "import sys, orchestrator.planning.load; sys.exit(any('analytics' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0


def test_to_read_an_expectation_takes_neither_spark_nor_matplotlib() -> None:
    code = (
        "import sys; from orchestrator.results.expectations import parse_expectation as parse; "
        "parse('rank1 > 0.5'); sys.exit(bool({'pyspark', 'matplotlib', 'cv2'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("loss < 0.05", "did you mean loss_ratio?"),
        ("shed_ratoi < 0.05", "did you mean shed_ratio?"),
        ("flow_delay < 1", "flow_delay_mean_s, flow_delay_p50_s, flow_delay_p95_s or flow_delay_max_s?"),
        ("Goodput-fps > 1", "did you mean goodput_fps or goodput_kbps?"),
        ("loss_ratio < 5%", "write loss_ratio < 0.05: a share, of 1"),
        ("latency_p95_s < 200 ms", "write latency_p95_s < 0.2: it is in s"),
        ("latency_p95_s < 2 min", "write latency_p95_s < 120: it is in s"),
        ("latency_p95_s < 2 fps", "write no unit: it is in s"),
        ("flow_throughput_bps > 10 kb/s", "write flow_throughput_bps > 10000: it is in bit/s"),
        ("goodput_fps => 1", "did you mean >=?"),
    ],
)
def test_the_hint_names_what_is_probably_meant(text: str, hint: str) -> None:
    with pytest.raises(BadExpectation) as raised:
        parse_expectation(text)
    assert raised.value.hint.endswith(hint)
    assert str(raised.value).startswith(raised.value.problem)
