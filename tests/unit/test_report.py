"""A report of many runs, rendered from results as the analysis keeps them."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics.cells import AVERAGED, cells
from orchestrator.analytics.inputs import RunInput, read_run
from orchestrator.analytics.report import render
from orchestrator.analytics.views import label_of
from orchestrator.lifecycle.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.synthetic_runs import RunWriter
from tests.unit.specs import experiment, topology

Rendered = tuple[RunInput, dict[str, Any]]


def result(k: int, speed: int, seed: int) -> dict[str, Any]:
    fps = 2.0 * k - speed / 10 + seed / 10
    fates = {"delivered": 80 + k, "dropped:source_buffer_full": 10, "in_flight_at_end": 2}
    metrics = dict.fromkeys(AVERAGED, 1.0) | {"throughput_fps": fps, "latency_p95_s": 3.0 / k, "fates": fates}
    overhead = {"LQ_TC": {"sent_bps": 100.0 + seed, "forwarded_bps": 20.0}}
    return {
        "metrics": metrics | {"source_sink_connected_ratio": 0.5, "routing_overhead": overhead},
        "telemetry": {"records": 10, "missing": 0, "corrupt_lines": 0},
        "latency_quantiles_s": [speed * step / 200 / k for step in range(201)],
        "series": {
            "window_s": [10.0, 110.0],
            "ended_s": 112.0,
            "deliveries": [[second, 1 + (second + seed) % k, 100] for second in range(10, 110)],
            "routes": [
                [1.0, "source/0", "detect", "detect/0"],
                [40.0, "source/0", "detect", f"detect/{k - 1}"],
            ],
            "connectivity": [[0.0, 60.0, True], [60.0, 112.0, False]],
            "positions": {f"n{index}": [[0.0, index], [50.0, 10.0 * index]] for index in range(1, 10)},
            "links": [[100, 90, 0.95], [40, 10, 0.5]],
            "neighbours": [
                [0.0, 1.5, 0, 3, 2],
                [50.0, 2.5, 1, 4, 2],
                [60.0, 0.5, 0, 1, None],
                [111.0, 0.5, 0, 1, 1],
            ],
        },
    }


def forty_five_runs(root: Path, speed_name: str) -> list[Rendered]:
    runs = []
    for number in range(45):
        k, speed, seed = number // 15 + 1, (1, 5, 10)[number // 5 % 3], number % 5 + 1
        directory = RunWriter(root, "many", f"r.{number:02d}", k).write(
            {"replicas": k, speed_name: f"{speed} m/s", "seed": seed}, seed
        )
        runs.append((read_run(RunDirectory(directory)), result(k, speed, seed)))
    return runs


def page_of(runs: list[Rendered], **summary: Any) -> str:
    summaries = [
        {"run": run.run, "factors": run.factors, "seed": run.manifest["seed"], "verdict": "valid"}
        | {"metrics": found["metrics"]}
        for run, found in runs
    ]
    document = {"run": "r", "verdict": "valid", "reasons": [], "cells": cells(summaries, [True] * len(runs))}
    return render(RunDirectory(runs[0][0].directory.path.with_name("r")), document | summary, runs)


def test_forty_five_runs_are_nine_rows_and_nine_figures(tmp_path: Path) -> None:
    page = page_of(forty_five_runs(tmp_path, "topology.mobility.speed"))
    table = page[page.index("<h2>Results") : page.index("<h2>Figures")]
    assert table.count("<tr><td>") == 9
    assert "k = 3, speed = 10 m/s" in table
    assert page.count("<svg") == 9
    overhead = page[page.index('<h2 id="overhead">') : page.index("<h2>Radio")]
    assert overhead.count("<tr><td>") == 9
    assert overhead.count("123 <small>(20)</small>") == 9  # of five seeds, 103 own in the mean
    assert "71 % of 140 transmissions arrived, where 82 % were to be expected" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert set(used) <= set(ids)


def radio_section(page: str) -> str:
    return page[page.index("<h2>Radio and connectivity") : page.index("<h2>How to reproduce")]


def one_run(root: Path) -> list[Rendered]:
    directory = RunWriter(root, "one", "r", 1).write()
    return [(read_run(RunDirectory(directory)), result(1, 1, 1))]


def test_radio_and_connectivity_of_a_run(tmp_path: Path) -> None:
    runs = one_run(tmp_path)
    spec = experiment(topology=topology(radio={"model": "80211b"})).resolved()
    runs[0][0].directory.spec.write_text(to_yaml(spec))
    section = radio_section(page_of(runs, radio=None))
    assert "full frames arrive: 90% up to 427 m, 50% up to 452 m, 10% up to 474 m" in section
    assert "1.2 in the mean, between 0 and 4" in section
    assert "connected 50.0 % of the measured window, then over 2 hops (100 %)" in section
    assert re.findall(r'<figure class="card" id="([^"]+)"', section) == [
        "connectivity",
        "degree",
        "reach",
        "links",
    ]
    assert 'aria-label="Expected delivery over distance: full frames arrive' in section
    assert 'aria-label="Neighbours of a node over time, by ground truth: 1.2 in the mean' in section
    assert section == radio_section(page_of(runs, radio=None))


def test_without_ground_truth_or_a_specification_the_section_says_what_it_can(tmp_path: Path) -> None:
    runs = one_run(tmp_path)
    series = runs[0][1]["series"]
    del series["neighbours"]  # as kept by an earlier version
    series |= {"links": [], "connectivity": []}
    assert "nobody was in range of anybody" in radio_section(page_of(runs))
    series["positions"] = {}
    runs[0][1]["metrics"]["source_sink_connected_ratio"] = None
    assert "Radio and connectivity" not in page_of(runs)


def test_it_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    page = page_of(forty_five_runs(tmp_path, "speed")[:2])
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "@import" not in page
    assert "<script" not in page


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '" onload="x', "$\\frac{$"])
def test_text_from_outside_is_only_text_wherever_it_goes(tmp_path: Path, hostile: str) -> None:
    found = Elements()
    found.feed(page_of(forty_five_runs(tmp_path, hostile)[::15], reasons=[hostile]))
    assert "script" not in found.tags
    assert not any(name.startswith("on") for name in found.attributes)


def test_labels_are_short() -> None:
    assert label_of({"replicas": 2, "topology.mobility.speed": "5 m/s"}) == "k = 2, speed = 5 m/s"
    assert label_of({}) == ""
