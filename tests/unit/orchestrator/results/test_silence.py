"""A run that delivers nothing although there was a way is not passed over."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics.summaries import notes_of
from orchestrator.results.inputs import RunInput
from orchestrator.results.silence import silences
from orchestrator.runs.run_directory import RunDirectory

SILENT: dict[str, Any] = {"delivered": 0, "goodput_fps": 0.0, "no_route_s": 0.0}


def app(**metrics: Any) -> dict[str, Any]:
    return {"query": {"kind": "query", "metrics": {**SILENT, **metrics}}}


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"source_sink_connected_ratio": 0.97}, "the radio had a way from source to sink for 97%"),
        ({"source_sink_connected_ratio": None}, "routing had a way from source to sink for 100%"),
        ({"source_sink_connected_ratio": None, "no_route_s": 20.0}, "for 67% of it"),
    ],
)
def test_silence_with_a_way_is_noted(metrics: dict[str, Any], said: str) -> None:
    (note,) = silences(app(**metrics), 60.0)
    assert said in note and note.startswith("nothing was delivered")


@pytest.mark.parametrize(
    "metrics",
    [
        {"source_sink_connected_ratio": 0.3},
        {"source_sink_connected_ratio": None, "no_route_s": 50.0},
        {"source_sink_connected_ratio": None, "no_route_s": None},
        {"source_sink_connected_ratio": 1.0, "delivered": 1},
        {"source_sink_connected_ratio": 1.0, "goodput_fps": 0.1},
    ],
)
def test_nothing_is_said_without_a_way_or_with_a_delivery(metrics: dict[str, Any]) -> None:
    assert silences(app(**metrics), 60.0) == []


def test_of_several_applications_the_silent_one_is_named() -> None:
    lively = {"kind": "query", "metrics": {**SILENT, "delivered": 3, "source_sink_connected_ratio": 1.0}}
    silent = {"kind": "query", "metrics": {**SILENT, "source_sink_connected_ratio": 1.0}}
    (note,) = silences({"one": lively, "other": silent}, 60.0)
    assert note.startswith("other: nothing was delivered")


def test_without_relays_a_way_of_several_hops_is_none() -> None:
    connected = {"source_sink_connected_ratio": 1.0}
    assert silences(app(**connected, no_route_s=60.0), 60.0, relays=False) == []
    assert silences(app(**connected, no_route_s=None), 60.0, relays=False) == []
    (note,) = silences(app(**connected, no_route_s=15.0), 60.0, relays=False)
    assert "the stream, over direct links, had a way from source to sink for 75% of it" in note


@pytest.mark.parametrize(("protocol", "notes"), [("none", 0), ("olsr", 1), (None, 1)])
def test_a_summary_knows_whether_nodes_relay(protocol: str | None, notes: int) -> None:
    apps = app(source_sink_connected_ratio=1.0, no_route_s=60.0)
    run = RunInput(RunDirectory(Path("runs/x/r1")), {"routing": protocol}, {}, {})
    assert len(notes_of(run, apps, {"series": {"window_s": (0.0, 60.0)}})) == notes
