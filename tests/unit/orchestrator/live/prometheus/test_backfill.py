"""A run's records as OpenMetrics with times: read back by Prometheus' own client, and by promtool."""

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser
from prometheus_client.samples import Sample as Read
from typer.testing import CliRunner

from node_agent.apps.dataflow.events import QueueSample
from node_agent.model.telemetry import RoutingOverhead
from node_agent.telemetry.segments import read_records
from orchestrator.cli.app import app
from orchestrator.live.facts import read_facts
from orchestrator.live.metrics import ONLY_LIVE, metrics
from orchestrator.live.prometheus import backfill
from orchestrator.live.prometheus.run_gauges import RunGauges
from orchestrator.live.prometheus.series_store import Series, SeriesStore
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import END_S, RunWriter, known_run

pytestmark = pytest.mark.unit

START = 1772366400  # 2026-03-01T12:00:00Z
read_families: Callable[[str], Iterable[Metric]] = parser.text_string_to_metric_families
Points = dict[tuple[str, ...], list[tuple[float, float]]]


def exported(root: Path, *options: str) -> str:
    output = root / "run.om"
    arguments = ["export", "latest", "--openmetrics", "--runs-dir", str(root), "-o", str(output), *options]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return output.read_text()


def samples_of(text: str, name: str) -> list[Read]:
    return [sample for family in read_families(text) for sample in family.samples if sample.name == name]


def points(text: str, name: str, *labels: str) -> Points:
    found: Points = defaultdict(list)
    for sample in samples_of(text, name):
        assert sample.timestamp is not None
        key = tuple(sample.labels.get(label, "") for label in labels)
        found[key].append((float(sample.timestamp) - START, sample.value))
    return found


def with_queues(root: Path) -> RunWriter:
    """The known run, with a queue sample of both of n2's queues each second; n2's agent starts twice."""
    writer = known_run(root)
    for second in range(4, 100):
        for queue in ("input", "output:sink"):
            writer.record("n2", second, QueueSample("detect/0", queue, second))
    for second in range(113, 120):
        writer.record("n2", second, QueueSample("detect/0", "input", second), boot=2)
    return writer


def test_each_record_of_a_queue_is_a_sample_at_its_time(tmp_path: Path) -> None:
    run = RunDirectory(with_queues(tmp_path).write())
    found = points(exported(tmp_path), "rove_queue_length", "node", "replica", "queue")
    recorded: Points = defaultdict(list)
    for node in ("n2", "n3"):
        for record in read_records(run.segments(node)):
            if record["kind"] == "queue":
                key = (node, record["replica"], record["queue"])
                recorded[key].append((record["t_ns"] / 1e9, record["length"]))
    assert found == recorded
    assert sum(map(len, found.values())) == 1 + 1 + 2 * 96 + 7


def test_counters_end_with_what_the_records_add_up_to(tmp_path: Path) -> None:
    with_queues(tmp_path).write()
    text = exported(tmp_path)
    delivered = points(text, "rove_tuples_delivered_total", "replica")["sink/0",]
    assert delivered[-1:] == [(float(END_S), 92.0)]
    latency = points(text, "rove_tuple_latency_seconds_count", "replica")["sink/0",]
    assert latency[-1:] == [(float(END_S), 92.0)]
    dropped = points(text, "rove_tuples_dropped_total", "replica", "reason")
    assert dropped["source/0", "source_buffer_full"][-1][1] == 5
    received = points(text, "rove_tuples_received_total", "node")["n2",]
    values = [value for _, value in received]
    assert values == sorted(values) and len(values) > 90, "it grows from tick to tick"


def test_series_have_the_labels_of_a_scrape(tmp_path: Path) -> None:
    with_queues(tmp_path).write()
    labels = samples_of(exported(tmp_path), "rove_queue_length")[0].labels
    assert labels == {
        "job": "rove-records",
        "instance": "20260301-120000-aaaa/n2",
        "run": "20260301-120000-aaaa",
        "experiment": "known",
        "seed": "1",
        "k": "2",
        "node": "n2",
        "app": "query",
        "replica": "detect/0",
        "queue": "input",
    }
    assert samples_of(exported(tmp_path, "--job", "mine"), "rove_queue_length")[0].labels["job"] == "mine"


def test_frames_of_an_emulated_radio_are_written_by_sender(tmp_path: Path) -> None:
    writer = known_run(tmp_path)
    for second in range(60, 70):
        writer.delivery(second, "n1", "n2", 10, 7, 0.7)
        writer.delivery(second, "n1", "n3", 10, 9, 0.9)
        writer.delivery(second, "n9", "n3", 3, 3, 1.0)
        writer.delivery(second, "n1", "stranger", 1000, 1000, 1.0)
        writer.delivery(second, "stranger", "n1", 1000, 1000, 1.0)
    writer.write()
    text = exported(tmp_path)
    for what, totals in (("attempted", {"n1": 200, "n9": 30}), ("delivered", {"n1": 160, "n9": 30})):
        found = points(text, f"rove_radio_frames_{what}_total", "node")
        assert {node: series[-1][1] for (node,), series in found.items() if node != "n2"} == totals
        values = [value for _, value in found["n1",]]
        assert values == sorted(values) and len(set(values)) == 10, "it grows from second to second"


def test_what_is_only_read_when_it_is_asked_for_is_not_exported(tmp_path: Path) -> None:
    """And everything else that the orchestrator tells of this run is."""
    run = RunDirectory(with_queues(tmp_path).write())
    names = {name for family in read_families(exported(tmp_path)) for name in [family.name]}
    assert not names & {each.removesuffix("_total") for each in ONLY_LIVE}
    facts = read_facts(run)
    assert facts is not None
    told = {metrics()[sample.name].family for sample in RunGauges(facts).samples()}
    assert told and told <= names


def test_a_run_in_virtual_time_can_begin_at_another_time(tmp_path: Path) -> None:
    with_queues(tmp_path).write()
    text = exported(tmp_path, "--start", "2026-03-01T12:01:00Z")
    assert points(text, "rove_queue_length", "node")["n3",] == [(63.0, 0.0)]


def test_a_record_that_is_not_believed_is_left_out(tmp_path: Path) -> None:
    writer = known_run(tmp_path)
    for second in range(5):
        writer.record("n3", 113 + second, QueueSample("detect/0", "input", 1))  # a replica of n2
        writer.record("n3", 2**31, QueueSample("detect/1", "input", 1))  # long after the end
    writer.write()
    found = points(exported(tmp_path), "rove_queue_length", "node", "replica")
    assert found == {("n2", "detect/0"): [(3.0, 0.0)], ("n3", "detect/1"): [(3.0, 0.0)]}


def test_times_are_corrected_by_the_clocks_of_the_nodes(tmp_path: Path) -> None:
    writer = known_run(tmp_path)
    writer.own_clocks({"n1": (5.0, 0.0), "n2": (3600.0, 0.0), "n3": (-1.0, 0.0), "n9": (0.0, 0.0)}, 0)
    manifest = json.loads((writer.write() / "manifest.json").read_text())
    assert manifest["clock"] == "real"
    found = [(s.labels["node"], s.timestamp) for s in samples_of(exported(tmp_path), "rove_queue_length")]
    assert [(node, float(t or 0)) for node, t in found] == [("n2", 3.0), ("n3", 3.0)]


def test_what_the_orchestrator_knew_is_there_too(tmp_path: Path) -> None:
    with_queues(tmp_path).write()
    text = exported(tmp_path)
    assert points(text, "rove_run_info", "run")
    assert points(text, "rove_records_read_total", "node")["n1",][-1][1] > 100


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "say in which format"),
        (["--openmetrics", "--start", "yesterday"], "not a time such as"),
        (["--openmetrics", "--start", "1960-01-01"], "no times before 1970"),
        (["--openmetrics", "--json"], "--json needs --output"),
    ],
)
def test_bad_options_are_refused_with_one_line(tmp_path: Path, options: list[str], complaint: str) -> None:
    known_run(tmp_path).write()
    result = CliRunner().invoke(app, ["export", "latest", "--runs-dir", str(tmp_path), *options])
    assert complaint in str(result.exception)


def test_a_run_with_real_times_keeps_them(tmp_path: Path) -> None:
    writer = known_run(tmp_path)
    writer.own_clocks(dict.fromkeys(("n1", "n2", "n3", "n9"), (0.0, 0.0)), 0)
    writer.write()
    arguments = ["export", "latest", "--openmetrics", "--runs-dir", str(tmp_path), "--start", "2026-01-01"]
    assert "has real times" in str(CliRunner().invoke(app, arguments).exception)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus")
def test_promtool_makes_blocks_of_it(tmp_path: Path) -> None:
    with_queues(tmp_path).write()
    text = exported(tmp_path)
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "run.om", tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert made.returncode == 0, made.stderr
    (tmp_path / "data" / "wal").mkdir()  # dump reads what a server left
    dumped = subprocess.run(
        ["promtool", "tsdb", "dump", tmp_path / "data"], capture_output=True, text=True, timeout=30
    )
    assert dumped.stdout.count('__name__="rove_queue_length"') == text.count("\nrove_queue_length{")


def test_lines_wait_in_a_file_if_there_are_many(tmp_path: Path) -> None:
    with (tmp_path / "spill").open("w+b") as spill:
        store = SeriesStore(spill, most_bytes=1000)
        for number in range(500):
            for series in ("a", "b"):
                store.add(Series("x", (("s", series),)), f"{series}{number}\n".encode())
            store.add(Series("y", ()), b"y\n")
        assert spill.tell() > 1000
        lines = b"".join(store.lines_of("x")).decode().split()
        assert lines == [f"{series}{number}" for series in "ab" for number in range(500)]
        assert b"".join(store.lines_of("y")) == b"y\n" * 500
        assert store.families() == {"x", "y"}


def test_a_node_that_writes_more_does_not_get_more_samples(tmp_path: Path) -> None:
    """Of all series there is one sample a second; of a queue there is one for each record, as always."""
    writer = known_run(tmp_path)
    for series in range(300):
        writer.record("n2", 4 + series / 1e4, RoutingOverhead("olsr", f"m{series}", 1, 1, 1, 1))
        writer.record("n2", 4 + series / 1e4, QueueSample("detect/0", f"q{series}", 1))
    for number in range(2000):
        t = 5 + number / 500
        writer.record("n2", t, RoutingOverhead("olsr", "m0", number, number, number, number))
        writer.record("n2", t, QueueSample("detect/0", "q0", number))
    run = RunDirectory(writer.write())
    text = exported(tmp_path)
    sent = points(text, "rove_routing_messages_sent_total", "node", "message")
    assert sent["n2", "m0"][-1][1] == 1999, "the last value is there"
    assert all(len(each) <= 8 for each in sent.values()), "five seconds, the first record, and the end"
    queues = points(text, "rove_queue_length", "node", "queue")
    assert [value for _, value in queues["n2", "q0"] if value > 1] == list(range(2, 2000))
    assert all(len(each) <= 8 for (_, queue), each in queues.items() if queue not in ("q0", "input"))
    recorded = sum(file.stat().st_size for file in run.segments("n2").iterdir())
    assert len(text) < 10 * recorded


def test_rounds_that_come_a_little_early_count_as_rounds(tmp_path: Path) -> None:
    writer = known_run(tmp_path)
    for second in range(4, 100):
        early = 0.03 * (second % 3)
        writer.record("n2", second - early, RoutingOverhead("olsr", "hello", second, 1, 1, 1))
    writer.write()
    found = points(exported(tmp_path), "rove_routing_messages_sent_total", "node")["n2",]
    assert [value for _, value in found][:96] == list(range(4, 100))


def test_what_a_node_has_beyond_its_bound_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LEAST_BYTES", 20_000), ("BYTES_PER_S", 0)):
        monkeypatch.setattr(backfill, name, value)
    with_queues(tmp_path).write()
    output = tmp_path / "run.om"
    arguments = ["export", "latest", "--openmetrics", "--runs-dir", str(tmp_path), "-o", str(output)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    (line,) = [each for each in result.output.splitlines() if "rounds of samples left out" in each]
    assert "recorded more than a node may have" in line
    per_node: defaultdict[str, int] = defaultdict(int)
    for each in output.read_text().splitlines(keepends=True):
        if not each.startswith("#"):
            per_node[each.partition('instance="')[2].partition('"')[0]] += len(each)
    assert per_node and max(per_node.values()) < 20_000 + 10_000, "one sample of a histogram more"
    told = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(told.stdout)["cut"] > 50


def test_the_bound_grows_with_the_run(tmp_path: Path) -> None:
    facts = read_facts(RunDirectory(known_run(tmp_path).write()))
    assert facts is not None and facts.measure is not None
    seconds = facts.measure[1] / 1e9
    assert backfill.most_bytes(facts) == pytest.approx(
        backfill.LEAST_BYTES + seconds * backfill.BYTES_PER_S, abs=1
    )
