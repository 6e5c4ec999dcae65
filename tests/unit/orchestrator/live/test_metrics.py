"""The list of metrics: names by the conventions of Prometheus, no two alike, and documented."""

import pytest

from node_agent.apps.registry import APPLICATIONS
from node_agent.extensions import ExtensionError
from node_agent.telemetry.metrics import Metric, MetricKind
from orchestrator.live.metrics import AGENT, RUN, Declared, collected, flaw, metrics

pytestmark = pytest.mark.unit

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM


def test_every_metric_follows_the_conventions() -> None:
    assert {each.metric.name: flaw(each) for each in metrics().values() if flaw(each)} == {}


def test_the_list_has_the_metrics_of_agents_applications_and_runs() -> None:
    assert {each.reporter for each in metrics().values()} == {
        AGENT,
        RUN,
        "query",
        "flows",
        "detect",
        "interest",
    }
    for kind in ("query", "flows"):
        reported = APPLICATIONS[kind].metrics
        assert reported is not None
        assert {metric.name for metric in reported.metrics} <= set(metrics())


def test_applications_have_their_name_as_a_label_and_runs_do_not() -> None:
    assert metrics()["rove_queue_length"].labels == ("app", "replica", "queue")
    assert metrics()["rove_node_up"].labels == ("node",)


@pytest.mark.parametrize(
    ("metric", "complaint"),
    [
        (Metric("pings_total", COUNTER, "Pings."), "names begin with rove_"),
        (Metric("rove_Pings_total", COUNTER, "Pings."), "names begin with rove_"),
        (Metric("rove__pings_total", COUNTER, "Pings."), "names begin with rove_"),
        (Metric("rove_pings", COUNTER, "Pings."), "counters, and nothing else, end in _total"),
        (Metric("rove_pings_total", GAUGE, "Pings."), "counters, and nothing else, end in _total"),
        (Metric("rove_pings_count", GAUGE, "Pings."), "ends in a word that Prometheus uses"),
        (Metric("rove_ping_seconds", GAUGE, "Pings."), "a unit that is not declared"),
        (Metric("rove_ping", GAUGE, "Pings.", unit="seconds"), "ends in its unit"),
        (Metric("rove_ping_ms", GAUGE, "Pings.", unit="ms"), "ends in its unit"),
        (Metric("rove_ping", GAUGE, " "), "one line of help"),
        (Metric("rove_ping", GAUGE, "a\nb"), "one line of help"),
        (Metric("rove_ping", GAUGE, "Ping.", ("to", "to")), "a label twice"),
        (Metric("rove_ping", GAUGE, "Ping.", ("run",)), "the label 'run' cannot be used"),
        (Metric("rove_ping", GAUGE, "Ping.", ("node",)), "the label 'node' cannot be used"),
        (Metric("rove_ping", GAUGE, "Ping.", ("app",)), "the label 'app' cannot be used"),
        (Metric("rove_ping", GAUGE, "Ping.", ("le",)), "the label 'le' cannot be used"),
        (Metric("rove_ping", GAUGE, "Ping.", ("To",)), "the label 'To' cannot be used"),
        (Metric("rove_ping", HISTOGRAM, "Ping."), "buckets in rising order"),
        (Metric("rove_ping", HISTOGRAM, "Ping.", buckets=(2.0, 1.0)), "buckets in rising order"),
        (Metric("rove_ping", GAUGE, "Ping.", buckets=(1.0,)), "buckets in rising order"),
    ],
)
def test_a_wrong_declaration_is_refused_with_the_reason(metric: Metric, complaint: str) -> None:
    with pytest.raises(ExtensionError, match=complaint):
        collected([Declared(metric, "beacons")])


def test_two_metrics_cannot_have_one_name() -> None:
    pings = Declared(Metric("rove_pings_total", COUNTER, "Pings."), "beacons")
    with pytest.raises(ExtensionError, match="beacons and others both report 'rove_pings"):
        collected([pings, pings._replace(reporter="others")])
    delays = Declared(Metric("rove_pings", HISTOGRAM, "Pings.", buckets=(1.0,)), "others")
    with pytest.raises(ExtensionError, match="both report 'rove_pings'"):
        collected([pings, delays])
