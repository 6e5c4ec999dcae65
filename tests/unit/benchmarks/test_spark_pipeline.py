"""The benchmark of the analysis: copies of runs, what DuckDB makes of them, what processes used."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.analysing.agreement import compare
from benchmarks.analysing.copies import Original, make_copies
from benchmarks.analysing.duck import analyse
from benchmarks.analysing.measuring import Failed, _Process, divided, measure
from tests.independent.making import make
from tests.independent.recomputed import Recomputed
from tests.independent.world import World


def sound_worlds(root: Path, count: int) -> list[tuple[World, Path]]:
    """Makes runs in virtual time with ground truth, in which no node lies and no line is damaged."""
    found: list[tuple[World, Path]] = []
    seed = 1000
    while len(found) < count:
        seed += 1
        if not World(seed).real:
            world, directory = make(seed, root / str(seed))
            told = world.told
            flawed = told.corrupt or told.refused or told.removed or told.duplicates
            if not flawed and (directory / "radio").exists():
                found.append((world, directory))
    return found


def test_duckdb_agrees_with_the_recomputation(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    originals = [Original(world.run, 1, path) for world, path in sound_worlds(tmp_path / "made", 4)]
    records = sum(original.records() for original in originals)
    copies = make_copies(originals, tmp_path / "runs", records)
    assert (copies.runs, copies.records) == (4, records)
    analyse(copies.sweep, tmp_path / "duckdb")
    for number, original in enumerate(originals, start=1):
        directory = copies.sweep.parent / f"{copies.sweep.name}.{number:05d}"
        recomputed = Recomputed(original.directory).summary()
        (directory / "summary.json").write_text(json.dumps(recomputed))
    found = compare(copies.sweep, tmp_path / "duckdb")
    assert found.compared > 100
    # There are no tables of Rove's here to compare with.
    assert [each for each in found.differences if "no such table" not in each] == []
    assert found.left_out == ()


def test_differences_are_found(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    ours = {"metrics": {"a": 1.0}, "apps": {"query": {"kind": "query", "metrics": {"lost": 3, "p": 0.5}}}}
    rove = {"metrics": {"a": 1.1}, "apps": {"query": {"metrics": {"lost": 4, "p": 0.5 + 1e-9, "new": 1}}}}
    (tmp_path / "duckdb").mkdir()
    (tmp_path / "runs" / "x" / "one").mkdir(parents=True)
    (tmp_path / "duckdb" / "summaries.json").write_text(json.dumps({"one": ours}))
    (tmp_path / "runs" / "x" / "one" / "summary.json").write_text(json.dumps(rove))
    found = compare(tmp_path / "runs" / "x" / "sweep", tmp_path / "duckdb")
    assert found.differences == (
        "one: metrics.a: DuckDB has 1.0, Rove 1.1",
        "one: apps.query.kind: DuckDB has 'query', Rove 'nothing'",
        "one: apps.query.metrics.lost: DuckDB has 3, Rove 4",
    )
    assert found.left_out == ("query.new",)


def test_children_are_measured(tmp_path: Path) -> None:
    busy = "x = bytearray(80_000_000)\nfor _ in range(2_000_000): pass\nimport time; time.sleep(1.2)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    cost = measure((sys.executable, "-c", code), 30, tmp_path / "log", tmp_path)
    assert cost.cpu_s > 0.02
    assert cost.peak_bytes > 80_000_000
    assert cost.parts["others"] > 0.02 and cost.parts["jvm"] == 0


def test_time_is_divided() -> None:
    processes = [
        _Process(pid, name, 1, 0, used, 0)
        for pid, name, used in ((7, "python", 2.0), (8, "java", 9.0), (9, "python", 1.0))
    ]
    threads = [("C2 CompilerThre", 3.0), ("C1 CompilerThre", 1.0), ("VM Thread", 0.5), ("Thread-4", 4.0)]
    assert divided(7, processes, threads) == {
        "own": 2.0,
        "jvm": 4.5,
        "compilers": 4.0,
        "collector": 0.5,
        "others": 1.0,
    }


def test_a_failed_analysis_says_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no disk"):
        measure((sys.executable, "-c", "raise SystemExit('no disk')"), 30, tmp_path / "log", tmp_path)
