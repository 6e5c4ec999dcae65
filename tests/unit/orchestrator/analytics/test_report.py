"""A report of many runs, rendered from results as the analysis keeps them."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics.core.run_figures import extent, levels
from orchestrator.analytics.report import render
from orchestrator.analytics.summaries import run_summary
from orchestrator.results import registry
from orchestrator.results.cells import cells
from orchestrator.results.faults import died_s
from orchestrator.results.inputs import RunInput, read_run
from orchestrator.results.views import label_of
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.synthetic_runs import RunWriter
from tests.unit.specs import experiment, topology

Rendered = tuple[RunInput, dict[str, Any]]
AVERAGED = [metric.name for metric in registry.ANALYTICS["query"].metrics if metric.averaged]


def result(k: int, speed: int, seed: int) -> dict[str, Any]:
    fps = 2.0 * k - speed / 10 + seed / 10
    fates = {"delivered": 80 + k, "dropped:source_buffer_full": 10, "in_flight_at_end": 2}
    metrics = dict.fromkeys(AVERAGED, 1.0) | {"throughput_fps": fps, "latency_p95_s": 3.0 / k, "fates": fates}
    overhead = {"LQ_TC": {"sent_bps": 100.0 + seed, "forwarded_bps": 20.0}}
    query = {
        "kind": "query",
        "metrics": metrics | {"source_sink_connected_ratio": 0.5},
        "series": {
            "latency_quantiles_s": [speed * step / 200 / k for step in range(201)],
            "moves": [],
            "deliveries": [[second, 1 + (second + seed) % k, 100] for second in range(10, 110)],
            "routes": [
                [1.0, "source/0", "detect", "detect/0"],
                [40.0, "source/0", "detect", f"detect/{k - 1}"],
            ],
            "connectivity": [[0.0, 60.0, True], [60.0, 112.0, False]],
            "hops": [[0.0, 2], [50.0, 2], [60.0, None], [111.0, 1]],
            "operator_faults": {},
            "never_emitted": 0,
        },
    }
    return {
        "metrics": {"routing_overhead": overhead, "routing_overhead_bps": 120.0 + seed},
        "series": {
            "telemetry": {"records": 10, "missing": 0, "corrupt_lines": 0, "refused": 0},
            "nodes": {},
            "window_s": [10.0, 110.0],
            "ended_s": 112.0,
            "positions": {f"n{index}": [[0.0, index], [50.0, 10.0 * index]] for index in range(1, 10)},
            "links": [[100, 90, 0.95], [40, 10, 0.5]],
            "boots": {},
            "faults": [],
            "neighbours": [[0.0, 1.5, 0, 3], [50.0, 2.5, 1, 4], [60.0, 0.5, 0, 1], [111.0, 0.5, 0, 1]],
        },
        "apps": {"query": query},
    }


def query_of(rendered: Rendered) -> dict[str, Any]:
    found: dict[str, Any] = rendered[1]["apps"]["query"]
    return found


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
    summaries = [run_summary(run, found) for run, found in runs]
    usable = [run.is_usable for run, _ in runs]
    document = {"run": "r", "verdict": "valid", "reasons": [], "cells": cells(summaries, usable)}
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


def routing_sweep(root: Path, verdicts: dict[str, str]) -> list[Rendered]:
    """One run for each protocol, by its verdict."""
    runs = []
    for number, (routing, verdict) in enumerate(verdicts.items()):
        writer = RunWriter(root, "protocols", f"r.{number}", 1)
        directory = writer.write({"routing": routing}, 1, verdict)
        (directory / "spec.yaml").write_text(to_yaml(experiment(routing=routing, backend="netns").resolved()))
        runs.append((read_run(RunDirectory(directory)), result(1, 1, 1)))
    return runs


def figure(page: str, name: str) -> str:
    return page[page.index(f'<figure class="card" id="{name}"') :].partition("</figure>")[0]


def test_figures_are_drawn_from_the_runs_in_the_means(tmp_path: Path) -> None:
    runs = routing_sweep(tmp_path, {"olsr": "valid", "babel": "invalid", "aodv": "valid", "olsrd": "valid"})
    page = page_of(runs, verdict="invalid")
    assert "Invalid as a whole: 3 of 4 runs can be used, the other one is not in the means." in page
    assert "do not use these numbers" not in page
    drawn = page[page.index("<h2>Figures") : page.index("<h2>Runs")]
    assert "left out: r.1." in drawn
    assert "babel" not in drawn
    for name in ("goodput-time", "latency", "factor", "fates", "connectivity"):
        assert "aodv" in figure(page, name)


def test_where_no_run_can_be_used_they_are_drawn_and_said_to_be_no_result(tmp_path: Path) -> None:
    page = page_of(routing_sweep(tmp_path, {"olsr": "invalid", "babel": "invalid"}), verdict="invalid")
    assert "Invalid: it ran, but do not use these numbers." in page
    assert "None of the runs is valid" in page
    assert "babel" in figure(page, "fates")


def test_overhead_that_nobody_counted_is_unknown_and_without_a_daemon_there_is_none(tmp_path: Path) -> None:
    runs = routing_sweep(tmp_path, dict.fromkeys(("olsr", "babel", "ground_truth"), "valid"))
    for _, found in runs[1:]:
        found["metrics"] |= {"routing_overhead": {}, "routing_overhead_bps": None}
    page = page_of(runs)
    table = page[page.index('<h2 id="overhead">') : page.index("<h2>Radio")]
    assert "<td>routing = olsr</td><td>121 <small>(20)</small></td><td>121</td>" in table
    assert "<td>routing = babel</td><td>–</td><td>–</td>" in table
    assert "<td>routing = ground_truth</td><td>0</td><td>0</td>" in table


def bars(page: str) -> list[float]:
    """How long the bars of the figure of routes are, from left to right."""
    corners = r'd="M ([\d.]+) \S+ \nL \S+ \S+ \nL ([\d.]+) [^"]+" style="stroke: var\(--paper\)"'
    found = sorted((float(a), float(b)) for a, b in re.findall(corners, figure(page, "routes")))
    return [b - a for a, b in found]


def test_faults_are_listed_in_both_clocks_marked_and_end_what_an_agent_had_chosen(tmp_path: Path) -> None:
    directory = RunWriter(tmp_path, "faulty", "r").write()
    found = result(2, 1, 1)
    run = (read_run(RunDirectory(directory)), found)
    assert 'id="faults"' not in page_of([run])
    found["series"] |= {
        "faults": [["crash", "n2", 50.0, 70.0], ["silence", "n9", 90.0, None]],
        "boots": {"n1": [[0.0, 112.0]], "n2": [[0.0, 49.0], [69.5, 112.0]]},
    }
    routes = [[0.0, "detect/0", "sink", "sink/0"], [75.0, "detect/0", "sink", "sink/0"]]
    found["apps"]["query"]["series"]["routes"] = routes
    page = page_of([run])
    listed = page[page.index('<h2 id="faults">') : page.index("<h2>Figures")]
    killed = "<td>1: agent killed on n2 (detect/0)</td>"
    assert f"{killed}<td>50.0</td><td>70.0</td><td>40.0</td><td>60.0</td>" in listed
    silent = "<td>2: radio silent on n9 (sink/0)</td>"
    assert f"{silent}<td>90.0</td><td>the end</td><td>80.0</td><td>the end</td>" in listed
    for name in ("goodput-time", "routes", "degree", "connectivity"):
        assert "shaded: faults" in figure(page, name)
    assert "agent killed on n2 (detect/0) from 50.0 s to 70.0 s" in figure(page, "routes")
    until_killed, after_restart = bars(page)
    assert until_killed / after_restart == pytest.approx(50 / (112 - 75), rel=1e-3)


def test_what_an_agent_had_chosen_ends_with_it(tmp_path: Path) -> None:
    found = result(2, 1, 1)
    boots = {"n1": [[0.0, 112.0]], "n2": [[0.0, 49.0], [69.5, 112.0]], "n3": [[0.0, 30.0]]}
    found["series"] |= {"faults": [["crash", "n2", 50.0, 70.0]], "boots": boots}
    for node, since_s, end_s in [
        ("n1", 1.0, 112.0),
        ("n2", 1.0, 50.0),  # its last record is older
        ("n2", 75.0, 112.0),
        ("n3", 1.0, 30.0),  # nobody's fault
        ("n4", 1.0, inf),
    ]:
        assert died_s(found, node, since_s) == end_s


def test_faults_at_other_times_in_other_runs_are_not_marked_in_what_they_share(tmp_path: Path) -> None:
    runs = routing_sweep(tmp_path, {"olsr": "valid", "aodv": "valid"})
    for (_, found), begin in zip(runs, (50.0, 60.0), strict=True):
        found["series"]["faults"] = [["crash", "n2", begin, None]]
    page = page_of(runs)
    assert "shaded" not in figure(page, "goodput-time")
    assert "shaded" in figure(page, "routes")


def test_words_are_not_joined_by_a_line(tmp_path: Path) -> None:
    def lines(page: str) -> int:
        """Strokes in the colour of the first series: of error bars, and between points."""
        return len(
            re.findall(r'<path d="[^"]+" clip-path[^>]+stroke: var\(--series-0\)', figure(page, "factor"))
        )

    words = page_of(routing_sweep(tmp_path, dict.fromkeys(("olsr", "babel", "aodv"), "valid")))
    numbers = page_of(forty_five_runs(tmp_path, "speed")[::15])
    # Each point has an error bar in each of two panels; only numbers are joined.
    assert (lines(words), lines(numbers)) == (6, 8)


def test_a_wide_range_of_latency_has_plain_numbers_at_its_ticks(tmp_path: Path) -> None:
    runs = one_run(tmp_path)
    query_of(runs[0])["series"]["latency_quantiles_s"] = [0.004 * 1.03**step for step in range(201)]
    page = page_of(runs)
    assert "mathdefault" not in page
    assert re.findall(r"<text[^>]*>(0\.01|0\.1|1)</text>", figure(page, "latency")) == ["0.01", "0.1", "1"]


def test_much_loss_is_seen_beside_goodput(tmp_path: Path) -> None:
    runs = one_run(tmp_path)
    query_of(runs[0])["metrics"] |= {
        "goodput_fps": 0.8,
        "offered_fps": 10.0,
        "shed_ratio": 0.0,
        "network_loss_ratio": 0.92,
    }
    assert '<td>0.80</td><td>10.00</td><td>0.0</td><td><strong class="bad">92.0</strong></td>' in page_of(
        runs
    )
    query_of(runs[0])["metrics"]["network_loss_ratio"] = 0.2
    assert "<td>0.80</td><td>10.00</td><td>0.0</td><td>20.0</td>" in page_of(runs)


@pytest.mark.parametrize(
    ("points", "wide", "high"),
    [
        ([(0.0, 5.0), (800.0, 5.0)], 880.0, 264.0),
        ([(5.0, 0.0), (5.0, 440.0)], 440.0, 484.0),
        ([(3.0, 4.0)], 1.1, 0.33),
        ([(0.0, 0.0), (100.0, 50.0)], 110.0, 55.0),
    ],
)
def test_a_map_is_never_flat(points: list[tuple[float, float]], wide: float, high: float) -> None:
    (left, right), (bottom, top) = extent(points)
    assert right - left == pytest.approx(wide)
    assert top - bottom == pytest.approx(high)
    assert all(left < x < right and bottom < y < top for x, y in points)


def test_labels_on_a_map_do_not_cover_each_other() -> None:
    names = [f"detect/{index} (n{index})" for index in range(12)]
    heights = levels([(index / 12, 0.1, name) for index, name in enumerate(names)])
    assert all(one != other for one, other in pairwise(heights))
    assert levels([(0.0, 0.1, "a/0 (a)"), (0.5, 0.1, "b/0 (b)")]) == [4, 4]
    assert len(set(levels([(0.5, 0.1, "all in one place")] * 9))) == 9


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
    series["links"] = []
    query_of(runs[0])["series"]["connectivity"] = []
    assert "nobody was in range of anybody" in radio_section(page_of(runs))
    series["positions"] = {}
    query_of(runs[0])["metrics"]["source_sink_connected_ratio"] = None
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
