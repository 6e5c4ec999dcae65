"""What a terminal shows: figures, the way of a stream, the last switch, troubles and doubts."""

import io
import random
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from orchestrator.cli.live_display import RunBlock, plain_line
from orchestrator.live.run import LiveRun
from orchestrator.live.summary import Watch
from orchestrator.runs import latency_buckets
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.unit.orchestrator.live.reading import of


@pytest.fixture(scope="session")
def live(watched: RunDirectory) -> LiveRun:
    live = LiveRun(watched)
    live.changes = []  # type: ignore[attr-defined]
    while not live.ended:
        live.changes += live.poll()  # type: ignore[attr-defined]
    return live


def at(live: LiveRun, t: float) -> Watch:
    watch = Watch(live.head)
    watch.take(c for c in live.changes if c.t <= t)  # type: ignore[attr-defined]
    return watch


def shown(watch: Watch, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(RunBlock(watch.summary(), "run r1"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    return str(text)


def test_while_streams_flow(live: LiveRun) -> None:
    begin = live.head["measure"][0]
    summary = at(live, begin + 4.9).summary()
    assert summary.phase == "measure"
    assert summary.progress == pytest.approx(0.15, abs=0.03)
    (app,) = summary.apps
    assert app.goodput is not None and app.goodput > 10
    assert app.p50 is not None and app.p95 is not None and 0 < app.p50 <= app.p95
    ((camera, *others),) = app.paths
    assert (camera.replica, camera.node) == ("camera/0", "n01")
    assert others[-1].replica == "screen/0"
    assert not summary.troubles and not summary.verdict


def test_while_a_node_is_crashed(live: LiveRun) -> None:
    crashed = next(c for c in of(live.changes, "node", "n02") if c.value["state"] == "crashed")  # type: ignore[attr-defined]
    watch = at(live, crashed.t + 1)
    assert watch.summary().troubles["n02"][0] == "crashed"
    text = shown(watch, 80)
    assert "n02 crashed: its agent was killed by a fault" in text
    assert "n02 crashed" in plain_line(watch.summary())


def test_the_last_switch_of_the_stream_has_its_reason(live: LiveRun) -> None:
    changes = of(live.changes, "route", "camera/0>detect")  # type: ignore[attr-defined]
    switched = [change for change in changes if change.value["switch"]]
    for last in switched:
        app = at(live, last.t).summary().apps[0]
        assert app.switch is not None
        assert (app.switch.t, app.switch.why) == (last.t, last.value["why"])
        assert last.value["to"] in [stop.replica for stop in app.paths[0]]


REASON = " ".join(f"word{number}" for number in range(60))


def test_on_request_reasons_are_whole_and_nothing_is_left_out(live: LiveRun) -> None:
    summary = replace(
        at(live, live.head["measure"][0] + 4.9).summary(),
        doubts=tuple(f"{number} {REASON}" for number in range(9)),
        troubles={f"n{number}": ("failed", REASON) for number in range(9)},
    )
    for terminal in (True, False):
        console = Console(file=io.StringIO(), width=60, color_system=None, force_terminal=terminal)
        console.print(RunBlock(summary, "run r1", whole=True), soft_wrap=not terminal)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in text and "and 4 more" not in text
        lines = text.splitlines()
        assert " ".join(" ".join(lines).split()).count(REASON) == 18
        assert terminal == all(len(line) <= 60 for line in lines)
    assert f"doubt: 8 {REASON}" in lines, "a line of a file holds the whole reason"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits_the_terminal(live: LiveRun, width: int) -> None:
    begin, end = live.head["measure"]
    for t in (0.0, begin, begin + 6.0, end, end + 60):
        shown(at(live, t), width)


def test_at_the_end_the_verdict_stands(live: LiveRun) -> None:
    text = shown(at(live, 1e9), 80)
    assert "verdict valid" in text
    assert "camera/0 n01 → detect/" in text


def test_before_anything_is_known(tmp_path: object) -> None:
    watch = Watch({"apps": []})
    assert "waiting" in shown(watch, 80)


OPERATORS = {"cam": "source", "work": "operator", "a": "sink", "b": "sink"}
HEAD: dict[str, Any] = {
    "apps": [
        {
            "name": "q",
            "kind": "query",
            "view": {
                "operators": [{"name": name, "role": role} for name, role in OPERATORS.items()],
                "edges": [["cam", "work"], ["work", "a"], ["work", "b"]],
                "replicas": [{"id": f"{name}/0", "operator": name, "node": "n1"} for name in OPERATORS],
            },
        }
    ]
}


def test_goodput_is_of_the_time_that_has_passed() -> None:
    watch = Watch(HEAD)
    watch.take([Change(0.5, "q", "total", "", {})])
    for second, many in [(7, 10), (8, 0)]:  # an idle replica says so once
        watch.take([Change(second + 0.5, "q", "rate", "a/0", {"in": many, "out": many})])
    for now, goodput in [(8.5, 2.0), (9.9, 2.0), (11.5, 2.0), (12.5, 0.0)]:
        watch.take([Change(now, "", "host", "", {})])
        assert watch.summary().apps[0].goodput == goodput


def test_after_the_end_goodput_is_that_of_the_last_measured_seconds() -> None:
    watch = Watch(HEAD)
    watch.take([Change(0.5, "q", "total", "", {})])
    for second in range(1, 12):
        many = 10 if second < 11 else 4  # the streams stop in this one
        watch.take([Change(second + 0.5, "q", "rate", "a/0", {"in": many, "out": many})])
    watch.take([Change(10.2, "", "phase", "", {"phase": "measure", "state": "finished", "outcome": "ok"})])
    for now in (10.9, 12.5, 40.0):
        watch.take([Change(now, "", "host", "", {})])
        assert watch.summary().apps[0].goodput == 10.0


def test_no_loss_is_shown_before_enough_is_known() -> None:
    watch = Watch(HEAD)
    watch.take([Change(10.0, "", "phase", "", {"phase": "measure", "state": "started"})])
    one = {"delivered": 0, "lost": 1, "waiting": 2, "loss": 1.0}
    watch.take([Change(11.5, "q", "total", "", one)])
    assert watch.summary().apps[0].loss is None
    assert "loss –, 2 waiting" in plain_line(watch.summary())
    watch.take([Change(12.5, "q", "total", "", {**one, "delivered": 9, "loss": 0.1})])
    assert watch.summary().apps[0].loss == 0.1
    watch.take([Change(20.5, "q", "total", "", one)])
    assert watch.summary().apps[0].loss == 1.0


def test_a_run_that_died_says_so() -> None:
    watch = Watch(HEAD)
    watch.take([Change(10.0, "", "phase", "", {"phase": "measure", "state": "started"})])
    watch.take([Change(12.0, "", "verdict", "", {"so_far": [], "died": True})])
    words = "died: its process is gone; rove down cleans up"
    assert words in shown(watch, 80)
    assert "no doubts" not in shown(watch, 80)
    assert words in plain_line(watch.summary())


def test_latency_is_of_all_tuples_of_all_sinks_together() -> None:
    draw = random.Random(1)
    watch = Watch(HEAD)
    everything: list[float] = []
    for second in range(1, 6):
        for sink, mean in [("a/0", 0.005), ("b/0", 0.3)]:
            found = [draw.expovariate(1 / mean) for _ in range(200 if sink == "a/0" else 15)]
            everything += found
            value = {"buckets": latency_buckets.counted(found)}
            watch.take([Change(second + 0.5, "q", "latency", sink, value)])
    everything.sort()
    app = watch.summary().apps[0]
    assert app.p50 == pytest.approx(everything[round(0.50 * (len(everything) - 1))], rel=0.05)
    assert app.p95 == pytest.approx(everything[round(0.95 * (len(everything) - 1))], rel=0.05)


def test_counts_of_latencies_are_small() -> None:
    draw = random.Random(2)
    found = [10 ** draw.uniform(-9, 9) for _ in range(5000)] + [0.0, -1.0]
    buckets = latency_buckets.counted(found)
    assert len(buckets) <= latency_buckets.MOST_BUCKETS
    assert sum(count for _, count in buckets) == len(found)
    assert latency_buckets.percentile(latency_buckets.added([]), 50) is None


def test_every_way_of_a_stream_is_shown() -> None:
    watch = Watch(HEAD)
    watch.take([Change(1.0, "q", "route", "cam/0>work", {"to": "work/0", "switch": False})])
    watch.take([Change(1.0, "q", "route", "work/0>b", {"to": "b/0", "switch": False})])
    paths = watch.summary().apps[0].paths
    assert [[stop.replica or f"no {stop.operator}" for stop in path] for path in paths] == [
        ["cam/0", "work/0", "no a"],
        ["cam/0", "work/0", "b/0"],
    ]
    assert "no way to a" in shown(watch, 80)


def test_a_flow_that_has_ended_is_counted_as_such() -> None:
    head = {"apps": [{"name": "f", "kind": "flows", "view": {"flows": [{"name": "x"}, {"name": "y"}]}}]}
    watch = Watch(head)
    value = {"sent": 8, "received": 8, "lost": 0.0, "delay": 0.1, "jitter": 0.0}
    watch.take(Change(1.0, "f", "flow", name, value) for name in "xy")
    watch.take([Change(9.0, "f", "flow", "x", None)])
    assert watch.summary().apps[0].ended == 1
    assert "1 of 2 flows ended" in shown(watch, 80)


def test_situations_around_moving_objects_are_counted() -> None:
    watch = Watch({"apps": [{"name": "i", "kind": "interest", "view": {"situations": [{"name": "ahead"}]}}]})
    assert "0 situations  0 switches" in shown(watch, 80)
    watch.take(
        [
            Change(1.0, "i", "region", "ahead", {"epoch": 3}),
            Change(1.0, "i", "situation", "ahead", {"count": 1, "delay": 0.5, "worst": 1.25}),
            Change(1.0, "i", "served", "b1", {"waiting": 5}),
        ]
    )
    assert "1 situation  at most 1.25 s late  3 switches  5 waiting" in shown(watch, 80)
