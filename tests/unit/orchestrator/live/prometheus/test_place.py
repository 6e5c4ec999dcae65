"""Prometheus' directory beside the runs: private, and nothing in it leads elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.live.prometheus.place import Place, PrometheusFailed

pytestmark = pytest.mark.unit


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_it_is_made_private_and_so_is_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "runs" / ".prometheus"
    with Place(path) as place:
        assert place.was_private
        place.folder("data")
        place.write("token", b"secret")
        os.close(place.create("log"))
    assert [mode(each) for each in (path, path / "data", path / "token", path / "log")] == [
        0o700,
        0o700,
        0o600,
        0o600,
    ]


def test_the_mode_of_an_own_one_is_mended(tmp_path: Path) -> None:
    for folder in (tmp_path / "p", tmp_path / "p" / "data"):
        folder.mkdir()
        folder.chmod(0o777)
    with Place(tmp_path / "p") as place:
        assert not place.was_private
        place.folder("data")
    assert mode(tmp_path / "p") == mode(tmp_path / "p" / "data") == 0o700


def test_files_are_replaced_and_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with Place(tmp_path / "p") as place:
        for name in ("log", "token", ".token.tmp", "password"):
            (tmp_path / "p" / name).symlink_to(victim)
        os.close(place.create("log"))
        place.write("token", b"secret")
        assert place.end_of("password") is None
        assert place.end_of("token") == b"secret"
    assert victim.read_text() == "precious"
    assert not (tmp_path / "p" / "log").is_symlink() and not (tmp_path / "p" / "token").is_symlink()


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def a_dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def a_file(path: Path) -> None:
    path.write_text("x")


@pytest.mark.parametrize("put", [a_link, a_dangling_link, a_file])
def test_what_is_no_directory_is_refused_in_one_sentence(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "p")
    with pytest.raises(PrometheusFailed, match=r"/p is a link, or not what belongs there: .*; remove it$"):
        Place(tmp_path / "p").open()
    with Place(tmp_path / "q") as place:
        put(tmp_path / "q" / "data")
        with pytest.raises(PrometheusFailed, match="/q/data is a link"):
            place.folder("data")


def test_that_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PrometheusFailed, match="belongs to another user"):
        Place(tmp_path / "p").open()


def test_links_and_pipes_deep_in_the_data_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "p" / "data" / "wal"
    deep.mkdir(parents=True)
    (deep / "00000001").write_text("x")
    with Place(tmp_path / "p") as place:
        place.folder("data")
        (deep / "00000002").symlink_to(tmp_path)
        with pytest.raises(PrometheusFailed, match="wal/00000002 is neither a file nor a directory"):
            place.folder("data")
        (deep / "00000002").unlink()
        os.mkfifo(deep / "00000002")
        with pytest.raises(PrometheusFailed, match="wal/00000002 is neither a file nor a directory"):
            place.folder("data")


def test_only_one_has_the_lock_until_all_who_inherited_it_close_it(tmp_path: Path) -> None:
    with Place(tmp_path / "p") as first, Place(tmp_path / "p") as second:
        inherited = os.dup(first.lock())
        first.unlock()
        with pytest.raises(PrometheusFailed, match="another Prometheus of rove serve uses"):
            second.lock()
        second.unlock()
        os.close(inherited)
        second.lock()


def test_a_link_as_lock_is_refused(tmp_path: Path) -> None:
    with Place(tmp_path / "p") as place:
        a_dangling_link(tmp_path / "p" / "lock")
        with pytest.raises(PrometheusFailed, match="lock is a link"):
            place.lock()
    assert not (tmp_path / "p" / "nowhere").exists()


def test_what_is_exchanged_for_the_directory_is_not_used(tmp_path: Path) -> None:
    with Place(tmp_path / "p") as place:
        (tmp_path / "p").rename(tmp_path / "q")
        (tmp_path / "p").symlink_to(tmp_path)
        place.write("token", b"secret")
        assert Path(place.current).samefile(tmp_path / "q")
    assert (tmp_path / "q" / "token").exists() and not (tmp_path / "token").exists()
