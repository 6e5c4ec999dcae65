"""A real Prometheus scrapes real runs in namespaces: every dashboard answers, alerts fire where they are
earned, and a back-fill closes the gap that Prometheus had.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shared.runs import OF_THE_HOST
from node_agent.model.host_load import FILE
from orchestrator.apps.dataflow.spec.section import DataflowSection
from orchestrator.host_load.files import read_samples
from orchestrator.host_load.judgement import LIMITS
from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import NODES, own_reasons, root_of
from tests.prometheus.served import SCRAPE_S, Served, back_filled, check_complete, check_gap
from tests.unit.orchestrator.live.grafana.queries import all_queries, variable_queries
from tests.unit.rove_process import (
    PATIENCE_S,
    environment,
    experiment_file,
    start,
    verdict,
    wait_for_phase,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus"),
]

FACES = {
    "query": {
        "name": "face_recognition",
        "rate": 4,
        "persons": 3,
        "enrolled": 2,
        "width": 160,
        "height": 120,
    },
    "replicas": {"detect": 2},
    "placement": {
        "policy": "explicit",
        "nodes": {"camera": ["a"], "detect": ["b", "c"], "recognise": ["d"], "screen": ["e"]},
    },
}
FLOWS = {"flows": [{"name": "talk", "from": "a", "to": "d", "rate": "16 kb/s", "size": "200 B"}]}
OF_APPS = tuple(DataflowSection.model_fields)


@pytest.fixture
def served(run: RunDirectory) -> Iterator[Served]:
    root_of(run).mkdir(parents=True)
    with Served(environment(root_of(run))) as served:
        yield served


def write_experiment(folder: Path, **changes: Any) -> Path:
    apps = {"query": FACES, "flows": FLOWS}
    return experiment_file(
        folder, OF_APPS, backend="netns", routing="olsr", apps=apps, warmup="2s", **changes
    )


def test_a_run_that_earns_alerts(tmp_path: Path, run: RunDirectory, served: Served) -> None:
    faults = [
        {"at": "20s", "for": "6s", "crash": {"app": "query", "operator": "detect", "replica": 0}},
        {"at": "55s", "for": "45s", "silence": {"node": "e"}},
    ]
    file = write_experiment(tmp_path, duration="105s", faults=faults)
    with going_on(run, file):
        wait_for_phase(run, "measure")
        _check_targets(served, run)
        served.wait_for(f'rove_faults_injected_total{{run="{run.id}"}} >= 2', "the first fault is healed")
        _check_queries(served)
        gap = _gap(served)
        served.wait_for('ALERTS{alertname="RoveNoDelivery", alertstate="firing"}', "nothing arrives", 60)
        served.wait_for('ALERTS{alertname="RoveNodeSilent", alertstate="firing"}', "e is silent", 60)
    assert own_reasons(run) == []
    earned = {("RoveNoDelivery", "query"), ("RoveNodeSilent", "e")}
    # On a busy machine an agent that was killed takes long to come back, and the host is late.
    forgiven = {("RoveNodeSilent", "b"), ("RoveHostLate", "")}
    assert served.fired(run.id) - forgiven == earned
    _wait_until_forgotten(served)
    lines = back_filled(run, tmp_path, environment(root_of(run)))
    check_complete(run, NODES, lines)
    scraped = served.query(f'rove_queue_length{{run="{run.id}", node="b"}}[10m]')
    check_gap(scraped, lines, "b", gap, gap + 2 * SCRAPE_S)


def test_a_run_that_earns_none(tmp_path: Path, run: RunDirectory, served: Served) -> None:
    with going_on(run, write_experiment(tmp_path, duration="40s")):
        pass
    assert served.query(f'max_over_time(rove_run_phase{{run="{run.id}", phase="measure"}}[5m])')
    fired = {name for name, _ in served.fired(run.id)}
    assert fired <= ({"RoveHostLate"} if _was_busy(run) else set())


def _was_busy(run: RunDirectory) -> bool:
    """Whether other work here may have earned an alert, which looks at less than a verdict does."""
    if any(reason.startswith(OF_THE_HOST) for reason in verdict(run)["reasons"]):
        return True
    samples = read_samples(run.path / FILE)
    assert samples
    return any((sample.group_delay_ms or 0.0) > LIMITS.delay_ms for sample in samples)


@contextmanager
def going_on(run: RunDirectory, file: Path) -> Iterator[None]:
    """A run that is waited for at the end, and stopped if the test fails."""
    process = start(root_of(run), file, "--no-analyze")
    try:
        yield
    except BaseException:
        process.send_signal(signal.SIGINT)
        raise
    finally:
        _, said = process.communicate(timeout=180)
    assert process.returncode in (0, 3), said


def _check_targets(served: Served, run: RunDirectory) -> None:
    """Every node is scraped, under labels that tell the run; nobody else can be asked for."""
    served.wait_for(f'count(up{{job="rove", run="{run.id}", node!=""}} == 1) == 5', "all nodes are scraped")
    labels = served.query(f'rove_agent_info{{run="{run.id}", node="a"}}')[0]["metric"]
    expected = {"experiment": "line", "seed": "1", "k": "2", "backend": "netns", "instance": f"{run.id}/a"}
    assert labels.items() >= expected.items()
    assert served.get(served.port, f"/runs/{run.id}/nodes/nobody/metrics")[0] == 404
    assert served.get(served.port, "/runs/nothing/nodes/a/metrics")[0] == 404
    status, text = served.get(served.port, "/metrics")
    assert status == 200 and f'run="{run.id}"'.encode() in text and b"rove_runs_watched 1.0" in text


def _check_queries(served: Served) -> None:
    """Every query of every dashboard answers, with data unless it counts what did not happen."""
    empty = []
    for query in (*all_queries(), *variable_queries()):
        if not served.query(query.filled) and not query.rare:
            empty.append(f"{query.place}: {query.filled}")
    assert empty == []
    for rare in (
        'rove_flow_sent_bytes_total{flow="talk"}',
        "rove_connections_lost_total",
    ):
        assert served.query(rare), rare
    exemplars = served.api(
        "query_exemplars",
        query="rove_tuple_latency_seconds_bucket",
        start=str(time.time() - 120),
        end=str(time.time()),
    )
    assert exemplars and exemplars[0]["exemplars"][0]["labels"]["origin"] == "camera/0"


def _gap(served: Served) -> float:
    """Prometheus cannot reach anything for more than ten seconds. Returns when that began."""
    pid = served.prometheus_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.time()
        time.sleep(2 * SCRAPE_S + 2)
    finally:
        os.kill(pid, signal.SIGCONT)
    return began


def _wait_until_forgotten(served: Served) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while served.api("targets", state="active")["activeTargets"]:
        assert time.monotonic() < deadline, "targets of a run that has ended vanish"
        time.sleep(1)
