"""The paper's figures: their files plan, finished cells are kept, statistics, pages, and a small figure."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from benchmarks import paper_figures
from benchmarks.paper.campaign import Task, missing, tasks_of
from benchmarks.paper.cells import Kept, key_of
from benchmarks.paper.commits import since
from benchmarks.paper.drawings import drawing
from benchmarks.paper.figures import CORE, FIGURES, IN_WORDS, PaperFigure, planned
from benchmarks.paper.machines import machine_in_words
from benchmarks.paper.pages import BY_HAND, END, write_index, write_page
from benchmarks.paper.summaries import in_json, summary
from benchmarks.paper.workplace import LOCK, PREFIX, workplace
from benchmarks.paper_figures import summaries
from orchestrator.analytics.report_files import standalone
from orchestrator.apps.dataflow.paper import REPLICAS
from orchestrator.errors import BadInput
from orchestrator.runs.journal import try_lock
from tests.unit.benchmarks.made_up_cells import kept_cell, made_up

SHORT = ("--warmup", "1", "--duration", "2", "--jobs", "1")
ALL = [(figure, variant) for figure in FIGURES.values() for variant in figure.variants]


@pytest.mark.parametrize(("figure", "variant"), ALL, ids=lambda each: getattr(each, "number", each))
def test_every_variant_plans(figure: PaperFigure, variant: str) -> None:
    cells = planned(figure, variant, "sim")
    places = {(figure.label(cell.factors), cell.factors[REPLICAS]) for cell in cells}
    assert len(places) == len(cells)
    assert {figure.label(cell.factors) for cell in cells} == set(figure.by_words.values())
    assert all(cell.factors.get("query", "face_recognition") == "face_recognition" for cell in cells)
    assert IN_WORDS[variant]


def test_figures_5_and_6_share_their_runs() -> None:
    five, six = ([key_of(cell.experiment) for cell in planned(FIGURES[n], CORE, "sim")] for n in (5, 6))
    assert five == six
    assert len(set(five)) == 9


def test_variants_and_backends_are_other_cells() -> None:
    figure = FIGURES[5]
    keys = [key_of(cell.experiment) for v in figure.variants for cell in planned(figure, v, "sim")]
    keys += [key_of(cell.experiment) for cell in planned(figure, CORE, "netns")]
    assert len(set(keys)) == len(keys)


def test_seeds_are_not_part_of_the_key() -> None:
    cell = planned(FIGURES[7], CORE, "sim")[0]
    tasks = tasks_of(cell, "cell", [1, 2])
    assert [task.place for task in tasks] == [(key_of(cell.experiment), 1), (key_of(cell.experiment), 2)]
    assert key_of(tasks[1].experiment) == key_of(cell.experiment)


def test_cells_are_kept_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "cells.jsonl"
    Kept(path).add(kept_cell("a", 1, 5.0))
    Kept(path).add(kept_cell("a", 2, 6.0, verdict="invalid"))
    again = Kept(path)
    assert again.is_done(("a", 1))
    assert not again.is_done(("a", 2))  # it is tried again
    assert [cell.seed for cell in again.of("a")] == [1, 2]


def test_cells_of_older_code_are_run_again_if_asked(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout.strip()

    def commit(title: str) -> str:
        git("commit", "-q", "--allow-empty", "-m", title)
        return git("rev-parse", "HEAD")

    git("init", "-q", "-b", "main")
    old, new, newer = map(commit, ("old", "new", "newer"))
    git("checkout", "-q", "-b", "beside", old)
    beside = commit("beside")
    cell = planned(FIGURES[5], CORE, "sim")[0]
    commits = [old, new, newer, beside, None, "f" * 40, "--all"]
    tasks = tasks_of(cell, "cell", range(len(commits)))
    kept = Kept(tmp_path / "cells.jsonl")
    for task, by in zip(tasks, commits, strict=True):
        kept.add(msgspec.structs.replace(kept_cell(task.key, task.experiment.seed, 5.0), commit=by))
    assert missing(tasks, kept) == []
    again = missing(tasks, kept, since("main~1", tmp_path))
    assert sorted(task.experiment.seed for task in again) == [0, 3, 4, 5, 6]
    kept.add(msgspec.structs.replace(kept_cell(tasks[0].key, 0, 6.0), commit=newer))
    assert len(missing(tasks, kept, since("main~1", tmp_path))) == 4
    with pytest.raises(BadInput, match="--since nowhere: there is no such commit here"):
        since("nowhere", tmp_path)


def test_a_torn_line_loses_that_cell_only(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    Kept(path).add(kept_cell("a", 1, 5.0))
    with path.open("a") as file:
        file.write('{"key": "b", "se')
    Kept(path).add(kept_cell("c", 1, 7.0))
    assert sorted(cell.key for cell in Kept(path).all()) == ["a", "c"]


def test_a_valid_run_is_not_replaced_by_an_invalid_one(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "cells.jsonl")
    kept.add(kept_cell("a", 1, 5.0))
    kept.add(kept_cell("a", 1, 4.0, verdict="invalid"))
    assert [cell.figures["goodput_fps"] for cell in kept.all()] == [5.0]


def test_what_is_missing_is_run_once_and_the_longest_first(tmp_path: Path) -> None:
    small, large = planned(FIGURES[5], CORE, "sim")[0], planned(FIGURES[7], CORE, "sim")[0]
    tasks = [
        *tasks_of(small, "small", [1, 2, 3]),
        *tasks_of(small, "again", [1]),
        *tasks_of(large, "large", [1]),
    ]
    kept = Kept(tmp_path / "cells.jsonl")
    kept.add(kept_cell(key_of(small.experiment), 2, 5.0))
    todo = missing(tasks, kept)
    assert [(task.name, task.experiment.seed) for task in todo] == [("large", 1), ("small", 1), ("small", 3)]
    assert todo[0].cost > todo[1].cost


def test_gains_are_paired_and_beside_the_papers(tmp_path: Path) -> None:
    figure = FIGURES[5]
    kept = made_up(tmp_path / "cells.jsonl", figure, seeds=6)
    cells = planned(figure, CORE, "sim")
    found = summary(figure, CORE, "sim", cells, kept)
    assert (found.valid, found.planned, found.labels) == (54, 54, ("1 m/s", "5 m/s", "10 m/s"))
    gains = in_json(figure, [found])["fig5_gain"]["core, sim"]
    assert gains["10 m/s, k=3"]["ours"] == pytest.approx(2.0)
    assert gains["10 m/s, k=3"]["paper"] == 2.6
    assert gains["10 m/s, k=3"]["agrees"] is False
    assert gains["10 m/s, k=3"]["pairs"] == 6
    latency = summary(FIGURES[6], CORE, "sim", planned(FIGURES[6], CORE, "sim"), kept)
    assert latency.of("1 m/s")[2].ratio == pytest.approx(0.5)
    assert latency.of("1 m/s")[2].agrees is True


def test_a_seed_without_a_valid_partner_does_not_count(tmp_path: Path) -> None:
    figure = FIGURES[7]
    kept = Kept(tmp_path / "cells.jsonl")
    cells = planned(figure, CORE, "sim")
    single, double = (key_of(cell.experiment) for cell in cells[:2])
    for seed in (1, 2, 3, 4):
        kept.add(kept_cell(single, seed, 10.0, verdict="invalid" if seed == 4 else "valid"))
        kept.add(kept_cell(double, seed, 100.0 if seed == 4 else 15.0))
    found = summary(figure, CORE, "sim", cells, kept, seeds=range(1, 6))
    row = found.rows[1]
    assert row.gain is not None
    assert (row.gain.pairs, row.runs) == (3, 4)
    assert row.ratio == pytest.approx(1.5)
    assert (found.valid, found.planned) == (7, 15)
    assert found.rows[2].mean is None


def test_one_or_two_seeds_have_no_interval_and_agree_with_nothing(tmp_path: Path) -> None:
    kept = made_up(tmp_path / "cells.jsonl", FIGURES[7], seeds=2)
    row = summary(FIGURES[7], CORE, "sim", planned(FIGURES[7], CORE, "sim"), kept).rows[1]
    assert row.gain is not None and row.gain.ratio_of_means_95 is None
    assert row.interval is None
    assert row.agrees is None


def test_figure_9_compares_thresholds_at_the_same_k(tmp_path: Path) -> None:
    figure = FIGURES[9]
    kept = Kept(tmp_path / "cells.jsonl")
    for cell in planned(figure, CORE, "sim"):
        for seed in (1, 2, 3):
            kept.add(kept_cell(key_of(cell.experiment), seed, seed * figure.value(cell.factors)))
    found = summary(figure, CORE, "sim", planned(figure, CORE, "sim"), kept)
    assert {k: gain.ratio_of_means for k, gain in found.across.items()} == dict.fromkeys(range(1, 7), 3.0)
    values = in_json(figure, [found])
    assert values["fig9_across"]["core, sim"]["k=6"]["pairs"] == 3
    assert values["fig9_mean"]["core, sim"]["threshold 1, k=1"] == pytest.approx(2.0)
    write_page(tmp_path, figure, [found], "1 core", {})
    assert "| k=6 | 3.00 [3.00, 3.00] | 3 |" in (tmp_path / "figure9.md").read_text()


@pytest.mark.parametrize("number", sorted(FIGURES))
def test_pages_have_tables_drawings_and_where_they_come_from(number: int, tmp_path: Path) -> None:
    figure = FIGURES[number]
    kept = made_up(tmp_path / "cells.jsonl", figure, seeds=4)
    write_page(tmp_path, figure, summaries(figure, kept, {}), machine_in_words(), {})
    write_index(tmp_path)
    page = (tmp_path / f"figure{number}.md").read_text()
    drawn = (tmp_path / f"figure{number}-core-sim.svg").read_text()
    assert f"figure{number}-core-sim.svg" in page
    assert f"`python -m benchmarks.paper_figures --figure {number} --seeds 4`" in page
    assert "c0ffeec0ffee" in page and "cores" in page and "Where we differ" in page
    assert (
        drawn.startswith("<svg ") and 'xmlns="http://www.w3.org/2000/svg"' in drawn and "--series-0" in drawn
    )
    assert f"[Figure {number}](figure{number}.md)" in (tmp_path / "README.md").read_text()


def test_two_backends_stand_side_by_side(tmp_path: Path) -> None:
    figure = FIGURES[7]
    made_up(tmp_path / "cells.jsonl", figure, seeds=30, noise=0.1)
    kept = made_up(tmp_path / "cells.jsonl", figure, seeds=5, backend="netns", noise=0.1)
    found = summaries(figure, kept, {})
    assert [(each.backend, each.valid) for each in found] == [("sim", 90), ("netns", 15)]
    assert in_json(figure, found)["fig7_backends_agree"] == "2 of 2"
    write_page(tmp_path, figure, found, "1 core", {})
    page = (tmp_path / "figure7.md").read_text()
    assert "The intervals of virtual time and namespaces overlap in 2 of 2 ratios." in page
    paired = in_json(figure, found)["fig7_netns_over_sim"]["core"]
    assert paired["pairs"] == 15 and 0.8 < paired["ratio_of_means"] < 1.25
    assert f"same parameters and seed: as in the file {paired['ratio_of_means']:.2f} [" in page
    assert "--figure 7 --seeds 30`" in page and "--figure 7 --backend netns --seeds 5`" in page


def test_a_page_tells_runs_that_are_not_valid_from_those_that_nobody_ran(tmp_path: Path) -> None:
    figure = FIGURES[7]
    kept = made_up(tmp_path / "cells.jsonl", figure, seeds=3)
    key = key_of(planned(figure, CORE, "sim")[0].experiment)
    kept.add(kept_cell(key, 4, 5.0, verdict="invalid"))
    kept.add(msgspec.structs.replace(kept_cell(key, 5, 5.0), machine="64 cores, Other"))
    write_page(tmp_path, figure, summaries(figure, kept, {}), "1 core", {})
    page = (tmp_path / "figure7.md").read_text()
    assert "Valid runs: 10 of 11. The others are left out, with their pairs. Not run yet: 4" in page
    assert "- Machine: not recorded (9 runs; written on 1 core), 64 cores, Other (1 runs)" in page


def test_a_page_has_what_another_process_ran_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: object) -> None:
        made_up(tmp_path / "cells.jsonl", FIGURES[7], seeds=3, backend="netns")

    monkeypatch.setattr(paper_figures, "run_all", elsewhere)
    monkeypatch.setattr("sys.argv", ["paper_figures", "--figure", "7", "--write", str(tmp_path)])
    paper_figures.main()
    assert "namespaces, real time" in (tmp_path / "figure7.md").read_text()


def test_what_was_written_by_hand_is_kept(tmp_path: Path) -> None:
    figure, path = FIGURES[7], tmp_path / "figure7.md"
    kept = made_up(tmp_path / "cells.jsonl", figure, seeds=3)
    write_page(tmp_path, figure, summaries(figure, kept, {}), "1 core", {})
    before = path.read_text()
    words = "Ours is lower by 0.3: the radio reaches 430 m.\n\n| a | table |\n| --- | --- |"
    path.write_text(
        before.replace(f"{BY_HAND}\nNothing is written here yet.\n{END}", f"{BY_HAND}\n{words}\n{END}")
    )
    write_page(tmp_path, figure, summaries(figure, kept, {}), "2 cores", {"duration": 5.0})
    after = path.read_text()
    assert words in after
    assert "2 cores" in after and "--duration 5.0" in after
    assert after.count(BY_HAND) == 1


def test_a_page_is_not_replaced_by_one_without_runs(tmp_path: Path) -> None:
    figure = FIGURES[7]
    write_page(tmp_path, figure, summaries(figure, Kept(tmp_path / "cells.jsonl"), {}), "1 core", {})
    write_index(tmp_path)
    assert not (tmp_path / "figure7.md").exists()
    assert "figure7.md" not in (tmp_path / "README.md").read_text()


def test_drawings_are_the_same_each_time(tmp_path: Path) -> None:
    kept = made_up(tmp_path / "cells.jsonl", FIGURES[8], seeds=3)
    found = summaries(FIGURES[8], kept, {})[0]
    assert standalone(drawing(FIGURES[8], found)) == standalone(drawing(FIGURES[8], found))


def test_what_a_killed_campaign_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, alive, foreign = (tmp_path / f"{PREFIX}{name}" for name in ("dead", "alive", "foreign"))
    for folder in (dead, alive, foreign):
        (folder / "fig5").mkdir(parents=True)
    (tmp_path / f"{PREFIX}link").symlink_to(foreign)
    (dead / LOCK).touch()
    with (alive / LOCK).open("wb") as held:
        assert try_lock(held)
        with workplace() as own:
            assert not dead.exists() and alive.exists() and foreign.exists()
            with workplace() as another:
                assert own.exists() and another != own
        assert not own.exists() and not another.exists()


def _command(cells: Path, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "benchmarks.paper_figures", "--json", "--cells", str(cells)]
    return [*program, *SHORT, *arguments]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_figure_from_nothing_and_again_after_a_kill(tmp_path: Path) -> None:
    cells, pages = tmp_path / "cells.jsonl", tmp_path / "pages"
    arguments = ("--figure", "7", "--seeds", "1", "--write", str(pages))
    running = subprocess.Popen(
        _command(cells, *arguments),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not Kept(cells).all() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    first = {cell.place: cell for cell in Kept(cells).all()}
    assert 1 <= len(first) < 3
    assert [*tmp_path.glob(f"{PREFIX}*")]
    done = subprocess.run(
        _command(cells, *arguments),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    assert not [*tmp_path.glob(f"{PREFIX}*")]
    found = json.loads(done.stdout)
    assert found["valid_runs"] == 3
    assert found["fig7_gain"]["core, sim"]["50 nodes, k=3"]["paper"] == 2.3
    assert len(done.stderr.splitlines()) == 3 - len(first)  # a line for each cell that was run
    again = {cell.place: cell for cell in Kept(cells).all()}
    assert all(again[place] == cell for place, cell in first.items())
    assert (pages / "figure7.md").exists() and (pages / "README.md").exists()


def _simulators(folder: Path) -> list[str]:
    """Returns the command lines of simulators whose runs are in ``folder``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text().replace("\0", " "))
    return [line for line in found if "sim.worker" in line and str(folder) in line]


@pytest.mark.timeout(150)
def test_ctrl_c_ends_all_runs_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    command = _command(tmp_path / "cells.jsonl", "--figure", "5", "--seeds", "1", "--duration", "900")
    command += ["--jobs", "2"]
    running = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while len(_simulators(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    assert _simulators(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == []
    running.communicate()


def test_an_unknown_variant_is_one_clear_error(tmp_path: Path) -> None:
    found = subprocess.run(
        _command(tmp_path / "cells.jsonl", "--variant", "freebsd"), capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 1
    assert found.stderr.startswith("error: there is no variant freebsd: choose among 1500m,")


def test_tasks_carry_their_cost() -> None:
    cell = planned(FIGURES[7], CORE, "netns")[0]
    task: Task = tasks_of(cell, "real time", [1])[0]
    assert missing([task], Kept(Path("/nonexistent")))[0].cost == pytest.approx(170.0)


def test_a_cell_stays_known_when_experiments_get_a_section_that_it_does_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = planned(FIGURES[5], CORE, "sim")[0].experiment
    before, said = key_of(experiment), experiment.resolved()
    assert said["topology"]["wires"] == []
    grown = {**said, "tunnels": [], "topology": {**said["topology"], "masts": {"tall": None}}}
    monkeypatch.setattr(type(experiment), "resolved", lambda self: grown)
    assert key_of(experiment) == before
    grown["tunnels"] = ["one"]
    assert key_of(experiment) != before
