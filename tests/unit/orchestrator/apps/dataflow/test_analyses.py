"""Paths, costs against the truth and the paper's values: the parts that need no Spark."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.apps.dataflow.analytics.cost_truth import Sample, compared, figures
from orchestrator.apps.dataflow.analytics.paths import effective_number
from orchestrator.apps.dataflow.paper import CLAIMS, REPLICAS, SPEED, paper_section
from orchestrator.results.link_changes import LinkLine, read_link_lines
from orchestrator.results.views import View
from orchestrator.runs.run_directory import RunDirectory


def test_the_effective_number_of_paths() -> None:
    assert effective_number([]) is None
    assert effective_number([[7]]) == 1.0
    assert effective_number([[5, 5, 5, 5]]) == 4.0
    assert 1.0 < (effective_number([[99, 1]]) or 0) < 1.1
    # Two streams with a path each did not choose between two paths.
    assert effective_number([[5], [5]]) == 1.0


def sample(t_ns: int, here: str, there: str, believed: float | None, metric: str = "etx") -> Sample:
    return Sample(t_ns, here, there, believed, metric)


def test_the_truth_is_the_cheapest_path_of_that_moment() -> None:
    links = [
        LinkLine(0, "a", "b", True, 1.0),
        LinkLine(0, "b", "c", True, 2.0),
        LinkLine(5, "a", "c", True, 2.5),
        LinkLine(7, "a", "c", False, None),
        LinkLine(7, "b", "c", True, float("nan")),
    ]
    samples = [
        sample(0, "a", "c", 3.0),
        sample(4, "a", "c", 2.0, "hops"),
        sample(5, "a", "c", 5.0),
        sample(6, "a", "a", 0.0),  # nothing to believe
        sample(6, "c", "a", 1.0),  # links have a direction
        sample(8, "a", "c", None),
    ]
    found = list(compared(samples, iter(links)))
    assert [true for _, true in found] == [3.0, 2.0, 2.5, None, None]
    got = figures(found)
    assert got["cost_error_ratio"] == 0.0 and got["cost_bias_ratio"] == pytest.approx(2 ** (1 / 3))
    assert (got["cost_unknown_ratio"], got["cost_phantom_ratio"]) == (0.0, 0.5)


@pytest.mark.parametrize("believed", [-1.0, 0.0, 1e300])
def test_impossible_costs_are_not_compared(believed: float) -> None:
    got = figures([(sample(0, "a", "b", believed), 1.0)])
    assert (got["cost_error_ratio"], got["cost_bias_ratio"], got["cost_unknown_ratio"]) == (None, None, 0.0)


def test_without_samples_nothing_is_claimed(tmp_path: Path) -> None:
    assert set(figures([]).values()) == {None}
    assert list(read_link_lines(tmp_path / "links.jsonl")) == []


def view(experiment: str, cells: list[dict[str, Any]]) -> View:
    return View(RunDirectory(Path("runs") / experiment / "r1"), {}, "query", "query", (), cells, (), {})


def cell(k: int, speed: float, ratio: float | None) -> dict[str, Any]:
    found = {"ratio_of_means": ratio, "ratio_of_means_95": [1.5, 3.0] if ratio else None, "pairs": 5}
    ratios = dict.fromkeys(("goodput_fps", "latency_p95_s"), found)
    return {
        "factors": {SPEED: speed, REPLICAS: k},
        "versus": {"factors": {SPEED: speed, REPLICAS: 1}, "ratios": ratios},
    }


def test_the_papers_values_stand_beside_ours() -> None:
    page = paper_section(view("fig5", [cell(1, 10.0, 1.0), cell(3, 10.0, 2.2), cell(2, 7.0, 1.0)]))
    assert "Figure 5: Throughput by node speed" in page and "Figure 6" in page
    assert "<td>2.6×</td><td>2.20×</td><td>1.50 to 3.00</td><td>5</td>" in page
    assert page.count("<tr>") == 4  # each figure: its head and one row, no cell with a speed of its own
    assert paper_section(view("mine", [cell(3, 10.0, 2.2)])) == ""
    assert "–" in paper_section(view("fig6", [cell(3, 10.0, None)]))


def test_every_stated_value_belongs_to_a_cell_of_its_figure() -> None:
    for claim in CLAIMS.values():
        assert {value for value, _ in claim.stated} <= set(claim.by_words)
