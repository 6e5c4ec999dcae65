"""What an experiment expects of its result is parsed once and judged once."""

import subprocess
import sys

import pytest

from orchestrator.analytics.cells import AVERAGED
from orchestrator.spec.expectations import METRICS, Expectation, evaluate_expectations, parse_expectation


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
        ("colour > 1", "there are: throughput_fps"),
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


def test_every_single_number_of_a_summary_can_be_expected() -> None:
    assert set(AVERAGED) <= set(METRICS)
    assert str(parse_expectation("goodput_fps >= 2")) == "goodput_fps >= 2"


def test_the_file_format_needs_no_analysis() -> None:
    code = (
        "import sys, orchestrator.planning.load; sys.exit(any('analytics' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0
