"""What can be known about a radio network before it runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.radio_outlook import Outlook, look_ahead
from orchestrator.spec.topology import Topology
from tests.unit.specs import topology

DISC = {"model": "disc", "range": 250, "bandwidth": "11 Mb/s", "latency": 0}
LINE = {"model": "static", "grid": {"columns": 5, "spacing": 200}}


def outlook(seconds: float = 100.0, **changes: Any) -> Outlook:
    found = Topology.model_validate(topology(nodes=list("abcde"), area=[1200, 1200]) | changes)
    trace = generate_trace(found, 1, seconds)
    return look_ahead(found, trace, seconds, [(("camera", "a"), ("screen", "e"))])


def test_a_line_of_nodes() -> None:
    found = outlook(mobility=LINE, radio=DISC)
    assert found.static and found.samples == 1
    assert found.mean_degree == pytest.approx(8 / 5)
    assert found.isolated == {} and found.warnings == []
    (pair,) = found.pairs
    assert (pair.connected, pair.hops) == (1.0, {4: 1.0})
    assert set(found.ranges_m.values()) == {250.0}
    assert [(link.source, link.destination) for link in found.links[:3]] == [
        ("a", "b"),
        ("b", "a"),
        ("b", "c"),
    ]


def test_the_range_at_the_papers_setting() -> None:
    ranges = outlook(mobility=LINE, radio={"model": "80211b"}).ranges_m
    assert [round(reach or 0) for reach in ranges.values()] == [427, 452, 474]
    stronger = outlook(mobility=LINE, radio={"model": "80211b", "tx_power": "0 dBm"}).ranges_m
    assert stronger[0.5] == pytest.approx((ranges[0.5] or 0) * 10 ** (10 / 40), rel=1e-3)


def test_links_of_nodes_that_stand_still_are_listed_with_what_to_expect() -> None:
    found = outlook(mobility=LINE, radio={"model": "80211b"})
    good, poor = found.links[0], found.links[1]
    assert good.distance_m == 200.0 and good.expected_delivery == pytest.approx(1.0)
    assert (poor.source, poor.destination, poor.distance_m) == ("a", "c", 400.0)
    assert good.snr_db == pytest.approx((poor.snr_db or 0) + 12.04, abs=0.01)


def test_nobody_in_range() -> None:
    found = outlook(mobility=LINE, radio={"model": "80211b", "tx_power": "-40 dBm"})
    assert found.isolated == dict.fromkeys("abcde", 1.0)
    assert found.pairs[0].hops == {}
    assert found.warnings == [
        "nobody is ever in range of anybody: more power, a longer range or a smaller area is needed"
    ]


def test_source_and_sink_that_rarely_meet() -> None:
    moving = {"model": "random_waypoint", "speed": 5}
    found = outlook(mobility=moving, radio={"model": "80211b", "tx_power": "-30 dBm"})
    assert (found.static, found.samples, found.links) == (False, 100, ())
    assert 0 < found.pairs[0].connected < 0.5
    assert sum(found.pairs[0].hops.values()) == pytest.approx(1.0)
    assert "camera (a) and screen (e) are connected only" in found.warnings[0]


def test_a_matrix_of_losses_has_no_range() -> None:
    losses = {a: {b: 80} for a, b in zip("abcd", "bcde", strict=True)}
    moving = {"model": "random_waypoint", "speed": 5}
    matrix = {"model": "80211b", "pathloss": {"model": "matrix", "losses": losses}}
    found = outlook(mobility=moving, radio=matrix)
    assert set(found.ranges_m.values()) == {None}
    assert (found.samples, found.pairs[0].hops) == (1, {4: 1.0})
    assert found.mean_degree == pytest.approx(1.6)


def test_many_nodes_are_sampled_less_often() -> None:
    moving = {"model": "random_waypoint", "speed": 5}
    found = Topology.model_validate(topology(nodes=300, mobility=moving, radio=DISC))
    trace = generate_trace(found, 1, 1000.0)
    seen = look_ahead(found, trace, 1000.0, [(("camera", "n001"), ("screen", "n002"))])
    assert seen.samples == 44 and seen.step_s == pytest.approx(1000 / 44)


def test_plan_says_why_nothing_connects(tmp_path: Path) -> None:
    file = tmp_path / "far.yaml"
    radio = {"model": "80211b", "tx_power": "-30 dBm"}
    document = {
        "name": "far",
        "topology": topology(radio=radio),
        "query": "synthetic_chain",
        "duration": "60s",
    }
    file.write_text(json.dumps(document))
    shown = CliRunner().invoke(app, ["plan", str(file)])
    assert shown.exit_code == 0
    assert "warning camera" in shown.stdout and "What to expect" in shown.stdout
    found = json.loads(CliRunner().invoke(app, ["plan", str(file), "--json"]).stdout)["outlook"]
    assert found["cell"] == 1 and found["range_m"]["0.5"] == pytest.approx(143, abs=1)
    assert found["source_to_sink"][0]["connected"] < 0.5 and found["warnings"]
    assert found["mean_degree"] > 0 and found["isolated"]
