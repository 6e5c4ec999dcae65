"""A finished run is watched as it was recorded: whole, in order, and with the words of `rove explain`."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.telemetry.segments import read_records
from orchestrator.apps.dataflow.decisions.history import read_history
from orchestrator.apps.dataflow.decisions.reasons import reason
from orchestrator.live.run import LiveRun
from orchestrator.live.state import State
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.unit.orchestrator.live.reading import cut_off, of, read

NODES = [f"n{number:02}" for number in range(1, 9)]


@pytest.fixture(scope="session")
def changes(watched: RunDirectory) -> list[Change]:
    return read(watched)


def tuples(run: RunDirectory, kind: str) -> Iterator[dict[str, Any]]:
    for node in NODES:
        told = tuple_by_tuple(read_records(run.segments(node)))
        yield from (record for record in told if record["kind"] == kind)


@given(st.lists(st.integers(1, 60_000), max_size=20).map(lambda sizes: [*sizes, 8000]))
@settings(max_examples=6, phases=[Phase.generate])
def test_in_any_pieces_the_changes_are_the_same(
    watched: RunDirectory, changes: list[Change], sizes: list[int]
) -> None:
    assert read(watched, sizes) == changes


def test_changes_are_plain_json_in_the_order_of_time(changes: list[Change]) -> None:
    assert all(before.t <= after.t for before, after in pairwise(changes))
    assert json.loads(json.dumps(changes)) == [[c.t, c.app, c.channel, c.key, c.value] for c in changes]


def test_every_channel_of_a_run_in_virtual_time_is_there(changes: list[Change]) -> None:
    core = {"position", "link", "node", "phase", "event", "verdict", "record"}
    assert {c.channel for c in changes if not c.app} == core
    assert {c.channel for c in changes if c.app} == {"route", "rate", "queue", "latency", "total"}
    assert {c.app for c in changes} == {"", "query"}


def test_the_head(watched: RunDirectory) -> None:
    live = LiveRun(watched)
    while not live.ended:
        live.poll()
    head = live.head
    assert json.loads(json.dumps(head)) == head
    assert head["nodes"] == NODES
    assert (head["area"], head["virtual"], head["links"]) == ([400.0, 400.0], True, "truth")
    assert head["limits"] == {
        "delay_ms": 1.0,
        "waited": 0.5,
        "late_ms": 20.0,
        "late_ratio": 0.01,
        "uncertainty_ms": 20.0,
    }
    begin, end = head["measure"]
    assert end - begin == pytest.approx(30.0)
    (app,) = head["apps"]
    assert (app["name"], app["kind"]) == ("query", "query")
    assert app["view"]["edges"] == [["camera", "detect"], ["detect", "recognise"], ["recognise", "screen"]]
    assert {"id": "detect/1", "operator": "detect", "node": "n03"} in app["view"]["replicas"]
    assert [o["role"] for o in app["view"]["operators"]] == ["source", "operator", "operator", "sink"]
    assert app["view"]["policy"] == "shortest_path"
    live.close()


def test_routes_have_the_times_and_words_of_explain(watched: RunDirectory, changes: list[Change]) -> None:
    history = read_history(watched)
    for series in history.series:
        first = series[0].decision
        shown = of(changes, "route", f"{first.replica}>{first.downstream}")
        assert shown
        for recorded in series:
            t = history.seconds(recorded.t_ns)
            known = [c.value for c in shown if c.t <= t + 1e-6]
            assert known[-1]["to"] == recorded.decision.new
            exactly = [c.value for c in shown if abs(c.t - t) < 1e-6]
            assert all(value["why"] == reason(recorded.decision) for value in exactly)


def test_a_switch_is_marked_and_says_why(changes: list[Change]) -> None:
    switches = [c for c in of(changes, "route", "camera/0>detect") if c.value["switch"]]
    assert switches
    for switch in switches:
        assert switch.value["to"] != switch.value["old"]
        assert switch.value["why"]
        assert {cost["to"] for cost in switch.value["costs"]} == {"detect/0", "detect/1"}


def test_faults_set_the_state_of_their_nodes(watched: RunDirectory, changes: list[Change]) -> None:
    zero = read_history(watched).zero_ns
    faults = [e for e in map(json.loads, watched.events.read_text().splitlines()) if e["kind"] == "fault"]
    assert [fault["action"] for fault in faults].count("crash") == 2
    states = {"crash": "crashed", "silence": "silent", "restart": "ok", "unsilence": "ok"}
    for fault in faults:
        t = (fault["t_ns"] - zero) / 1e9
        seen = [c for c in of(changes, "node", fault["node"]) if c.t <= t + 0.1]
        assert seen[-1].value["state"] == states[fault["action"]], fault
    last = State()
    last.take(changes)
    assert {value["state"] for value in last.of("node").values()} == {"ended"}


def test_phases_are_on_the_runs_own_clock(watched: RunDirectory, changes: list[Change]) -> None:
    manifest = json.loads(watched.manifest.read_text())
    begun = {c.value["phase"]: c.t for c in of(changes, "phase") if c.value["state"] == "started"}
    zero = read_history(watched).zero_ns
    assert begun["plan"] == begun["up"] == begun["converge"] == 0.0
    assert begun["measure"] == pytest.approx((manifest["measure_from_ns"] - zero) / 1e9)
    assert begun["warm-up"] == pytest.approx(begun["measure"] - 5.0)
    assert begun["down"] >= begun["measure"] + 30.0


def test_totals_count_what_was_born_in_the_measured_time(
    watched: RunDirectory, changes: list[Change]
) -> None:
    begin = json.loads(watched.manifest.read_text())["measure_from_ns"]
    born = {record["tau"] for record in tuples(watched, "tuple_emitted") if record["t_ns"] > begin}
    there = {record["tau"] for record in tuples(watched, "tuple_delivered")} & born
    total = of(changes, "total")[-1].value
    assert abs(total["offered"] - len(born)) <= 1  # the tuple at the very beginning
    assert abs(total["delivered"] - len(there)) <= 1
    assert 0 < total["lost"] <= len(born) - len(there)
    dropped = Counter(
        record["reason"] for record in tuples(watched, "tuple_dropped") if record["tau"] in born
    )
    assert set(total["dropped"]) <= set(dropped)


def test_rates_add_up_to_what_was_delivered(watched: RunDirectory, changes: list[Change]) -> None:
    delivered = sum(1 for _ in tuples(watched, "tuple_delivered"))
    emitted = sum(1 for _ in tuples(watched, "tuple_emitted"))
    assert sum(c.value["out"] for c in of(changes, "rate", "screen/0")) == delivered
    assert sum(c.value["in"] for c in of(changes, "rate", "camera/0")) == emitted
    assert sum(c.value["n"] for c in of(changes, "latency", "screen/0")) == delivered


def test_latency_is_arrival_minus_birth(watched: RunDirectory, changes: list[Change]) -> None:
    found = [(r["t_ns"] - r["born_ns"]) / 1e9 for r in tuples(watched, "tuple_delivered")]
    for change in of(changes, "latency"):
        value = change.value
        assert min(found) - 1e-6 <= value["p50"] <= value["p95"] <= value["p99"] <= max(found) + 1e-6


def test_counts_of_records_are_those_of_the_verdict(watched: RunDirectory, changes: list[Change]) -> None:
    verdict = json.loads(watched.verdict.read_text())
    for node in NODES:
        last = of(changes, "record", node)[-1].value
        assert last["records"] == verdict["completeness"][node]["records"]
        size = sum(path.stat().st_size for path in watched.segments(node).iterdir())
        assert (last["bytes"], last["refused"]) == (size, 0)
        boots = Counter(record["boot"] for record in read_records(watched.segments(node)))
        assert (last["boot"], last["of_boot"]) == max(boots.items())


def test_links_are_thinned_but_never_wrong_by_much(watched: RunDirectory, changes: list[Change]) -> None:
    lines = [json.loads(line) for line in (watched.radio / "links.jsonl").read_text().splitlines()]
    truth = {f"{line['src']}>{line['dst']}": line["cost"] for line in lines}
    state = State()
    state.take(changes)
    shown = state.of("link")
    assert set(shown) == {key for key, cost in truth.items() if cost is not None}
    for key, value in shown.items():
        assert value["etx"] == pytest.approx(truth[key], rel=0.051)
    assert len(of(changes, "link")) <= len(lines)


def test_the_verdict_is_the_last_word(changes: list[Change]) -> None:
    assert of(changes, "verdict")[-1].value == {"verdict": "valid", "reasons": []}


def test_no_doubts_follow_the_verdict(copied: RunDirectory) -> None:
    """A run was interrupted just before its end: the second in which the doubt arose ends after it."""
    events = [json.loads(line) for line in copied.events.read_text().splitlines()]
    last = max(event["t_ns"] for event in events if event.get("t_ns"))
    interrupted = next(e for e in events if e.get("phase") == "measure" and e.get("state") == "finished")
    interrupted |= {"outcome": "interrupted", "t_ns": last}
    events[-1] = {**events[-1], "verdict": "invalid", "reasons": ["interrupted by user"]}
    copied.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = [change.value for change in of(read(copied), "verdict")]
    assert found[-1] == {"verdict": "invalid", "reasons": ["interrupted by user"]}


def test_a_run_whose_process_was_killed_has_died(copied: RunDirectory) -> None:
    cut_off(copied)
    verdicts = of(read(copied), "verdict")
    assert verdicts[-1].value == {"so_far": [], "died": True}
    assert read(copied, [1000])[-1] == read(copied)[-1]
