"""`rove top` on real nodes: their streams, links and clocks are seen while the run goes on."""

import time

import pytest

from orchestrator.cli.fetching import fetching
from orchestrator.live.run import LiveRun
from orchestrator.live.state import State
from orchestrator.live.summary import Watch
from tests.ssh.drill import PATIENCE_S, TEST_S, Drill
from tests.ssh.lab import Lab

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]


def test_streams_on_real_nodes_are_seen_live(lab: Lab) -> None:
    with Drill(lab, "top", duration="120s") as drill:
        drill.reach("measure")
        live = LiveRun(drill.run)
        watch = Watch(live.head)
        with fetching(drill.run):
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until:
                watch.take(live.poll())
                watch.know(live.head)
                (app,) = watch.summary().apps
                if app.goodput and app.p95 is not None and watch.state.of("link") and app.paths[0]:
                    break
                time.sleep(0.1)
        assert app.goodput
        assert app.p95 is not None and 0 < app.p95 < 20
        assert live.head["links"] == "routing"
        assert set(watch.state.of("clock")) == {node.name for node in lab.nodes}
        assert drill.run.verdict.exists() is False, "it is seen while it goes on"
        drill.process.terminate()
        drill.finish()
        while not live.ended:
            watch.take(live.poll())
        live.close()
    again, later = LiveRun(drill.run), State()
    while not again.ended:
        later.take(again.poll())
    assert watch.state.of("record") == later.of("record")
    assert watch.state.of("node") == later.of("node")
    routes, known = watch.state.of("route", "query"), later.of("route", "query")
    assert {key: value["to"] for key, value in routes.items()} == {k: v["to"] for k, v in known.items()}
