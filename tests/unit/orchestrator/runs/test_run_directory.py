"""Names, links and references of runs, and writes that are whole or not there."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.errors import BadInput
from orchestrator.runs import run_directory
from orchestrator.runs.files import parse_lines, write_atomic, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory, all_runs, point_latest, resolve


def make_run(root: Path, experiment: str, run_id: str, created: float) -> RunDirectory:
    return filled(run_directory.create(root, experiment, run_id), created)


def make_member(sweep: RunDirectory, number: int, created: float) -> RunDirectory:
    return filled(run_directory.create_member(sweep, number), created)


def filled(directory: RunDirectory, created: float) -> RunDirectory:
    Journal.create(directory.journal).close()
    directory.spec.write_text("name: x\n")
    os.utime(directory.spec, (created, created))
    point_latest(directory)
    return directory


def test_a_run_id_tells_the_time_and_is_random() -> None:
    noon = datetime(2026, 3, 4, 12, 30, 59, tzinfo=UTC)
    ids = {run_directory.new_run_id(noon) for _ in range(20)}
    assert all(run_id.startswith("20260304-123059-") and len(run_id) == 20 for run_id in ids)
    assert len(ids) > 1


@pytest.mark.parametrize("run_id", ["latest", "", "a/b", "../x", ".hidden", "a b", "x" * 65, "a.b", "a.07"])
def test_ids_that_cannot_be_names_are_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(BadInput, match="cannot be used"):
        run_directory.create(tmp_path, "quick", run_id)
    assert list(tmp_path.iterdir()) == []


def test_an_id_is_used_once_under_a_root_even_by_another_experiment(tmp_path: Path) -> None:
    run_directory.create(tmp_path, "quick", "one")
    with pytest.raises(BadInput, match="already exists"):
        run_directory.create(tmp_path, "other", "one")


def test_an_unusable_root_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(BadInput, match="choose another --runs-dir"):
        run_directory.create(tmp_path / "runs", "quick", "one")


def test_two_that_begin_in_the_same_second_get_two_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = iter(("aaaa", "aaaa", "bbbb"))
    noon = datetime(2026, 3, 4, 12, 30, 59, tzinfo=UTC)
    monkeypatch.setattr(run_directory, "new_run_id", lambda now: f"{noon:%Y%m%d-%H%M%S}-{next(digits)}")
    made = [run_directory.create_new(tmp_path, "quick").id for _ in range(2)]
    assert made == ["20260304-123059-aaaa", "20260304-123059-bbbb"]


def test_a_new_run_in_an_unusable_root_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(BadInput, match="choose another --runs-dir"):
        run_directory.create_new(tmp_path / "runs", "quick")


def test_latest_is_a_relative_link_that_is_replaced(tmp_path: Path) -> None:
    make_run(tmp_path, "quick", "one", 1)
    make_run(tmp_path, "quick", "two", 2)
    assert str((tmp_path / "quick" / "latest").readlink()) == "two"
    assert sorted(entry.name for entry in (tmp_path / "quick").iterdir()) == ["latest", "one", "two"]


def test_runs_are_listed_newest_first_with_members_after_their_sweep(tmp_path: Path) -> None:
    make_run(tmp_path, "quick", "old", 10)
    sweep = make_run(tmp_path, "quick", "sweep", 20)
    for number in (1, 2, 10):
        make_member(sweep, number, 20 + number)
    make_run(tmp_path, "other", "new", 30)
    assert [run.id for run in all_runs(tmp_path)] == [
        "new",
        "sweep",
        "sweep.01",
        "sweep.02",
        "sweep.10",
        "old",
    ]
    assert RunDirectory(tmp_path / "quick" / "sweep.02").invocation == "sweep"


def test_members_are_those_that_the_sweep_lists_whatever_others_are_called(tmp_path: Path) -> None:
    sweep = make_run(tmp_path, "quick", "sweep", 1)
    for number in (1, 2, 8):
        make_member(sweep, number, 2)
    assert sweep.members() == []
    write_json(sweep.sweep, {"members": ["sweep.01", "sweep.02", "sweep.03"]})
    assert [member.id for member in sweep.members()] == ["sweep.01", "sweep.02"]


def test_every_way_to_name_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_run(tmp_path / "runs", "quick", "old", 10)
    new = make_run(tmp_path / "runs", "quick", "new", 20)
    newest = make_run(tmp_path / "runs", "other", "x-1", 30)
    monkeypatch.chdir(tmp_path)
    root = Path("runs")
    expected = {
        "old": old.path,
        "quick": new.path,
        "latest": newest.path,
        "runs/quick/old": old.path,
        "runs/quick/latest": new.path,
        "runs/quick": new.path,
        str(new.path): new.path,
    }
    assert {reference: resolve(reference, root).path.resolve() for reference in expected} == expected


def test_a_reference_that_leads_nowhere_gets_a_hint(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there are no runs under"):
        resolve("latest", tmp_path)
    make_run(tmp_path, "quickstart", "20260101-000000-abcd", 1)
    with pytest.raises(BadInput, match=r"did you mean quickstart\?"):
        resolve("quikstart", tmp_path)
    with pytest.raises(BadInput, match="rove status lists"):
        resolve("zzz", tmp_path)
    (tmp_path / "quickstart" / "empty").mkdir()
    with pytest.raises(BadInput, match=r"empty is no run: it has no manifest\.json"):
        resolve("quickstart/empty", tmp_path)
    with pytest.raises(BadInput, match="is an address, and runs are directories"):
        resolve("hdfs://head/runs/quickstart", tmp_path)


def test_an_atomic_write_replaces_the_whole_and_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    write_json(path, {"verdict": "valid"})
    write_json(path, {"verdict": "failed"})
    assert path.read_text() == '{\n  "verdict": "failed"\n}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.mkdir()
    with pytest.raises(OSError):
        write_atomic(path, b"new")
    assert path.is_dir()


def test_temporary_things_are_found_and_removed_and_nothing_else(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "quick", "one")
    (run.temporary / "deep").mkdir(parents=True)
    (run.path / ".verdict.json.17.tmp").write_text("{")
    (run.path / ".latest.tmp").symlink_to("nowhere")
    write_json(run.verdict, {})
    assert len(run.remove_temporary()) == 3
    assert list(run.path.iterdir()) == [run.verdict]
    assert run.remove_temporary() == []


def test_torn_and_foreign_lines_are_passed_over() -> None:
    assert parse_lines(b'{"a": 1}\n[]\n\xff\n{"b": 2}\n{"c"') == [{"a": 1}, {"b": 2}]
