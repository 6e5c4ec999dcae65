"""A run's archive comes from another machine: it is whole and stays in its directory, or it never counts."""

import io
import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest

from orchestrator.errors import RoveError
from orchestrator.lifecycle.invocation import CellLost
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement
from orchestrator.sweeps import archive
from orchestrator.sweeps.archive import BadArchive, pack, unpack
from orchestrator.sweeps.driver import accept
from orchestrator.sweeps.task import ERROR, RUN


def run_in(folder: Path, verdict: str = '{"verdict": "valid"}') -> Path:
    (folder / "nodes" / "a" / "segments").mkdir(parents=True)
    (folder / "nodes" / "a" / "segments" / "1.jsonl").write_bytes(b'{"seq": 0}\n' * 1000)
    (folder / "verdict.json").write_text(verdict)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_pieces(data: bytes, size: int = 100) -> list[bytes]:
    return [RUN, *(data[begin : begin + size] for begin in range(0, len(data), size))]


def archive_of(*entries: tarfile.TarInfo, content: bytes = b"") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as file:
        for entry in entries:
            file.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.size, found.linkname = kind, size, link
    return found


def test_what_is_packed_comes_out_and_the_same_files_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(tmp_path / "run")
    (run / "galleries").mkdir(0o700)
    (run / "galleries" / "people.gallery").write_bytes(b"faces")
    (run / "galleries" / "people.gallery").chmod(0o600)
    data = pack(run)
    (run / "switching" / "__pycache__").mkdir(parents=True)
    (run / "switching" / "__pycache__" / "mine.cpython-311.pyc").write_bytes(b"")
    with monkeypatch.context() as later:
        later.setattr("time.time", lambda: 2e9)
        assert data == pack(run)
    (tmp_path / "out").mkdir()
    unpack([data[:7], data[7:]], tmp_path / "out")
    shutil.rmtree(run / "switching")
    assert contents(tmp_path / "out") == contents(run)
    for name in ("galleries", "galleries/people.gallery", "verdict.json", "nodes/a"):
        assert (tmp_path / "out" / name).stat().st_mode == (run / name).stat().st_mode


@pytest.mark.parametrize(
    "bad",
    [
        entry("../outside"),
        entry("/etc/outside"),
        entry("nodes/../../outside"),
        entry("inside", tarfile.SYMTYPE, link="/etc/passwd"),
        entry("inside", tarfile.LNKTYPE, link="../outside"),
        entry("inside", tarfile.FIFOTYPE),
        entry("inside", tarfile.CHRTYPE),
        entry("a\nb"),
        entry("/".join("abcdefghijklmnopqrst")),
    ],
    ids=lambda bad: f"{bad.name!r} of type {bad.type!r}"[:40],
)
def test_what_leads_out_or_is_no_file_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(RoveError):
        unpack([archive_of(bad)], tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert list((tmp_path / "in").iterdir()) == []


def test_a_link_that_was_unpacked_before_is_not_followed(tmp_path: Path) -> None:
    data = archive_of(entry("x", tarfile.SYMTYPE, link=".."), entry("x/outside", size=1), content=b"!")
    (tmp_path / "in").mkdir()
    with pytest.raises(RoveError):
        unpack([data], tmp_path / "in")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "entries",
    [
        [entry("a"), entry("a")],
        [entry("a"), entry("a/b")],
        [entry("a", tarfile.DIRTYPE), entry("a")],
        [entry("nowhere/a")],
    ],
)
def test_an_archive_that_contradicts_itself_is_refused(
    tmp_path: Path, entries: list[tarfile.TarInfo]
) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(BadArchive, match="broken archive"):
        unpack([archive_of(*entries)], tmp_path / "in")


@pytest.mark.parametrize("cut", [0, 1, 10, 60, -5])
def test_a_torn_archive_is_refused(tmp_path: Path, cut: int) -> None:
    data = pack(run_in(tmp_path / "run"))
    (tmp_path / "in").mkdir()
    with pytest.raises(BadArchive):
        unpack([data[:cut]], tmp_path / "in")


def test_a_head_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    head = entry("x", tarfile.XHDTYPE, size=64 << 20)
    (tmp_path / "in").mkdir()
    with pytest.raises(BadArchive, match="head that is too large"):
        unpack([archive_of(head, content=b" " * head.size)], tmp_path / "in")


def test_sizes_are_bounded_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in(tmp_path / "run")
    data = pack(run)
    (tmp_path / "in").mkdir()
    for name, limit in (("MOST_BYTES", 10), ("MOST_UNPACKED", 100), ("MOST_FILES", 1)):
        with monkeypatch.context() as lower, pytest.raises(BadArchive, match="more than a run may have"):
            lower.setattr(archive, name, limit)
            unpack([data], Path(tempfile.mkdtemp(dir=tmp_path / "in")))
    monkeypatch.setattr(archive, "MOST_BYTES", 10)
    with pytest.raises(BadArchive, match="without --on"):
        pack(run)


def test_a_result_is_accepted_once_and_a_second_one_is_dropped(tmp_path: Path) -> None:
    first = in_pieces(pack(run_in(tmp_path / "first")))
    second = in_pieces(pack(run_in(tmp_path / "second", '{"verdict": "invalid"}')))
    run = RunDirectory(tmp_path / "runs" / "r1.01")
    run.path.parent.mkdir()
    scratch = tmp_path / "tmp"
    assert accept(first, run, scratch).verdict is Judgement.VALID
    assert accept(second, run, scratch).verdict is Judgement.VALID
    assert contents(run.path) == contents(tmp_path / "first")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([], "something else than a run"),
        ([b"hello"], "something else than a run"),
        ([RUN], "broken archive"),
        ([RUN, b"hello"], "broken archive"),
        ([RUN, archive_of(entry("a"))], "without a verdict"),
        ([RUN, archive_of(entry("../a"))], "cannot be used here"),
        ([ERROR, b"it has ", b"no faces"], "it has no faces"),
    ],
)
def test_half_a_result_never_counts(tmp_path: Path, pieces: list[bytes], why: str) -> None:
    run = RunDirectory(tmp_path / "runs" / "r1.01")
    run.path.parent.mkdir()
    with pytest.raises(CellLost, match=why):
        accept(pieces, run, tmp_path / "tmp")
    assert not run.path.exists()
    assert not (tmp_path / "tmp").exists() or list((tmp_path / "tmp").iterdir()) == []
