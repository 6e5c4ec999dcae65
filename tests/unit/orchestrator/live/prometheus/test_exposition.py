"""Samples become text that Prometheus' own client reads back; what does not fit the list is left out."""

from collections.abc import Callable, Iterable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as read_plain

from node_agent.apps.dataflow.metrics import LATENCY, QUEUE, SWITCHES
from node_agent.telemetry.histogram import DURATION_BUCKETS
from node_agent.telemetry.metrics import Exemplar, Sample
from orchestrator.live.metrics import NODE_UP, metrics
from orchestrator.live.prometheus.checking import MOST_SERIES, checked
from orchestrator.live.prometheus.exposition import Labelled, exposition, wants_openmetrics

pytestmark = pytest.mark.unit

read_openmetrics: Callable[[str], Iterable[Metric]] = openmetrics_parser.text_string_to_metric_families
OPENMETRICS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
"""What Prometheus 2.42 sends."""
QUEUED = Sample(QUEUE, ("camera/0", "output:detect"), 3, "query")
COUNTS = (0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
SLOW = Sample(
    LATENCY, ("sink/0",), 61.5, "query", COUNTS, Exemplar({"origin": "camera/0", "tau": "7"}, 61.2, 5 * 10**9)
)


def shown(*samples: Sample, accept: str = "", **labels: str) -> dict[tuple[str, tuple[Any, ...]], float]:
    content, _ = exposition([Labelled(samples, labels)], metrics(), accept)
    read = read_openmetrics if accept else read_plain
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value
        for family in read(content.decode())
        for each in family.samples
    }


def test_a_sample_has_the_labels_of_its_application_metric_and_run() -> None:
    labels = (("app", "query"), ("queue", "output:detect"), ("replica", "camera/0"), ("run", "r1"))
    assert shown(QUEUED, run="r1") == {(QUEUE, labels): 3}
    assert shown(QUEUED, run="r1", accept=OPENMETRICS) == {(QUEUE, labels): 3}


def test_what_the_agent_itself_reports_has_no_label_app() -> None:
    assert list(shown(Sample("rove_agent_boot", (), 2))) == [("rove_agent_boot", ())]


def test_a_histogram_has_growing_buckets_a_sum_and_a_count() -> None:
    found = shown(SLOW)
    own = (("app", "query"), ("replica", "sink/0"))
    assert found[f"{LATENCY}_count", own] == 4
    assert found[f"{LATENCY}_sum", own] == 61.5
    buckets = [value for (name, _), value in found.items() if name.endswith("_bucket")]
    assert len(buckets) == len(DURATION_BUCKETS) + 1 and buckets[-1] == 4 and sorted(buckets) == buckets


def test_openmetrics_has_the_exemplar_in_the_bucket_that_it_fell_into() -> None:
    content, content_type = exposition([Labelled([SLOW])], metrics(), OPENMETRICS)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    (family,) = read_openmetrics(content.decode())
    (sample,) = [each for each in family.samples if each.exemplar is not None]
    assert sample.labels["le"] == "+Inf"
    assert sample.exemplar is not None and sample.exemplar.labels == {"origin": "camera/0", "tau": "7"}
    assert b"origin" not in exposition([Labelled([SLOW])], metrics()).data


def test_families_stand_together_also_for_several_runs() -> None:
    groups = [Labelled([QUEUED, SLOW], {"run": "a"}), Labelled([QUEUED, SLOW], {"run": "b"})]
    text = exposition(groups, metrics(), OPENMETRICS).data.decode()
    assert text.count(f"# TYPE {QUEUE}") == 1 and text.endswith("# EOF\n")
    assert [len(family.samples) for family in read_openmetrics(text)] == [2 * 18, 2]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        (OPENMETRICS, True),
        ("application/openmetrics-text; version=99; escaping=x", True),
        ("x" * 100_000 + ",application/openmetrics-text", False),
    ],
)
def test_openmetrics_is_for_those_who_ask_for_it(accept: str, wanted: bool) -> None:
    assert wants_openmetrics(accept) is wanted


@pytest.mark.parametrize(
    "sample",
    [
        Sample("rove_unheard_of", (), 1),
        Sample("up", (), 1),
        Sample(QUEUE, ("camera/0",), 1, "query"),
        Sample(QUEUE, ("camera/0", "input", "more"), 1, "query"),
        Sample(QUEUE, ("camera/0", "x" * 201), 1, "query"),
        Sample(QUEUE, ("camera/0", "input"), 1, "x" * 201),
        Sample(QUEUE, ("camera/0", "input"), nan, "query"),
        Sample(QUEUE, ("camera/0", "input"), inf, "query"),
        Sample(QUEUE, ("camera/0", "input"), 1, "query", (1, 2)),
        Sample(SWITCHES, ("camera/0", "detect"), -1, "query"),
        Sample(LATENCY, ("sink/0",), 1, "query"),
        Sample(LATENCY, ("sink/0",), 1, "query", COUNTS[1:]),
        Sample(LATENCY, ("sink/0",), 1, "query", (-1, *COUNTS[1:])),
        Sample(LATENCY, ("sink/0",), -1, "query", COUNTS),
        Sample(NODE_UP, ("a",), 1, "query"),
    ],
)
def test_a_sample_that_does_not_fit_the_list_is_left_out(sample: Sample) -> None:
    assert checked([QUEUED, sample, SLOW], metrics()) == ([QUEUED, SLOW], 1)


def test_a_series_that_comes_twice_and_series_beyond_the_limit_are_left_out() -> None:
    assert checked([QUEUED, QUEUED], metrics()) == ([QUEUED], 1)
    many = [Sample(QUEUE, ("camera/0", str(number)), 1, "query") for number in range(MOST_SERIES + 5)]
    kept, refused = checked(many, metrics())
    assert (len(kept), refused) == (MOST_SERIES, 5)


def test_an_exemplar_that_is_too_long_is_left_out_and_the_sample_stays() -> None:
    for labels in ({"origin": "x" * 200}, {"bad name": "x"}, {"é": "x"}):
        long = Sample(LATENCY, ("s",), 1, "q", COUNTS, Exemplar(labels, 1.0, 0))
        ((kept,), refused) = checked([long], metrics())
        assert (kept.exemplar, refused) == (None, 0)
        exposition([Labelled([kept])], metrics(), OPENMETRICS)


@given(st.text(max_size=200), st.text(max_size=200), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_of_a_node_can_be_read_back(replica: str, queue: str, value: float) -> None:
    sample = Sample(QUEUE, (replica, queue), value, "query")
    ((kept,), _) = checked([sample], metrics())
    for accept in ("", OPENMETRICS):
        ((_, labels),) = shown(kept, accept=accept)
        assert dict(labels) == {"app": "query", "replica": replica, "queue": queue}
