"""When an archive of Java's classes is written, used, and given up."""

import os
import time
from pathlib import Path

import pytest

from orchestrator.spark import class_archive as module
from orchestrator.spark.class_archive import ARCHIVE, KEPT_S, ClassArchive, class_archive

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    executable = tmp_path / "java"
    executable.write_text("")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return executable


def archive(java: Path, write: bool = True) -> ClassArchive | None:
    return class_archive(java, java.parent / "spark", write)


def written(java: Path) -> ClassArchive:
    found = archive(java)
    assert found is not None and found.fresh is not None
    found.fresh.write_bytes(b"classes")
    found.settle(in_order=True, in_time=True)
    return found


def test_it_is_written_once_and_then_used(java: Path) -> None:
    first = written(java)
    assert first.option == f'"-XX:ArchiveClassesAtExit={first.fresh}"'
    later = archive(java, write=False)
    assert later is not None and later.fresh is None
    assert later.option == f'"-XX:SharedArchiveFile={first.file}"'
    assert first.file.stat().st_mode & 0o077 == 0 or first.file.parent.stat().st_mode & 0o077 == 0
    assert not list(later.configuration.iterdir())


def test_a_session_that_loads_little_writes_none(java: Path) -> None:
    assert archive(java, write=False) is None


def test_another_java_or_spark_gets_its_own(java: Path) -> None:
    first = written(java)
    os.utime(java, ns=(1, 1))
    second = archive(java)
    assert second is not None and second.fresh is not None and second.file != first.file
    os.utime(java.parent / "spark" / "jars", ns=(1, 1))
    third = archive(java)
    assert third is not None and third.file not in (first.file, second.file)


@pytest.mark.parametrize(("in_order", "in_time"), [(True, True), (False, False)])
def test_a_java_that_cannot_write_one_is_not_asked_again(java: Path, in_order: bool, in_time: bool) -> None:
    found = archive(java)
    assert found is not None
    found.settle(in_order, in_time)
    assert archive(java) is None
    for path in found.file.parent.iterdir():
        os.utime(path, (0, 0))
    assert archive(java) is not None


def test_what_a_killed_java_wrote_is_not_kept(java: Path) -> None:
    found = archive(java)
    assert found is not None and found.fresh is not None
    found.fresh.write_bytes(b"half")
    found.settle(in_order=False, in_time=True)
    assert not found.fresh.exists() and not found.file.exists()
    assert archive(java) is not None


def test_nobody_elses_file_is_used(java: Path, tmp_path: Path) -> None:
    found = written(java)
    found.file.unlink()
    (tmp_path / "elsewhere").write_bytes(b"classes")
    found.file.symlink_to(tmp_path / "elsewhere")
    later = archive(java)
    assert later is not None and later.fresh is not None
    found.configuration.joinpath("log4j2.properties").write_text("")
    assert archive(java) is None


def test_archives_that_nobody_uses_go(java: Path) -> None:
    first = written(java)
    left = first.file.with_suffix(".abc.fresh")
    left.write_bytes(b"half")
    long_ago = time.time() - KEPT_S[ARCHIVE] - 60
    for path in (first.file, left):
        os.utime(path, (long_ago, long_ago))
    os.utime(java, ns=(1, 1))
    archive(java)
    assert not first.file.exists() and not left.exists()


def test_a_busy_machine_writes_none_and_uses_what_is_there(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    assert archive(java) is None
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    written(java)
    monkeypatch.setattr(os, "getloadavg", lambda: (1e6, 0.0, 0.0))
    found = archive(java)
    assert found is not None and found.fresh is None


def test_without_room_or_a_cache_there_is_none(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FREE_BYTES", 2**80)
    assert archive(java) is None
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert archive(java) is None
