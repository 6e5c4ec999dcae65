"""The benchmark ``beyond``: what it compares differs in what it says, and in nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import beyond
from benchmarks.beyond import APART, OURS, PAPER, PARTS, WAYS, cell_of, cpu_of, ends, plan_of, row
from benchmarks.paper.cells import Kept, key_of
from benchmarks.paper.figures import CORE, FIGURES, planned
from tests.unit.benchmarks.made_up_cells import kept_cell


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_the_same_seed_has_the_same_source_and_sink(seed: int) -> None:
    plans = {way: plan_of(cell_of(WAYS[way], "sim", {}), seed) for way in WAYS}
    assert len({ends(plan) for plan in plans.values()}) == 1
    outer = set(ends(plans[PAPER]))
    inner = {
        way: {replica.node for name in plan.query.inner() for replica in plan.of(name)}
        for way, plan in plans.items()
    }
    assert inner[OURS] & outer
    assert not inner[PAPER] & outer and not inner[APART] & outer


def test_only_routing_and_placement_differ() -> None:
    base = cell_of({}, "sim", {}).experiment.resolved()
    for changes in (*WAYS.values(), *PARTS.values()):
        found = cell_of(changes, "sim", {}).experiment.resolved()
        assert {key for key in base if base[key] != found[key]} <= {"routing", "placement"}
        assert found["replicas"] == 3
        assert found["topology"]["mobility"]["speed"] == 10.0


def test_the_papers_way_is_figure_5s_cell() -> None:
    keys = [key_of(cell.experiment) for cell in planned(FIGURES[5], CORE, "sim")]
    assert key_of(cell_of({}, "sim", {}).experiment) == keys[-1]


def test_a_row_pairs_seeds_and_says_what_a_node_computes(tmp_path: Path) -> None:
    cell, base = (cell_of(WAYS[way], "sim", {}) for way in (OURS, PAPER))
    kept = Kept(tmp_path / "cells.jsonl")
    for seed in range(1, 7):
        kept.add(kept_cell("base", seed, 5.0 + seed))
        kept.add(kept_cell("ours", seed, 2 * (5.0 + seed)))
    found = row(OURS, cell, kept.of("ours"), kept.of("base"))
    assert found["ratio"] == pytest.approx(2.0)
    assert found["ci_low"] == pytest.approx(2.0)
    assert (found["pairs"], found["seeds_that_gain"]) == (6, 6)
    needed = [2 * (5.0 + seed) * cpu_of(plan_of(cell, seed)) for seed in range(1, 7)]
    assert found["busiest_cpu"] == pytest.approx(max(needed))
    assert found["busiest_cpu"] > found["goodput"] * cpu_of(plan_of(cell, 1)), "seed 1 is not the busiest"
    assert cpu_of(plan_of(cell, 1)) == pytest.approx(0.010)  # both operators on one node
    assert cpu_of(plan_of(base, 1)) == pytest.approx(0.005)


def test_what_older_code_ran_is_run_again_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cells.jsonl"
    again: list[int] = []
    for changes in WAYS.values():
        Kept(path).add(kept_cell(key_of(cell_of(changes, "sim", {}).experiment), 1, 5.0))

    def found(*arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(
            "sys.argv", ["beyond", "--json", "--seeds", "1", "--cells", str(path), *arguments]
        )
        beyond.main()
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        return shown

    monkeypatch.setattr(beyond, "run_all", lambda todo, *_: again.append(len(todo)))
    monkeypatch.setattr(beyond, "since", lambda commit, root: lambda other: other == commit)
    assert found()["commits"] == ["c0ffeec0ffee"]
    found("--since", "later")
    assert again == [0, len(WAYS)]
